"""TLS of a server: what it speaks, its limits, who does nothing, and other certificates in place of those before."""

import asyncio
import contextlib
import errno
import json
import logging
import os
import socket
import ssl
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from frontend.http import connection, handshakes
from railgun import health
from railgun.access.tls import Tls
from railgun.cli.open_files import raise_open_files_limit
from railgun.config.access import certificates_of
from railgun.config.kinds import ConfigError
from railgun.config.settings import KEYS, HttpSettings, TlsSettings
from tests.certificates import Authority, Pair
from tests.frontend.raw_client import RawClient
from tests.frontend.serving import Server, server, until

ALIVE = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
STREAMS = b"GET /v1/streams HTTP/1.1\r\nHost: localhost\r\n\r\n"


class Files:
    """A CA of servers, one of clients, the certificate of a server, and settings of these."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.servers = folder, Authority(folder, "servers")
        self.clients, self.server = Authority(folder, "clients"), self.servers.pair()
        self.crl = folder / "crl.pem"

    def settings(self, *, clients: bool = False, crl: bool = False, **more: Any) -> TlsSettings:
        given = {"certificate": str(self.server.certificate), "key": str(self.server.key), **more}
        if clients or crl:
            given["client_ca"] = str(self.clients.file)
        if crl:
            given["client_crl"] = str(self.crl)
        return TlsSettings(**given)

    def context(self, pair: Pair | None = None) -> ssl.SSLContext:
        return self.servers.client_context(pair)

    def serve(
        self, tls: TlsSettings | None = None, **more: Any
    ) -> "contextlib.AbstractContextManager[Server]":
        return server(
            self.folder / "data",
            **{"context": self.context(), "tls": tls or self.settings(), "anonymous": True, **more},
        )


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def tls_of(running: Server) -> Tls:
    assert running.service.tls is not None
    return running.service.tls


def counted(running: Server) -> dict[str, int]:
    return dict(tls_of(running).handshakes)


def open_connections(running: Server) -> int:
    assert running.service._server is not None
    return len(running.service._server.server_state.connections)


def connected(running: Server) -> socket.socket:
    """A connection that has said nothing yet."""
    return socket.create_connection(running.address, timeout=60)


def is_ended(client: socket.socket) -> bool:
    try:
        return client.recv(1) == b""
    except OSError:
        return True


# --- what it speaks --------------------------------------------------------------------------------


def test_what_it_speaks(files: Files, caplog: pytest.LogCaptureFixture) -> None:
    with files.serve(files.settings(min_version="1.2")) as running:
        assert running.service.url.startswith("https://127.0.0.1:")
        assert running.client.get("/v1/streams").json() == {"streams": []}
        for version, name in ((ssl.TLSVersion.TLSv1_2, "TLSv1.2"), (ssl.TLSVersion.TLSv1_3, "TLSv1.3")):
            context = files.context()
            context.minimum_version = context.maximum_version = version
            session = None
            for _ in range(2):
                bare = connected(running)
                with context.wrap_socket(bare, server_hostname="127.0.0.1", session=session) as client:
                    client.sendall(ALIVE)
                    assert client.recv(15) == b"HTTP/1.1 200 OK"
                    assert client.version() == name
                    # Whoever comes again shows a certificate again; Python cannot have TLS 1.2 do so.
                    assert not client.session_reused or name == "TLSv1.2"
                    session = client.session


def test_versions_that_are_too_old(files: Files) -> None:
    with files.serve() as running:
        context = files.context()
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        with pytest.raises((ssl.SSLError, ConnectionError)):
            RawClient(running.address, context)
        assert running.client.get("/healthz").status_code == 200


def test_whoever_waits_for_an_answer_says_no_goodbye_before(files: Files, recwarn: Any, caplog: Any) -> None:
    """The end of TLS ends both directions: an answer that is under way is given up, and nothing is logged of it."""
    with files.serve() as running, RawClient(running.address, files.context()) as client:
        client.send(b"POST /v1/streams HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n")
        assert isinstance(client.socket, ssl.SSLSocket)
        with contextlib.suppress(OSError):
            client.socket.unwrap()
        until(lambda: open_connections(running) <= 1)
    assert not [each for each in caplog.records if "ssl" in each.getMessage().lower()]


def test_browsers_and_changes(files: Files) -> None:
    with files.serve() as running:
        for origin, status in ((running.service.url, 400), ("https://evil.example.com", 403)):
            headers = {"Origin": origin, "Content-Type": "application/json"}
            answer = running.client.post("/v1/streams", content=b"{", headers=headers)
            assert answer.status_code == status


# --- where it starts -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"certificate": "x"}, "http.tls.certificate: it goes with http.tls.key"),
        ({"key": "x"}, "http.tls.key: it goes with http.tls.certificate"),
        ({"client_ca": "x"}, "http.tls.client_ca: it goes with http.tls.certificate"),
        (
            {"certificate": "x", "key": "y", "client_crl": "z"},
            "http.tls.client_crl: it goes with http.tls.client_ca",
        ),
        (
            {"certificate": "x", "key": "y", "client_ca": "z"},
            "http.tls.client_ca: there are no tokens, so that whoever has a certificate of it could do anything: ",
        ),
    ],
)
def test_settings_that_do_not_go_together(given: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        certificates_of(HttpSettings(tls=TlsSettings(**given)))
    assert str(raised.value).startswith(message)
    assert ("RAILGUN_HTTP__ANONYMOUS=true" in str(raised.value)) == ("tokens" in message)


def test_what_a_start_warns_of(files: Files, caplog: pytest.LogCaptureFixture) -> None:
    files.server.key.chmod(0o644)
    with files.serve():
        assert "everybody may read this private key" in caplog.text
        assert "clear text" not in caplog.text


def test_the_health_check_of_the_image(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether TLS is spoken or not, with the address that the image has."""
    url = ""
    for tls in (TlsSettings(), files.settings(clients=True)):
        context = {"context": None} if tls == TlsSettings() else {}
        with files.serve(tls, **context, wait=True) as running:
            url = f"http://127.0.0.1:{running.address[1]}"
            for path, code in (("/healthz", 0), ("/v1/streams", int(tls != TlsSettings()))):
                monkeypatch.setenv(health.URL_VARIABLE, url + path)
                assert health.main() == code
    assert health.main() == 1


def test_the_health_check_asks_straight_and_as_the_settings_say(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nobody listens there.
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
        monkeypatch.setenv(name.upper(), "http://127.0.0.1:9")
    assert KEYS["http.tls.certificate"].variable == health.CERTIFICATE_VARIABLE
    with files.serve(files.settings(clients=True), wait=True) as running:
        url = f"http://127.0.0.1:{running.address[1]}/healthz"
        tls = tls_of(running)
        health.check(url, {health.CERTIFICATE_VARIABLE: "server.crt"})
        health.check(url.replace("http", "https", 1), {})
        assert tls.handshakes["failed"] == 0
        for environment in ({}, {health.CERTIFICATE_VARIABLE: "none"}):
            health.check(url, environment)
        until(lambda: tls.handshakes["failed"] == 2)
    with files.serve(TlsSettings(), context=None, wait=True) as running:
        health.check(f"http://127.0.0.1:{running.address[1]}/healthz", {})
    for wrong in ("127.0.0.1:8080/healthz", "ftp://127.0.0.1/healthz", "http://127.0.0.1:x/"):
        with pytest.raises(ValueError, match=r"no address of a server|Port"):
            health.check(wrong, {})


def test_the_health_check_reads_no_authorities_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr(ssl.SSLContext, "load_default_certs", read)
    with pytest.raises(OSError):
        health.check("https://127.0.0.1:9/healthz", {})


# --- limits ----------------------------------------------------------------------------------------


def test_handshakes_count_among_the_connections(files: Files) -> None:
    with files.serve(connections_limit=8) as running, contextlib.ExitStack() as held:
        assert running.client.get("/healthz").status_code == 200
        silent = [held.enter_context(connected(running)) for _ in range(7)]
        until(lambda: _under_way(running) == 7)
        with connected(running) as one_too_many:
            assert is_ended(one_too_many)
        assert counted(running)["full"] == 1
        # Whoever is in already is answered as ever.
        assert running.client.get("/healthz").status_code == 200
        silent[0].close()
        until(lambda: _under_way(running) == 6)
        with RawClient(running.address, files.context()) as client:
            client.send(ALIVE)
            assert client.response().status == 200


def _under_way(running: Server) -> int:
    return tls_of(running).under_way


@pytest.mark.parametrize("sent", [b"", b"\x16"])
def test_two_thousand_silent_connections(files: Files, monkeypatch: pytest.MonkeyPatch, sent: bytes) -> None:
    """They say nothing, or a byte. Twice as many as may be: the limit holds, who is in is answered, and nothing stays
    when they are gone.
    """
    # However long it takes to open them.
    monkeypatch.setattr(handshakes, "HANDSHAKE_S", 3_000.0)
    raise_open_files_limit()
    limit = HttpSettings().connections_limit
    with files.serve() as running, RawClient(running.address, files.context()) as kept:
        running.client.close()
        until(lambda: open_connections(running) == 1)
        with contextlib.ExitStack() as held:
            for place in range(2_000):
                client = held.enter_context(connected(running))
                with contextlib.suppress(OSError):
                    client.sendall(sent)
                if place % 50 == 0:
                    kept.send(ALIVE)
                    assert kept.response().status == 200
            until(lambda: counted(running).get("full", 0) == 2_001 - limit)
            assert tls_of(running).under_way == limit - 1
            kept.send(ALIVE)
            assert kept.response().status == 200
        until(lambda: tls_of(running).under_way == 0)
        assert counted(running)["failed"] == limit - 1


def test_who_says_nothing_costs_no_encryption(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    """Objects of TLS by the thousand would make garbage collections long."""
    made = 0
    wrap_bio = ssl.SSLContext.wrap_bio

    def counted_wrap(self: ssl.SSLContext, *given: Any, **more: Any) -> ssl.SSLObject:
        nonlocal made
        made += 1
        return wrap_bio(self, *given, **more)

    with files.serve() as running, contextlib.ExitStack() as held:
        monkeypatch.setattr(ssl.SSLContext, "wrap_bio", counted_wrap)
        for _ in range(20):
            held.enter_context(connected(running))
        until(lambda: _under_way(running) == 20)
        assert made == 0
        with RawClient(running.address, files.context()) as client:
            client.send(ALIVE)
            assert client.response().status == 200
        assert made == 1


def test_a_client_that_cannot_be_watched(files: Files, caplog: pytest.LogCaptureFixture) -> None:
    """The system watches only so many files: a client is lost then, and no more."""
    with files.serve() as running:
        assert running.service._server is not None
        (accepting,) = running.service._server.servers
        loop = accepting._loop  # type: ignore[attr-defined]
        accepting._loop = Unwatched(loop)  # type: ignore[attr-defined]
        with connected(running) as client:
            assert is_ended(client)
        accepting._loop = loop  # type: ignore[attr-defined]
        until(lambda: "no connection can be accepted: No space left on device" in caplog.text)
        assert _under_way(running) == 0
        with RawClient(running.address, files.context()) as client:
            client.send(ALIVE)
            assert client.response().status == 200


class Unwatched:
    """An event loop that cannot watch one file more."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loop, name)

    def add_reader(self, *_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("sent", [b"", b"\x16\x03\x01\x02", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"])
def test_a_handshake_that_does_not_come_about(
    files: Files, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    """Silent from the start, or slow: a byte now and then does not lengthen the time."""
    with files.serve() as running:
        # The client of `serve` has made its handshake by now, however long that took.
        monkeypatch.setattr(handshakes, "HANDSHAKE_S", 1.0)
        _ends_soon(running, sent)


def _ends_soon(running: Server, sent: bytes) -> None:
    with connected(running) as client:
        begun_s = time.monotonic()
        client.settimeout(0.05)
        ended = False
        while not ended and time.monotonic() - begun_s < 30:
            with contextlib.suppress(OSError):
                client.sendall(sent[:1])
            sent = sent[1:]
            try:
                ended = client.recv(1) == b""
            except TimeoutError:
                continue
            except OSError:
                ended = True
        assert ended
        until(lambda: _under_way(running) == 0)
        assert counted(running).get("late", 0) + counted(running).get("failed", 0) == 1


def test_half_of_a_connection(files: Files) -> None:
    """Closed for sending before the handshake, after it, and amid a request: nothing stays."""
    with files.serve() as running:
        with connected(running) as client:
            client.shutdown(socket.SHUT_WR)
            assert is_ended(client)
        for sent in (b"", ALIVE[:10]):
            with RawClient(running.address, files.context()) as secured:
                secured.send(sent)
                # Of TCP alone; TLS knows nothing of it.
                socket.socket.shutdown(secured.socket, socket.SHUT_WR)
                assert is_ended(secured.socket)
        running.client.close()
        until(lambda: (_under_way(running), open_connections(running)) == (0, 0))


def test_a_client_that_does_not_say_goodbye(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server says the end of TLS, and does not wait for the client for long."""
    monkeypatch.setattr(connection, "DISCARD_S", 1.0)
    with files.serve() as running, RawClient(running.address, files.context()) as client:
        client.send(b"GET / HTTP/1.0\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        running.client.close()
        # It reads nothing, and leaves its own half open.
        until(lambda: open_connections(running) == 0)


def test_a_stop_does_not_wait_for_those_who_idle(files: Files) -> None:
    with (
        files.serve(shutdown_grace_s=3_000.0) as running,
        RawClient(running.address, files.context()) as idle,
    ):
        idle.send(ALIVE)
        assert idle.response().status == 200
        silent = connected(running)
        until(lambda: tls_of(running).under_way == 1)
        running.service.stop()
        assert is_ended(silent)
        silent.close()
        until(lambda: running.code is not None)
    assert running.code == 0


# --- other certificates ----------------------------------------------------------------------------


@pytest.fixture
def answers() -> Callable[[Server, ssl.SSLContext], int]:
    def asked(running: Server, context: ssl.SSLContext) -> int:
        """The status of a new connection's request; 0 where the connection does not come about."""
        try:
            with RawClient(running.address, context) as client:
                client.send(STREAMS)
                return client.response().status
        except (OSError, IndexError, AssertionError):
            return 0

    return asked


def replaced(running: Server, files: Files, **more: Any) -> None:
    """Other certificates take the place of those of a server, as a reload does it."""
    settings = HttpSettings(anonymous=True, tls=files.settings(**more))
    certificates = certificates_of(settings)
    assert certificates is not None
    tls_of(running).replace(certificates)


def test_nothing_is_served_between_two_changes_that_belong_together(files: Files) -> None:
    with files.serve() as running:
        tls, seen = tls_of(running), list[bool]()
        before, after = tls.certificates, certificates_of(HttpSettings(anonymous=True, tls=files.settings()))
        assert after is not None

        def also() -> None:
            # In the loop, which does the next thing only once the certificates are there too.
            asyncio.get_running_loop().call_soon(lambda: seen.append(tls.certificates is after))
            assert tls.certificates is before

        tls.replace(after, also)
        until(lambda: bool(seen))
        assert seen == [True]


def test_a_new_certificate_is_shown_to_who_comes_then(files: Files) -> None:
    with files.serve() as running:
        with RawClient(running.address, files.context()) as kept:
            seen = [_shown(kept)]
            files.server = files.servers.pair()
            replaced(running, files)
            # Nothing is changed about who may come, so that connections stay.
            kept.send(STREAMS)
            assert kept.response().status == 200
        with RawClient(running.address, files.context()) as fresh:
            seen.append(_shown(fresh))
    assert len(set(seen)) == 2


def _shown(client: RawClient) -> bytes:
    assert isinstance(client.socket, ssl.SSLSocket)
    found = client.socket.getpeercert(binary_form=True)
    assert found is not None
    return found


def check_revocation(files: Files, answers: Callable[[Server, ssl.SSLContext], int]) -> None:
    """Who is revoked is out at once: on the connection that is there, and on another."""
    good, bad = files.clients.pair(), files.clients.pair()
    files.crl.write_bytes(files.clients.revoking())
    context = files.context(good)
    # Longer than it takes to end connections whose clients idle.
    with files.serve(files.settings(crl=True), context=context, shutdown_grace_s=30.0) as running:
        with RawClient(running.address, files.context(bad)) as kept:
            kept.send(STREAMS)
            assert kept.response().status == 200
            files.crl.write_bytes(files.clients.revoking(bad))
            replaced(running, files, crl=True)
            with contextlib.suppress(OSError):
                kept.send(STREAMS)
            assert is_ended(kept.socket), "a kept connection"
        assert answers(running, files.context(bad)) == 0, "another connection"
        assert answers(running, context) == 200
        # As it was: this is no longer about who may come, but who may is let in again.
        files.crl.write_bytes(files.clients.revoking())
        replaced(running, files, crl=True)
        assert answers(running, files.context(bad)) == 200


def test_revocation(files: Files, answers: Callable[[Server, ssl.SSLContext], int]) -> None:
    check_revocation(files, answers)


def test_a_kept_connection_that_outlives_a_revocation_is_noticed(
    files: Files, answers: Callable[[Server, ssl.SSLContext], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A canary."""
    monkeypatch.setattr(connection.Connection, "end", lambda self: None)
    with pytest.raises(AssertionError, match="a kept connection"):
        check_revocation(files, answers)


def test_other_cas(files: Files, answers: Callable[[Server, ssl.SSLContext], int]) -> None:
    old = files.context(files.clients.pair())
    with files.serve(files.settings(clients=True), context=old) as running:
        assert answers(running, old) == 200
        files.clients = Authority(files.folder, "others")
        replaced(running, files, clients=True)
        assert answers(running, old) == 0
        assert answers(running, files.context(files.clients.pair())) == 200
        assert answers(running, files.context()) == 403


def test_the_answer_under_way_is_finished(files: Files) -> None:
    """Also where the body is still on its way; then the connection closes. Of lines that run for long see
    test_lines_and_certificates.py.
    """
    good = files.context(files.clients.pair())
    files.crl.write_bytes(files.clients.revoking())
    body = b'[{"k": "a"}, {"k": "b"}]'
    with files.serve(files.settings(crl=True), context=good) as running:
        running.define('[streams.s]\npartitioners = ["k"]\n[streams.s.fields]\nk = "string"\n')
        with RawClient(running.address, good) as client:
            client.send(
                b"POST /v1/streams/s/events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                b"Content-Length: %d\r\n\r\n%s" % (len(body), body[:10])
            )
            until(lambda: "BODY" in stages(running))
            files.crl.write_bytes(files.clients.revoking(files.clients.pair()))
            replaced(running, files, crl=True)
            client.send(body[10:])
            response = client.response()
            assert response.status == 200
            assert ["metrics" in each for each in json.loads(response.body)] == [True, True]
            assert is_ended(client.socket)


@pytest.mark.parametrize("size", [1, len(STREAMS) - 2])
def test_a_request_whose_head_is_half_there_is_not_answered(files: Files, size: int) -> None:
    good = files.context(files.clients.pair())
    files.crl.write_bytes(files.clients.revoking())
    with (
        files.serve(files.settings(crl=True), context=good) as running,
        RawClient(running.address, good) as client,
    ):
        client.send(STREAMS)
        assert client.response().status == 200
        client.send(STREAMS[:size])
        until(lambda: "HEAD" in stages(running))
        files.crl.write_bytes(files.clients.revoking(files.clients.pair()))
        replaced(running, files, crl=True)
        with contextlib.suppress(OSError):
            client.send(STREAMS[size:])
        assert is_ended(client.socket)


def stages(running: Server) -> list[str]:
    """Of its connections: what they wait for."""
    assert running.service._server is not None
    return [each._stage.name for each in running.service._server._connections()]


def test_a_handshake_that_began_before_is_not_let_in(files: Files) -> None:
    """By certificates that said of other clients that they are good."""
    good, bad = files.clients.pair(), files.clients.pair()
    files.crl.write_bytes(files.clients.revoking())
    with files.serve(files.settings(crl=True), context=files.context(good)) as running:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = files.context(bad).wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
        with connected(running) as bare:
            with pytest.raises(ssl.SSLWantReadError):
                client.do_handshake()
            bare.sendall(outgoing.read())
            incoming.write(bare.recv(1 << 16))
            while outgoing.pending == 0:
                try:
                    client.do_handshake()
                except ssl.SSLWantReadError:
                    incoming.write(bare.recv(1 << 16))
            files.crl.write_bytes(files.clients.revoking(bad))
            replaced(running, files, crl=True)
            client.write(STREAMS)
            with contextlib.suppress(OSError):
                bare.sendall(outgoing.read())
            assert is_ended(bare)


def test_it_says_who_was_refused_and_when_it_ends(
    files: Files, caplog: pytest.LogCaptureFixture, answers: Callable[[Server, ssl.SSLContext], int]
) -> None:
    caplog.set_level(logging.INFO)
    good, bad = files.clients.pair(), files.clients.pair()
    files.crl.write_bytes(files.clients.revoking(bad))
    with files.serve(files.settings(crl=True), context=files.context(good)) as running:
        assert answers(running, files.context(bad)) == 0
        until(lambda: any(each.name == "railgun.audit" for each in caplog.records))
        assert counted(running)["untrusted"] == 1
        [record] = [each for each in caplog.records if each.name == "railgun.audit"]
        assert record.getMessage() == "refused: the client's certificate: certificate revoked"
        assert json.dumps(record.__dict__, default=str).count("127.0.0.1") == 1
        text = running.client.get("/metrics").text
        assert 'railgun_handshakes_total{outcome="untrusted"} 1.0' in text
        ends = [line for line in text.splitlines() if line.startswith("railgun_certificate_end_seconds{")]
        assert [line.split('"')[1] for line in ends] == ["server", "client_ca", "client_crl"]
        assert float(ends[0].split()[1]) == files.server.leaf.not_valid_after_utc.timestamp()
