"""What a donor answers: signed requests alone, for files of a manifest alone, within its limits."""

import asyncio
import contextlib
import errno
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from railgun.access.certificate_files import CertificateFiles, read_certificates
from railgun.transfer import serving, snapshots
from railgun.transfer.donor import Donor, DonorAddress, DonorBusyError, DonorError
from railgun.transfer.keys import FETCH_HEADER, SIGNATURE_HEADER, new_key, request_signature
from tests.certificates import Authority
from tests.transfer.made_up import POSITION, TASK, MadeUpDonor, content, described, donors
from tests.unit.local_units import awaited

_FILES = content()
_SEGMENT = "reservoir/000000000001.seg"


class _Asking:
    """Sends requests to a donor, signed with a key."""

    def __init__(self, donor: MadeUpDonor, key: str | None = None) -> None:
        self._key, self._url = key or donor.key, donor.address.url
        self._client = httpx.Client(base_url=self._url, trust_env=False)

    def get(
        self, path: str, part: str = "", *, method: str = "GET", sign: str | None = None
    ) -> httpx.Response:
        signature = request_signature(self._key, method, sign or path, part, "f")
        headers = {FETCH_HEADER: "f", SIGNATURE_HEADER: signature, **({"range": part} if part else {})}
        request = httpx.Request(method, self._url + path, headers=headers)
        # As it is: httpx would take dots out of the path.
        request.extensions["target"] = path.encode()
        return self._client.send(request)

    def close(self) -> None:
        self._client.close()


@contextmanager
def _served(tmp_path: Path) -> Iterator[tuple[MadeUpDonor, _Asking, str]]:
    """A donor, someone who asks it, and the path of a snapshot."""
    (tmp_path / "secret").write_text("secret")
    donor = MadeUpDonor(tmp_path, _FILES)
    asking = _Asking(donor)
    with donors(donor):
        name = asking.get("/v1/units/0/snapshots/payments.0%2Fcard%2F3/0").json()["name"]
        assert asking.get(f"/v1/snapshots/{name}/manifest").status_code == 200
        yield donor, asking, f"/v1/snapshots/{name}"
    asking.close()


def test_no_request_is_answered_without_its_signature(tmp_path: Path) -> None:
    with _served(tmp_path) as (donor, asking, snapshot):
        file = f"{snapshot}/files/{_SEGMENT}"
        stranger = _Asking(donor, new_key())
        assert stranger.get(file).status_code == 401
        stranger.close()
        assert asking.get(file, sign=f"{snapshot}/manifest").status_code == 401
        assert asking.get(f"{file}?x", sign=file).status_code == 401
        assert asking.get(file).content == _FILES[_SEGMENT]
        assert httpx.get(donor.address.url + file, trust_env=False).status_code == 401
        # The range is signed too.
        signature = request_signature(donor.key, "GET", file, "", "f")
        headers = {FETCH_HEADER: "f", SIGNATURE_HEADER: signature, "range": "bytes=1-"}
        assert httpx.get(donor.address.url + file, headers=headers, trust_env=False).status_code == 401


@pytest.mark.parametrize(
    "path",
    [
        "/files/../../../secret",
        "/files/..%2F..%2F..%2Fsecret",
        "/files/%2e%2e/%2e%2e/secret",
        "/files/reservoir/../../../secret",
        "/files/snapshot.json",
        "/files/reservoir",
        "/files/",
        "/files//etc/passwd",
        "/other",
    ],
)
def test_only_files_of_the_manifest_are_served(tmp_path: Path, path: str) -> None:
    with _served(tmp_path) as (_, asking, snapshot):
        assert asking.get(snapshot + path).status_code == 404
        assert asking.get(f"/v1/snapshots/{'0' * 32}/files/{_SEGMENT}").status_code == 404
        assert asking.get(f"/v1/snapshots/../tasks{path}").status_code == 404


def test_a_link_in_a_snapshot_is_not_followed(tmp_path: Path) -> None:
    with _served(tmp_path) as (donor, asking, snapshot):
        (found,) = donor.folders
        (found / _SEGMENT).unlink()
        (found / _SEGMENT).symlink_to(tmp_path / "secret")
        assert asking.get(f"{snapshot}/files/{_SEGMENT}").status_code == 500


def test_ranges(tmp_path: Path) -> None:
    body = _FILES[_SEGMENT]
    with _served(tmp_path) as (_, asking, snapshot):
        file = f"{snapshot}/files/{_SEGMENT}"
        for part, begin, end in (
            ("bytes=0-", 0, len(body)),
            ("bytes=17-", 17, len(body)),
            ("bytes=17-17", 17, 18),
            (f"bytes=5-{len(body) + 7}", 5, len(body)),
        ):
            answer = asking.get(file, part)
            assert (answer.status_code, answer.content) == (206, body[begin:end])
            assert answer.headers["content-range"] == f"bytes {begin}-{end - 1}/{len(body)}"
        for part in (f"bytes={len(body)}-", "bytes=-5", "bytes=5-4", "bytes=1-2,4-5", "lines=1-2"):
            assert asking.get(file, part).status_code == 416
        assert asking.get(f"{snapshot}/files/state/end.mark").content == b""


def test_a_donor_sends_no_more_than_its_rate(tmp_path: Path) -> None:
    donor = MadeUpDonor(tmp_path, _FILES, rate=100_000)
    size = len(_FILES[_SEGMENT])
    with donors(donor), Donor(donor.address, "f", True, lambda hashed: None) as asking:
        name = asking.snapshot(0, TASK)
        asking.manifest(name)
        begun_s = time.monotonic()
        assert b"".join(asking.content(name, _SEGMENT, 0)) == _FILES[_SEGMENT]
        took_s = time.monotonic() - begun_s
    # At once come half a second's bytes, for which there was time before, and the next chunk of a quarter of a second.
    assert took_s >= size / 100_000 - 0.8


def test_two_fetches_are_served_and_a_third_comes_again(tmp_path: Path) -> None:
    donor = MadeUpDonor(tmp_path, _FILES)
    with donors(donor):
        with (
            Donor(donor.address, "a", True, lambda hashed: None) as one,
            Donor(donor.address, "b", True, lambda hashed: None) as two,
            Donor(donor.address, "c", True, lambda hashed: None) as three,
        ):
            assert one.snapshot(0, TASK) == two.snapshot(0, TASK)
            with pytest.raises(DonorBusyError):
                three.snapshot(0, TASK)
        with Donor(donor.address, "c", True, lambda hashed: None) as three:
            assert three.snapshot(0, TASK)
    assert len(donor.orders) == 1


def test_a_snapshot_of_another_task_or_unit_is_another_one(tmp_path: Path) -> None:
    donor = MadeUpDonor(tmp_path, _FILES)
    with donors(donor), Donor(donor.address, "a", True, lambda hashed: None) as asking:
        names = {
            asking.snapshot(unit, task) for unit, task in ((0, TASK), (1, TASK), (0, "other"), (0, TASK))
        }
    assert len(names) == 3
    assert {(each.task, each.name in names) for each in donor.orders} == {(TASK, True), ("other", True)}


def test_one_that_is_too_old_is_not_shared(tmp_path: Path) -> None:
    """The log of its fetcher has lost more meanwhile."""
    donor = MadeUpDonor(tmp_path, _FILES)
    with donors(donor), Donor(donor.address, "a", True, lambda hashed: None) as asking:
        first = asking.snapshot(0, TASK, POSITION)
        assert asking.snapshot(0, TASK, 0) == first
        with pytest.raises(DonorError, match=f"at offset {POSITION}, and {POSITION + 1} is needed"):
            asking.snapshot(0, TASK, POSITION + 1)
        donor.what = described(position=POSITION + 5)
        later = asking.snapshot(0, TASK, POSITION + 1)
        assert asking.snapshot(0, TASK, POSITION + 5) == later
        assert asking.manifest(later).snapshot.position == POSITION + 5
    assert len(donor.orders) == 3


def test_a_snapshot_that_was_deleted_is_made_again(tmp_path: Path) -> None:
    donor = MadeUpDonor(tmp_path, _FILES, error="its disk is full")
    with donors(donor), Donor(donor.address, "a", True, lambda hashed: None) as asking:
        for _ in range(2):
            with pytest.raises(DonorError, match="it has answered 409: its disk is full"):
                asking.snapshot(0, TASK)
    assert len({each.name for each in donor.orders}) == 2


def test_connections_that_say_nothing_and_too_many_are_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "IDLE_S", 0.2)
    monkeypatch.setattr(serving, "CONNECTIONS_MAX", 3)
    donor = MadeUpDonor(tmp_path, _FILES)
    where = urlsplit(donor.address.url)
    with donors(donor):
        opened = [socket.create_connection((where.hostname, where.port), 10) for _ in range(4)]
        opened[0].sendall(b"GET / HTTP/1.1\r\n")
        for each in opened:
            assert _ends(each)
            each.close()
        monkeypatch.setattr(serving, "IDLE_S", 60.0)
        too_long = socket.create_connection((where.hostname, where.port), 10)
        too_long.sendall(b"GET / HTTP/1.1\r\nx: " + b"x" * serving.HEAD_BYTES_MAX + b"\r\n")
        assert b" 400 " in too_long.recv(100)
        too_long.close()


def _unread(donor: MadeUpDonor, request: bytes) -> socket.socket:
    """A connection that sends requests until the server takes no more, and reads no answer."""
    where = urlsplit(donor.address.url)
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    made.settimeout(2.0)
    made.connect((where.hostname, where.port))
    # It takes no more, or has closed the connection by now.
    with contextlib.suppress(OSError):
        while True:
            made.sendall(request)
    made.setblocking(False)
    return made


def _is_closed(connection: socket.socket) -> bool:
    """Whether the other side has ended a connection. Nothing is read."""
    try:
        connection.send(b"x")
    except BlockingIOError:
        return False
    except OSError:
        return True
    return False


def test_connections_that_do_not_take_their_answers_are_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever has no key can ask again and again too."""
    monkeypatch.setattr(serving, "IDLE_S", 0.5)
    monkeypatch.setattr(serving, "TAKES_S", 1.0)
    monkeypatch.setattr(serving, "CONNECTIONS_MAX", 3)
    donor = MadeUpDonor(tmp_path, _FILES)
    with donors(donor):
        opened = [_unread(donor, b"GET /v1/fetch HTTP/1.1\r\nhost: x\r\n\r\n" * 100) for _ in range(3)]
        awaited(lambda: all(map(_is_closed, opened)))
        with Donor(donor.address, "f", True, lambda hashed: None) as asking:
            assert asking.snapshot(0, TASK)
        for each in opened:
            each.close()


def test_a_file_is_read_no_more_once_its_fetcher_is_gone(tmp_path: Path) -> None:
    size = len(_FILES[_SEGMENT])
    # It would send for half a minute.
    donor = MadeUpDonor(tmp_path, _FILES, rate=size // 30)
    with donors(donor):
        with Donor(donor.address, "f", True, lambda hashed: None) as asking:
            name = asking.snapshot(0, TASK)
            asking.manifest(name)
            path = f"/v1/snapshots/{name}/files/{_SEGMENT}"
            headers = {
                FETCH_HEADER: "f",
                SIGNATURE_HEADER: request_signature(donor.key, "GET", path, "", "f"),
            }
            with httpx.stream("GET", donor.address.url + path, headers=headers, trust_env=False) as answer:
                assert len(next(answer.iter_raw())) < size
        awaited(lambda: _sent_bytes(donor) == _sent_bytes(donor, after_s=1.0))
        assert 0 < _sent_bytes(donor) < size


def _sent_bytes(donor: MadeUpDonor, after_s: float = 0.0) -> int:
    time.sleep(after_s)
    return donor.figures.now()["served_bytes_total"]


def _thousand(address: DonorAddress) -> list[socket.socket]:
    """Connections that say nothing."""
    where = urlsplit(address.url)
    return [socket.create_connection((where.hostname, where.port), 10) for _ in range(1_000)]


@pytest.mark.parametrize("has_tls", [False, True])
def test_a_thousand_connections_leave_room_for_fetches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, has_tls: bool
) -> None:
    """Handshakes that do not begin count too."""
    monkeypatch.setattr(serving, "IDLE_S", 2.0)
    pair = Authority(tmp_path / "ca").pair()
    files = CertificateFiles(str(pair.certificate), str(pair.key))
    tls = read_certificates(files, time.time()).context if has_tls else None
    donor = MadeUpDonor(tmp_path / "n0", _FILES, tls=tls)
    with donors(donor):
        before = len(os.listdir("/proc/self/fd"))
        opened = _thousand(donor.address)
        closed = [each for each in opened if _ends_within(each, 0.05)]
        assert len(closed) >= 1_000 - serving.CONNECTIONS_MAX
        assert len(os.listdir("/proc/self/fd")) - before <= 1_000 + serving.CONNECTIONS_MAX
        awaited(lambda: all(_ends_within(each, 1.0) for each in opened))
        for each in opened:
            each.close()
        awaited(lambda: len(os.listdir("/proc/self/fd")) <= before)


def _ends_within(connection: socket.socket, timeout_s: float) -> bool:
    connection.settimeout(timeout_s)
    try:
        return _ends(connection)
    except TimeoutError:
        return False


def _ends(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def _sweep(donor: MadeUpDonor, now_s: float) -> None:
    donor.snapshots._now_s = lambda: now_s
    asyncio.run(donor.snapshots.sweep())


def test_a_snapshot_is_deleted_when_it_was_unread_for_a_minute_and_never_while_it_is_read(
    tmp_path: Path,
) -> None:
    with _served(tmp_path) as (donor, asking, snapshot):
        name, now_s = snapshot.rpartition("/")[2], time.monotonic()
        with donor.snapshots.opened(name, _SEGMENT) as (handle, _):
            _sweep(donor, now_s + 1_000)
            assert len(donor.folders) == 1
            assert os.pread(handle, 10, 0) == _FILES[_SEGMENT][:10]
        _sweep(donor, now_s + 1_000 + snapshots.UNREAD_S - 1)
        assert len(donor.folders) == 1
        _sweep(donor, now_s + 1_001 + snapshots.UNREAD_S)
        assert donor.folders == []
        assert asking.get(f"{snapshot}/files/{_SEGMENT}").status_code == 404


def test_the_oldest_snapshot_that_is_not_read_goes_first_when_room_is_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    donor = MadeUpDonor(tmp_path, _FILES)
    with donors(donor), Donor(donor.address, "a", True, lambda hashed: None) as asking:
        first, second, third = (asking.snapshot(unit, TASK) for unit in range(3))
        asking.manifest(second)
        short = iter([True, True, False])
        monkeypatch.setattr(donor.snapshots, "_is_room_short", lambda: next(short))
        with donor.snapshots.opened(second, _SEGMENT):
            _sweep(donor, time.monotonic() + 40)
            assert [each.name for each in donor.folders] == [second]
        assert first != third


def test_snapshots_of_an_earlier_start_are_deleted(tmp_path: Path) -> None:
    (tmp_path / "snapshots" / "ab" / "state").mkdir(parents=True)
    donor = MadeUpDonor(tmp_path, _FILES)
    with donors(donor):
        assert donor.folders == []


def test_a_snapshot_that_nobody_ordered_is_deleted(tmp_path: Path) -> None:
    """It was ordered by a process that was killed, or it came after the order was given up."""
    with _served(tmp_path) as (donor, _, snapshot):
        donor.write("ab")
        _sweep(donor, time.monotonic())
        assert [each.name for each in donor.folders] == [snapshot.rpartition("/")[2]]


def test_a_part_of_a_snapshot_that_nobody_ordered_is_deleted_once_no_unit_can_be_making_it(
    tmp_path: Path,
) -> None:
    donor, now_s = MadeUpDonor(tmp_path, _FILES), time.monotonic()
    with donors(donor):
        (donor.folder / "ab" / "state").mkdir(parents=True)
        _sweep(donor, now_s)
        _sweep(donor, now_s + 599)
        assert [each.name for each in donor.folders] == ["ab"]
        _sweep(donor, now_s + 600)
        assert donor.folders == []


def test_what_a_snapshot_that_failed_has_left_is_deleted(tmp_path: Path) -> None:
    donor = MadeUpDonor(tmp_path, _FILES, error="a folder that is there")
    with donors(donor), Donor(donor.address, "a", True, lambda hashed: None) as asking:
        # The unit was killed amid it.
        donor.on_order = lambda name: (donor.folder / name / "state").mkdir(parents=True)
        with pytest.raises(DonorError, match="a folder that is there"):
            asking.snapshot(0, TASK)
        assert donor.folders == []


def test_a_snapshot_that_could_not_be_read_is_not_given_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = snapshots.make_manifest

    def fail(*_: object) -> bytes:
        monkeypatch.setattr(snapshots, "make_manifest", make)
        raise OSError(errno.EIO, "the disk does not answer")

    monkeypatch.setattr(snapshots, "make_manifest", fail)
    donor = MadeUpDonor(tmp_path, _FILES)
    with donors(donor), Donor(donor.address, "a", True, lambda hashed: None) as asking:
        first = asking.snapshot(0, TASK)
        with pytest.raises(DonorError, match="the snapshot cannot be read: the disk does not answer"):
            asking.manifest(first)
        second = asking.snapshot(0, TASK)
        assert second != first
        assert len(asking.manifest(second).files) == len(_FILES)
        _sweep(donor, time.monotonic() + snapshots.UNREAD_S)
        assert first not in [each.name for each in donor.folders]
