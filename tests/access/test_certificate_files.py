"""Files of TLS: what cannot be used is refused in one clear sentence, what is of doubt is warned of."""

import os
import ssl
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from railgun.access.certificate_files import CertificateFiles, read_certificates
from railgun.access.refusals import LINES_PER_S, RefusalLog
from railgun.access.tls import OUTCOMES, CertificateError, Certificates, Tls
from tests.certificates import DAY, Authority, encrypted

PASSWORD = "a-secret-phrase"


class Files:
    """A CA of servers, one of clients, and files that are good."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.servers = folder, Authority(folder, "servers")
        self.clients, self.server = Authority(folder, "clients"), self.servers.pair()
        self.good = CertificateFiles(str(self.server.certificate), str(self.server.key))

    def written(self, name: str, content: bytes) -> str:
        file = self.folder / name
        file.write_bytes(content)
        return str(file)

    def read(self, **more: str) -> Certificates:
        return read_certificates(replace(self.good, **more), time.time())

    def refused(self, **more: str) -> str:
        with pytest.raises(CertificateError) as raised:
            self.read(**more)
        said = str(raised.value)
        assert "\n" not in said
        assert PASSWORD not in said
        assert not any(line in said for line in self.server.key.read_text().splitlines()[1:-1])
        return said


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def test_a_server_of_its_own(files: Files) -> None:
    found = files.read()
    assert (found.clients, found.notes, list(found.ends_s)) == (None, (), ["server"])
    assert found.context.minimum_version is ssl.TLSVersion.TLSv1_3
    assert found.context.verify_mode is ssl.CERT_NONE
    assert files.read(min_version="1.2").context.minimum_version is ssl.TLSVersion.TLSv1_2


def test_no_session_is_taken_up_again(files: Files) -> None:
    context = files.read(min_version="1.2").context
    assert context.num_tickets == 0
    assert context.options & ssl.OP_NO_TICKET


@pytest.mark.parametrize(
    ("since", "until", "message"),
    [(-2 * DAY, -DAY, "the certificate ran out at"), (DAY, 2 * DAY, "the certificate is good from")],
)
def test_a_certificate_out_of_its_time(
    files: Files, since: timedelta, until: timedelta, message: str
) -> None:
    pair = files.servers.pair(since=since, until=until)
    said = files.refused(certificate=str(pair.certificate), key=str(pair.key))
    assert said.startswith(f"{pair.certificate}: {message} 2")
    assert "the clock of this machine says 2" in said


def test_a_key_of_another_certificate(files: Files) -> None:
    other = files.servers.pair()
    assert "it is not the key of the first certificate in" in files.refused(key=str(other.key))


def test_an_encrypted_key_asks_nobody(files: Files) -> None:
    key = files.written("locked.key", encrypted(files.server.key, PASSWORD))
    assert files.refused(key=key) == (
        f"{key}: the key is encrypted; decrypt it (openssl pkey), and let nobody else read the file"
    )


@pytest.mark.parametrize("content", [b"", b"nothing", b"\xff" * 100, b"-----BEGIN CERTIFICATE-----\nAAAA\n"])
def test_files_that_hold_nothing(files: Files, content: bytes) -> None:
    file = files.written("bad.pem", content)
    assert "it holds no certificate in PEM" in files.refused(certificate=file)
    assert "it holds no private key in PEM" in files.refused(key=file)
    assert "it holds no certificate in PEM" in files.refused(client_ca=file)
    ca = str(files.clients.file)
    assert "it holds no list of revoked certificates" in files.refused(client_ca=ca, client_crl=file)


def test_a_file_that_is_none(files: Files) -> None:
    for name in ("certificate", "key", "client_ca"):
        with pytest.raises(FileNotFoundError):
            files.read(**{name: "/none"})
        with pytest.raises(IsADirectoryError):
            files.read(**{name: str(files.folder)})
    large = files.written("large", b"x" * ((16 << 20) + 1))
    assert "is it the right one?" in files.refused(client_ca=large)


def test_files_that_others_may_write(files: Files) -> None:
    crl = files.written("crl.pem", files.clients.revoking())
    ca = str(files.clients.file)
    for name in ("certificate", "key", "client_ca", "client_crl"):
        given = {"client_ca": ca, "client_crl": crl}
        file = Path({**given, "certificate": files.good.certificate, "key": files.good.key}[name])
        mode = file.stat().st_mode & 0o777
        file.chmod(mode | 0o002)
        assert f"{file}: everybody may write it" in files.refused(**given)
        file.chmod(mode)
    assert files.read(**given).clients is not None


def test_a_file_of_another_user(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 12_345)
    monkeypatch.setattr("railgun.access.token_files._ROOT", 54_321)
    assert "it belongs to another user" in files.refused()


def test_a_key_that_others_may_read_is_warned_of(files: Files) -> None:
    files.server.key.chmod(0o644)
    [note] = files.read().notes
    assert note == f"{files.server.key}: everybody may read this private key; chmod o-r {files.server.key}"
    files.server.key.chmod(0o640)
    assert files.read().notes == ()


def test_a_certificate_that_is_no_cas(files: Files) -> None:
    pair = files.clients.pair()
    # A CA of its own, and beside it the certificate of a client.
    both = files.written("both.pem", files.clients.pem + pair.leaf.public_bytes(serialization.Encoding.PEM))
    assert "is no CA's" in files.refused(client_ca=both)


def test_clients_are_told_apart_by_cas_and_revocations(files: Files) -> None:
    ca, bad = str(files.clients.file), files.clients.pair()
    crl = files.written("crl.pem", files.clients.revoking())
    found = [files.read(client_ca=ca), files.read(client_ca=ca, client_crl=crl)]
    files.written("crl.pem", files.clients.revoking(bad))
    found.append(files.read(client_ca=ca, client_crl=crl))
    assert len({each.clients for each in found}) == 3
    assert found[-1].clients == files.read(client_ca=ca, client_crl=crl).clients
    assert list(found[-1].ends_s) == ["server", "client_ca", "client_crl"]
    assert found[-1].context.verify_mode is ssl.CERT_OPTIONAL


def test_lists_that_cannot_be_used(files: Files) -> None:
    ca, other = str(files.clients.file), Authority(files.folder, "other")
    good, foreign = files.clients.revoking(), other.revoking()
    old = files.clients.revoking(until=-2 * DAY)
    for content, message in (
        (old, "a list ran out at 2"),
        (foreign, "it has no list of"),
        (good + other.pem, "belong here alone"),
        (good + good[:100], "it holds no list"),
    ):
        crl = files.written("crl.pem", content)
        assert message in files.refused(client_ca=ca, client_crl=crl)
    crl = files.written("crl.pem", good + foreign)
    assert files.read(client_ca=ca, client_crl=crl).clients is not None


def test_what_ends_soon_is_warned_of(files: Files) -> None:
    crl = files.written("crl.pem", files.clients.revoking())
    certificates = files.read(client_ca=str(files.clients.file), client_crl=crl)
    now_s = time.time()
    for days, words in ((0, []), (17, ["a list"]), (31, ["a list"]), (77, ["certificate", "list"])):
        said = Tls(certificates, lambda days=days: now_s + days * 86_400).warnings()
        assert len(said) == len(words)
        assert all(word in one for word, one in zip(words, said))
    assert "runs out in 13.0 days (20" in said[0]
    assert "has run out" in said[1]


def test_other_clients_are_told_of_once() -> None:
    def certificates(clients: bytes | None) -> Certificates:
        return Certificates(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), clients, {})

    tls, told = Tls(certificates(b"a")), []
    tls.on_new_clients = lambda: told.append(tls.certificates.clients)
    before = tls.certificates
    for clients in (b"a", b"b", b"b", None):
        tls.replace(certificates(clients))
    assert told == [b"b", None]
    assert tls.is_outdated(before)
    assert not tls.is_outdated(tls.certificates)


def test_failures_are_counted_by_what_they_are(caplog: pytest.LogCaptureFixture) -> None:
    tls = Tls(Certificates(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), None, {}))
    for error in (ssl.SSLError(), ConnectionResetError(), ConnectionAbortedError(), TimeoutError()):
        tls.note_failure(error, "127.0.0.1")
    assert not caplog.records
    assert dict(tls.handshakes) == {"failed": 2, "late": 2}
    assert set(tls.handshakes) <= set(OUTCOMES)


def test_each_refused_certificate_is_counted_whether_it_has_a_line_or_not(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "railgun.access.tls.refusals", RefusalLog(lambda: 0.0, lambda after_s, function: None)
    )
    tls, error = (
        Tls(Certificates(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), None, {})),
        ssl.SSLCertVerificationError(),
    )
    error.verify_message = "certificate revoked"
    for _ in range(1_000):
        tls.note_failure(error, "127.0.0.1")
    assert tls.handshakes["untrusted"] == 1_000
    assert len(caplog.records) == LINES_PER_S
