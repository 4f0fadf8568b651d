"""Records that were acknowledged and are gone: missed aloud after damage, forgiven after an honest loss of power."""

import logging
import shutil
from pathlib import Path

import pytest

from railgun.messaging.embedded.log import Durability, EmbeddedLog
from railgun.messaging.embedded.read_only import ReadOnlyLog
from railgun.messaging.errors import (
    TransportCorruptionError,
    TransportIOError,
    TransportShortenedError,
    TransportVersionError,
)
from railgun.state.end_marker import END_MARK, EndMarker
from reservoir.files import DiskFiles
from tests.reservoir.failing_files import FailingFiles

COMMITS, PER_COMMIT = 12, 3


def records(commit: int) -> list[bytes]:
    return [b"%d.%d " % (commit, i) * 9 for i in range(PER_COMMIT)]


EXPECTED = [record for commit in range(COMMITS) for record in records(commit)]


def image(folder: Path, durability: Durability, synced_after: int = 0) -> Path:
    """A log as the death of its process leaves it; `sync` is called after so many commits."""
    crashed = folder.with_name("crashed")
    with EmbeddedLog(folder, durability) as log:
        log.create_topic("t", 1)
        for commit in range(COMMITS):
            log.append("t", 0, records(commit))
            if commit + 1 == synced_after:
                log.sync()
        shutil.copytree(folder, crashed)
    return crashed


def restarted(folder: Path) -> Path:
    """The same folder after the machine was started anew: the mark is of another boot."""
    path = folder / END_MARK
    marker = EndMarker(DiskFiles(), path)
    mark = marker.found
    marker.close()
    assert mark is not None
    path.unlink()
    marker = EndMarker(DiskFiles(), path, b"another boot".ljust(16))
    marker.note(mark.written, mark.synced)
    marker.close()
    return folder


def copied(crashed: Path) -> Path:
    copy = crashed.with_name("copy")
    shutil.rmtree(copy, ignore_errors=True)
    return shutil.copytree(crashed, copy)


def wal_of(folder: Path) -> Path:
    return max((folder / "log").glob("*.log"), key=lambda path: path.stat().st_size)


def flipped(crashed: Path, bit: int) -> Path:
    copy = copied(crashed)
    data = bytearray(wal_of(copy).read_bytes())
    data[bit // 8] ^= 1 << bit % 8
    wal_of(copy).write_bytes(data)
    return copy


def contents(folder: Path) -> list[bytes]:
    with EmbeddedLog(folder) as log:
        end = log.end_offset("t", 0) if log.topics() else 0
        return log.read("t", 0, 0, 1_000, 1 << 20).values() if end else []


@pytest.mark.parametrize("durability", Durability)
def test_a_flipped_bit_is_never_a_shorter_log(tmp_path: Path, durability: Durability) -> None:
    crashed = image(tmp_path / "log", durability)
    bits = 8 * wal_of(crashed).stat().st_size
    assert contents(copied(crashed)) == EXPECTED
    missing = set()
    for bit in range(0, bits, 211):
        try:
            assert contents(flipped(crashed, bit)) == EXPECTED
        except TransportShortenedError as error:
            missing.add(error.missing)
    assert len(missing) >= COMMITS


def test_it_is_said_again_at_every_opening(tmp_path: Path) -> None:
    damaged = flipped(image(tmp_path / "log", Durability.FSYNC), 8 * 300)
    for _ in range(3):
        with pytest.raises(TransportShortenedError, match=r"end\.mark.*Restore it from a copy") as caught:
            EmbeddedLog(damaged)
        assert str(damaged / "log") in str(caught.value)


def test_with_fsync_a_restart_of_the_machine_is_no_excuse(tmp_path: Path) -> None:
    crashed = restarted(image(tmp_path / "log", Durability.FSYNC))
    assert contents(copied(crashed)) == EXPECTED
    with pytest.raises(TransportShortenedError):
        EmbeddedLog(flipped(crashed, 8 * 300))


def test_with_os_a_loss_of_power_takes_what_was_not_synced(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    crashed = restarted(image(tmp_path / "log", Durability.OS, synced_after=5))
    whole = wal_of(crashed).read_bytes()
    kept: dict[int, int] = {}
    for size in range(0, len(whole), 40):
        copy = copied(crashed)
        wal_of(copy).write_bytes(whole[:size])
        caplog.clear()
        try:
            log = EmbeddedLog(copy, Durability.OS)
        except TransportShortenedError:
            continue
        with log:
            kept[size] = log.end_offset("t", 0)
            lost = COMMITS - kept[size] // PER_COMMIT
            assert log._end.lost == lost
            said = [each for each in caplog.records if each.levelno == logging.WARNING]
            assert len(said) == (lost > 0)
            assert all(f"the last {lost} commits" in each.getMessage() for each in said)
        assert contents(copy) == EXPECTED[: kept[size]]
        with EmbeddedLog(copy) as log:
            assert log._end.lost == 0
            assert log.append("t", 0, [b"on"]) == kept[size]
    assert min(kept.values()) == 5 * PER_COMMIT
    assert len(set(kept.values())) >= COMMITS - 5


def test_with_os_the_death_of_the_process_is_no_excuse(tmp_path: Path) -> None:
    crashed = image(tmp_path / "log", Durability.OS)
    assert contents(copied(crashed)) == EXPECTED
    wal = wal_of(crashed)
    wal.write_bytes(wal.read_bytes()[:-100])
    with pytest.raises(TransportShortenedError):
        EmbeddedLog(crashed, Durability.OS)


@pytest.mark.parametrize("durability", Durability)
def test_after_a_clean_close_all_is_synced(tmp_path: Path, durability: Durability) -> None:
    image(tmp_path / "log", durability)
    folder = restarted(tmp_path / "log")
    assert contents(folder) == EXPECTED
    shutil.rmtree(folder / "log")
    with pytest.raises(TransportShortenedError):
        EmbeddedLog(folder, durability)


def test_more_than_the_mark_says_is_no_loss(tmp_path: Path) -> None:
    """The mark of a crash between a write and its mark, or of a loss of power: older than the log."""
    crashed = image(tmp_path / "log", Durability.FSYNC)
    mark = crashed / END_MARK
    older = EndMarker(DiskFiles(), mark)
    assert older.found is not None
    written = older.found.written
    older.note(written - 4, written - 4)
    older.close()
    assert contents(crashed) == EXPECTED


def test_without_the_mark_what_is_there_is_taken(tmp_path: Path) -> None:
    """How an operator without a copy goes on with what is left."""
    damaged = flipped(image(tmp_path / "log", Durability.FSYNC), 8 * 500)
    with pytest.raises(TransportShortenedError):
        EmbeddedLog(damaged)
    (damaged / END_MARK).unlink()
    found = contents(damaged)
    assert 0 < len(found) < len(EXPECTED)
    assert found == EXPECTED[: len(found)]
    assert (damaged / END_MARK).exists()


def test_reading_alone_misses_it_too(tmp_path: Path) -> None:
    crashed = image(tmp_path / "log", Durability.FSYNC)
    with ReadOnlyLog(copied(crashed)) as log:
        assert log.end_offset("t", 0) == len(EXPECTED)
    damaged = flipped(crashed, 8 * 300)
    before = {path: path.read_bytes() for path in damaged.rglob("*") if path.is_file()}
    with pytest.raises(TransportShortenedError):
        ReadOnlyLog(damaged)
    assert all(path.read_bytes() == data for path, data in before.items() if path.suffix != "")
    (damaged / END_MARK).write_bytes(b"\xff" * 1024)
    with pytest.raises(TransportCorruptionError, match=END_MARK):
        ReadOnlyLog(damaged)


def test_a_mark_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = image(tmp_path / "log", Durability.FSYNC)
    mark = folder / END_MARK
    mark.write_bytes(b"\xff" * 1024)
    with pytest.raises(TransportCorruptionError, match=END_MARK):
        EmbeddedLog(folder)
    mark.unlink()
    with monkeypatch.context() as newer:
        newer.setattr("railgun.state.end_marker.VERSION", 2)
        contents(folder)
    with pytest.raises(TransportVersionError, match="version 2"):
        EmbeddedLog(folder)


def test_whichever_call_of_the_mark_fails_nothing_is_acknowledged_after_it(tmp_path: Path) -> None:
    for at in range(40):
        folder = tmp_path / str(at)
        files = FailingFiles(DiskFiles(), at)
        acknowledged: list[bytes] = []
        try:
            with EmbeddedLog(folder, files=files) as log:
                log.create_topic("t", 1)
                for commit in range(COMMITS):
                    log.append("t", 0, records(commit))
                    acknowledged += records(commit)
                    if commit == 4:
                        log.sync()
        except TransportIOError:
            assert files.failed
        if not files.failed:
            break
        assert contents(folder)[: len(acknowledged)] == acknowledged
        assert files.misuse == []
    assert at > COMMITS
