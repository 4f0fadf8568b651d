"""Fetches over loopback: what is fetched is the snapshot, whatever donors do."""

import asyncio
import errno
import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from railgun.node.relay import Fetched
from railgun.transfer import donor as donor_module
from railgun.transfer import fetch as fetch_module
from railgun.transfer import target as target_module
from railgun.transfer.donor import Donor, DonorAddress, DonorError
from railgun.transfer.fetch import StoppedError, TaskFetch
from railgun.transfer.keys import new_key
from railgun.transfer.manifest import ClusterId, read_manifest
from railgun.transfer.server import Application
from tests.transfer.made_up import (
    POSITION,
    MadeUpDonor,
    content,
    described,
    donors,
    fetch_of,
    fetched,
    files_in,
    order,
    write_files,
)

_FILES = content()
_BYTES = sum(map(len, _FILES.values()))


def _fetching(folder: Path) -> Path:
    return folder.with_name(folder.name + ".fetching")


def _is_whole(folder: Path, files: dict[str, bytes] = _FILES) -> bool:
    found = files_in(_fetching(folder))
    manifest = read_manifest(found.pop("FETCHED"))
    assert {each.path for each in manifest.files} == set(files)
    return found == files


def _changed(changes: dict[str, bytes], times: int | None = None) -> Callable[[Any], Any]:
    """Make a donor that sends other bytes of some files than its manifest says; so many times."""

    def wrap(application: Application) -> Any:
        left = [times]

        async def lie(scope: Any, receive: Any, send: Any) -> None:
            path = scope["path"].partition("/files/")[2]

            async def send_changed(message: Any) -> None:
                body = message.get("body")
                if path in changes and body and (left[0] is None or left[0] > 0):
                    if left[0] is not None:
                        left[0] -= 1
                    message = {**message, "body": bytes([body[0] ^ 1]) + body[1:]}
                await send(message)

            await application(scope, receive, send_changed)

        return lie

    return wrap


def test_a_task_is_fetched(tmp_path: Path) -> None:
    donor, folder = MadeUpDonor(tmp_path / "n0", _FILES), tmp_path / "task"
    with donors(donor) as addresses:
        assert fetched(folder, addresses, "n0") == Fetched(
            "payments.0/card/3", "", POSITION, "n0/0", _BYTES, 0
        )
        assert _is_whole(folder)
        # The answer was lost: the same order again.
        assert fetched(folder, addresses, "n0") == Fetched("payments.0/card/3", "", POSITION, "", 0, _BYTES)
        assert fetched(tmp_path / "other", addresses, "n0").bytes == _BYTES
    # Fetchers share a snapshot.
    assert len(donor.orders) == 1
    assert donor.figures.now()["served_bytes_total"] == 2 * _BYTES


def test_what_the_target_has_is_linked_but_never_a_last_segment(tmp_path: Path) -> None:
    folder = tmp_path / "task"
    own = {path: body for path, body in _FILES.items() if not path.endswith("1.seg")}
    write_files(folder, {**own, "reservoir/000000000001.seg": b"another"})
    with donors(MadeUpDonor(tmp_path / "n0", _FILES)) as addresses:
        end = fetched(folder, addresses, "n0")
    there = ("reservoir/000000000002.seg", "reservoir/000000000001.open")
    assert (end.error, end.linked) == ("", sum(len(_FILES[path]) for path in there))
    assert _is_whole(folder)
    linked = {path for path in _FILES if (_fetching(folder) / path).stat().st_nlink == 2}
    assert linked == set(there)


def test_the_last_segment_of_the_target_is_not_linked_though_the_donor_has_more(tmp_path: Path) -> None:
    folder = tmp_path / "task"
    write_files(folder, {path: body for path, body in _FILES.items() if path.endswith(("1.seg", "2.seg"))})
    with donors(MadeUpDonor(tmp_path / "n0", _FILES)) as addresses:
        assert not fetched(folder, addresses, "n0").error
    assert (_fetching(folder) / "reservoir/000000000001.seg").stat().st_nlink == 2
    assert (_fetching(folder) / "reservoir/000000000002.seg").stat().st_nlink == 1


@pytest.mark.parametrize("percent", range(0, 100, 5))
def test_a_fetch_that_is_cut_off_goes_on_from_another_donor(tmp_path: Path, percent: int) -> None:
    """The second donor has the same segments, but another state."""
    after = {**_FILES, "state/000012.sst": b"x" * 70_000, "state/000013.sst": b"new"}
    del after["reservoir/000000000001.open"]
    folder, limit = tmp_path / "task", _BYTES * percent // 100
    with donors(
        MadeUpDonor(tmp_path / "n0", _FILES, rate=4_000), MadeUpDonor(tmp_path / "n1", after)
    ) as found:
        cut = fetch_of(order(folder, "n0"), found)
        note, moved = cut._note, 0

        def stop_at(size: int) -> None:
            nonlocal moved
            note(size)
            moved += size
            if moved >= limit:
                cut.stop()

        cut._note = stop_at  # type: ignore[method-assign]
        # Small chunks, without their pauses.
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("railgun.transfer.limits.Rate.take", _at_once)
            with pytest.raises(StoppedError):
                cut.run()
        assert not (_fetching(folder) / "FETCHED").exists()
        end = fetched(folder, found, "n1")
    assert end.error == ""
    assert _is_whole(folder, after)
    # Segments that had come, or had come in part, are not fetched again.
    segments = sum(len(body) for path, body in _FILES.items() if path.endswith(".seg"))
    come = max(0, min(moved - len(_FILES["reservoir/000000000001.open"]), segments))
    assert end.bytes <= sum(map(len, after.values())) - come


async def _at_once(rate: object, size: int) -> None:
    """Take no time."""


def test_a_donor_that_dies_is_left(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "task"
    first, second = MadeUpDonor(tmp_path / "n0", _FILES), MadeUpDonor(tmp_path / "n1", _FILES)
    with donors(first, second) as addresses:
        fetch = fetch_of(order(folder, "n0", "n1"), addresses)
        fetch_file = fetch._fetch_file

        def die(donor: Donor, snapshot: str, file: Any) -> None:
            if fetch.progress.donor == "n0/0" and file.path.startswith("state"):
                first.server.__exit__()
                donor._client.close()
                donor._client = donor_module.httpx.Client(base_url=addresses["n0"].url)
            fetch_file(donor, snapshot, file)

        fetch._fetch_file = die  # type: ignore[method-assign]
        end = fetch.run()
    assert (end.error, end.donor) == ("", "n1/0")
    assert end.bytes == _BYTES
    assert [
        each.getMessage() for each in caplog.records if "cannot be fetched from n0/0" in each.getMessage()
    ]
    assert _is_whole(folder)


def test_a_donor_that_stalls_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(donor_module, "STALL_S", 0.3)
    folder = tmp_path / "task"
    slow = MadeUpDonor(tmp_path / "n0", _FILES, rate=4_000)
    with donors(slow, MadeUpDonor(tmp_path / "n1", _FILES)) as addresses:
        # It sends 1,000 bytes in a quarter of a second, and then none for long.
        monkeypatch.setattr("railgun.transfer.limits.Rate.take", _stalled)
        end = fetched(folder, addresses, "n0")
        assert "n0/0: it has sent nothing for 0.3 s" in end.error
        monkeypatch.undo()
        assert fetched(folder, addresses, "n1").error == ""
    assert _is_whole(folder)


async def _stalled(rate: Any, size: int) -> None:
    if rate._bytes_per_s:
        await asyncio.sleep(1.0)


def test_a_file_that_is_damaged_once_is_fetched_once_more(tmp_path: Path) -> None:
    folder = tmp_path / "task"
    donor = MadeUpDonor(tmp_path / "n0", _FILES, wrap=_changed({"state/000012.sst": b""}, 1))
    with donors(donor) as addresses:
        end = fetched(folder, addresses, "n0")
    assert (end.error, end.bytes) == ("", _BYTES + len(_FILES["state/000012.sst"]))
    assert _is_whole(folder)


def _liar(path: str) -> Callable[[Path], MadeUpDonor]:
    return lambda data: MadeUpDonor(data, _FILES, wrap=_changed({path: b""}))


_LIARS: dict[str, tuple[Callable[[Path], MadeUpDonor], str]] = {
    "flipped segment": (_liar("reservoir/000000000002.seg"), "is not the file of the manifest"),
    "flipped state": (_liar("state/000012.sst"), "is not the file of the manifest"),
    "foreign task": (lambda data: MadeUpDonor(data, _FILES, what=described(partition=4)), "of another task"),
    "foreign log": (lambda data: MadeUpDonor(data, _FILES, what=described(topic_id="x")), "another log"),
    "foreign cluster": (
        lambda data: MadeUpDonor(data, _FILES, cluster=ClusterId("x", "railgun")),
        "another cluster",
    ),
    "newer release": (
        lambda data: MadeUpDonor(data, _FILES, what=described(release="9", formats={"commit": 99})),
        "release 9 made it, and release 1.0 cannot read it",
    ),
    "too old a position": (
        lambda data: MadeUpDonor(data, _FILES, what=described(position=1)),
        "409: its last checkpoint is at offset 1, and 100 is needed",
    ),
    "no copy": (lambda data: MadeUpDonor(data, _FILES, error="the task is not open"), "the task is not open"),
}


@pytest.mark.parametrize("liar", _LIARS)
def test_a_donor_that_lies_or_refuses_is_left(tmp_path: Path, liar: str) -> None:
    make, why = _LIARS[liar]
    folder = tmp_path / "task"
    with donors(make(tmp_path / "n0"), MadeUpDonor(tmp_path / "n1", _FILES)) as addresses:
        alone = fetched(folder, addresses, "n0")
        assert alone.error.startswith("no donor has given it: n0/0: ")
        assert why in alone.error
        assert "\n" not in alone.error
        assert not (_fetching(folder) / "FETCHED").exists()
        assert fetched(folder, addresses, "n0", "n1").donor == "n1/0"
    assert _is_whole(folder)


def test_a_key_of_an_earlier_start_is_refused(tmp_path: Path) -> None:
    with donors(MadeUpDonor(tmp_path / "n0", _FILES)) as addresses:
        old = {"n0": DonorAddress(addresses["n0"].url, new_key())}
        assert "it has answered 401" in fetched(tmp_path / "task", old, "n0").error


def test_a_manifest_of_somebody_without_the_key_is_refused(tmp_path: Path) -> None:
    def wrap(application: Application) -> Any:
        async def forge(scope: Any, receive: Any, send: Any) -> None:
            async def send_forged(message: Any) -> None:
                if scope["path"].endswith("/manifest") and message["type"] == "http.response.start":
                    others = [pair for pair in message["headers"] if pair[0] != b"railgun-signature"]
                    message = {**message, "headers": [*others, (b"railgun-signature", b"00")]}
                await send(message)

            await application(scope, receive, send_forged)

        return forge

    with donors(MadeUpDonor(tmp_path / "n0", _FILES, wrap=wrap)) as addresses:
        assert "the signature of its manifest" in fetched(tmp_path / "task", addresses, "n0").error


def test_a_fetch_whose_hashes_are_not_compared_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The canary of the tests above: without the comparison, a flipped byte arrives, and `_is_whole` says so."""

    class Blind:
        def __init__(self) -> None:
            self.hash = ""

        def update(self, chunk: bytes) -> None:
            """Hash nothing."""

        def hexdigest(self) -> str:
            return hashlib.blake2b(_FILES[self.path], digest_size=32).hexdigest()

        path = "state/000012.sst"

    take = target_module.TargetFolder.take

    def blind(self: Any, file: Any, body: Any) -> Iterator[int]:
        Blind.path = file.path
        return take(self, file, body)

    monkeypatch.setattr(target_module, "new_hash", Blind)
    monkeypatch.setattr(target_module.TargetFolder, "take", blind)
    with donors(_liar("state/000012.sst")(tmp_path / "n0")) as addresses:
        assert fetched(tmp_path / "task", addresses, "n0").error == ""
    assert not _is_whole(tmp_path / "task")


def test_every_file_is_synced_before_the_fetch_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, synced = tmp_path / "task", set[Path]()
    sync = target_module.make_durable

    def note(path: Path) -> None:
        assert not (_fetching(folder) / "FETCHED").exists()
        synced.add(path)
        sync(path)

    monkeypatch.setattr(target_module, "make_durable", note)
    there = ("state/000012.sst", "reservoir/000000000002.seg")
    # An attempt before has left a whole file, and the task has one.
    write_files(_fetching(folder), {there[0]: _FILES[there[0]]})
    write_files(folder, {there[1]: _FILES[there[1]], "reservoir/000000000009.seg": b"last"})
    with donors(MadeUpDonor(tmp_path / "n0", _FILES)) as addresses:
        assert fetched(folder, addresses, "n0").linked == sum(len(_FILES[each]) for each in there)
    assert {path.relative_to(_fetching(folder)).as_posix() for path in synced if path.is_file()} == set(
        _FILES
    )


def test_what_said_that_all_is_there_is_gone_for_good_before_other_files_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A loss of power may bring it back. Files of another snapshot could have the same sizes."""
    folder, found = tmp_path / "task", list[tuple[Path, bool, bool]]()
    sync, old = target_module.make_durable, "reservoir/000000000004.seg"

    def note(path: Path) -> None:
        sync(path)
        found.append((path, (_fetching(folder) / "FETCHED").exists(), (_fetching(folder) / old).exists()))

    with donors(MadeUpDonor(tmp_path / "n0", _FILES | {old: b"x"})) as addresses:
        assert not fetched(folder, addresses, "n0").error
    monkeypatch.setattr(target_module, "make_durable", note)
    with donors(MadeUpDonor(tmp_path / "n1", _FILES, what=described(position=POSITION + 1))) as addresses:
        later = order(folder, "n0", log_start=POSITION + 1)
        assert not fetch_of(later, addresses).run().error
    assert found[0] == (_fetching(folder), False, True)


def test_a_fetch_that_is_stopped_at_its_end_counts_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its unit may delete what has come just now."""
    folder, sync = tmp_path / "task", target_module.make_durable
    with donors(MadeUpDonor(tmp_path / "n0", _FILES)) as addresses:
        fetch = fetch_of(order(folder, "n0"), addresses)

        def stop(path: Path) -> None:
            sync(path)
            if path == tmp_path:
                fetch.stop()

        monkeypatch.setattr(target_module, "make_durable", stop)
        with pytest.raises(StoppedError):
            fetch.run()
        assert not (_fetching(folder) / "FETCHED").exists()
        monkeypatch.undo()
        assert fetched(folder, addresses, "n0").bytes == 0


def test_verified_data_of_which_a_file_is_gone_is_fetched_again(tmp_path: Path) -> None:
    folder = tmp_path / "task"
    with donors(MadeUpDonor(tmp_path / "n0", _FILES)) as addresses:
        assert not fetched(folder, addresses, "n0").error
        (_fetching(folder) / "state/000012.sst").unlink()
        assert fetched(folder, addresses, "n0").bytes == len(_FILES["state/000012.sst"])
    assert _is_whole(folder)


def test_a_file_that_cannot_be_synced_is_fetched_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, failing, sync = tmp_path / "task", ["000012.sst"], target_module.make_durable

    def fail(path: Path) -> None:
        if path.name in failing:
            failing.remove(path.name)
            raise OSError(errno.EIO, "the disk does not answer")
        sync(path)

    monkeypatch.setattr(target_module, "make_durable", fail)
    with donors(MadeUpDonor(tmp_path / "n0", _FILES)) as addresses:
        assert "the disk does not answer" in fetched(folder, addresses, "n0").error
        assert not (_fetching(folder) / "FETCHED").exists()
        # What is read of it may never have been written.
        assert fetched(folder, addresses, "n0").bytes == len(_FILES["state/000012.sst"])
    assert _is_whole(folder)


def test_a_disk_without_room_is_not_filled(tmp_path: Path) -> None:
    folder = tmp_path / "task"
    with donors(MadeUpDonor(tmp_path / "n0", _FILES)) as addresses:
        spare = target_module.SPARE_BYTES
        short = fetch_of(order(folder, "n0"), addresses, free_bytes=lambda _: spare + _BYTES - 1).run()
        assert f"{_BYTES} are to be fetched" in short.error
        assert not _fetching(folder).exists()
        assert fetch_of(order(folder, "n0"), addresses, free_bytes=lambda _: spare + _BYTES).run().error == ""


def test_room_is_watched_while_files_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target_module, "_LOOK_BYTES", 1)
    free = iter([1 << 40, 1 << 40, 0])
    with donors(MadeUpDonor(tmp_path / "n0", _FILES)) as addresses:
        end = fetch_of(order(tmp_path / "task", "n0"), addresses, free_bytes=lambda _: next(free)).run()
    assert "the disk has 0 bytes left" in end.error
    assert not _fetching(tmp_path / "task").exists()


def test_a_disk_that_is_full_ends_the_fetch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int, chunk: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with donors(MadeUpDonor(tmp_path / "n0", _FILES)) as addresses:
        fetch = fetch_of(order(tmp_path / "task", "n0"), addresses)
        write = os.write
        monkeypatch.setattr(target_module.os, "write", full)
        # The sockets of uvloop write by themselves.
        end = fetch.run()
        monkeypatch.setattr(target_module.os, "write", write)
    assert "the disk is full" in end.error
    assert not _fetching(tmp_path / "task").exists()


def test_donors_that_serve_others_are_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_module, "BUSY_S", 0.1)
    donor = MadeUpDonor(tmp_path / "n0", _FILES)
    with donors(donor) as addresses:
        others = [Donor(addresses["n0"], name, True, lambda hashed: None) for name in ("a", "b")]
        for each in others:
            each.snapshot(0, "payments.0/card/3")
        fetch = fetch_of(order(tmp_path / "task", "n0"), addresses)
        waits = fetch._stopped.wait
        asked = list[str]()

        def wait(seconds: float | None = None) -> bool:
            asked.append(fetch.progress.donor)
            others[0].__exit__()
            return waits(seconds)

        fetch._stopped.wait = wait  # type: ignore[method-assign]
        assert fetch.run().error == ""
        others[1].__exit__()
    assert asked == [""]


def test_a_node_that_serves_nothing_is_left(tmp_path: Path) -> None:
    found = {"n0": DonorAddress("", "")}
    end = fetched(tmp_path / "task", found, "n0", "n1")
    assert end.error == ("no donor has given it: n0/0: it serves no snapshots; n1/0: it serves no snapshots")


def test_an_own_folder_that_grows_meanwhile_does_not_change_what_was_fetched(tmp_path: Path) -> None:
    """The target's own task goes on while its data is fetched: it appends to its last segment."""
    folder = tmp_path / "task"
    write_files(folder, _FILES)
    with donors(MadeUpDonor(tmp_path / "n0", _FILES)) as addresses:
        assert fetched(folder, addresses, "n0").error == ""
    with (folder / "reservoir/000000000003.seg").open("ab") as last:
        last.write(b"more")
    assert _is_whole(folder)


def test_a_manifest_that_is_too_long_is_not_read_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(donor_module, "_BODY_BYTES_MAX", 1 << 20)
    sent, all_of_it = list[int](), 200

    def wrap(application: Application) -> Any:
        async def without_end(scope: Any, receive: Any, send: Any) -> None:
            if not scope["path"].endswith("/manifest"):
                await application(scope, receive, send)
                return
            await receive()
            left = asyncio.ensure_future(receive())
            await send({"type": "http.response.start", "status": 200, "headers": []})
            while len(sent) < all_of_it and not left.done():
                await send({"type": "http.response.body", "body": bytes(1 << 20), "more_body": True})
                sent.append(len(sent))
                await asyncio.sleep(0.001)
            left.cancel()

        return without_end

    with donors(MadeUpDonor(tmp_path / "n0", _FILES, wrap=wrap)) as addresses:
        error = fetched(tmp_path / "task", addresses, "n0").error
    assert "it has sent more than 1048576 bytes where a manifest belongs" in error
    assert len(sent) < all_of_it


def test_an_unreachable_donor_is_named(tmp_path: Path) -> None:
    with pytest.raises(DonorError, match="ConnectError"):
        Donor(DonorAddress("http://127.0.0.1:1", new_key()), "f", True, lambda hashed: None).snapshot(
            0, "task"
        )


def test_orders_of_another_position_do_not_take_what_is_there(tmp_path: Path) -> None:
    folder = tmp_path / "task"
    with donors(MadeUpDonor(tmp_path / "n0", _FILES)) as addresses:
        fetched(folder, addresses, "n0")
        later = TaskFetch(
            order(folder, "n0", log_start=POSITION + 1), fetch_of(order(folder), addresses)._setting
        )
        assert f"{POSITION + 1} is needed" in later.run().error
