"""A flipped bit in RocksDB's MANIFEST or write-ahead log: the same content, or an error that names what is damaged."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from railgun.state.end_marker import END_MARK
from railgun.state.errors import StoreCorruptionError, StoreError
from railgun.state.rocks import StoreLimits
from railgun.state.rocks_files import check_files
from railgun.state.store import Store
from railgun.state.stored import StoredState
from reservoir.files import DiskFiles
from tests.state.live_copy import live_copy

LIMITS = StoreLimits(1 << 20, 1 << 20)
HEAD_BYTES = 7


def image(folder: Path) -> Path:
    """A store as a crash leaves it: three commits in tables, three in the log, then something uncommitted."""
    store = Store(folder, LIMITS)
    store.recover()
    for epoch in range(1, 7):
        store.write([(b"r%d" % i, b"%d" % epoch * 20, epoch, epoch - 1) for i in range(5)])
        store.commit(epoch, b"meta %d" % epoch)
        if epoch <= 3:
            store._database.flush()
    store.write([(b"r0", b"lost", 7, 6)])
    crashed = folder.with_name("crashed")
    live_copy(folder, crashed)
    store.close()
    return crashed


def content(folder: Path) -> tuple[tuple[int, bytes] | None, list[tuple[bytes, int, bytes | None]]]:
    store = Store(folder, LIMITS)
    try:
        return store.recover(), store.scan(b"r", b"s", 100)
    finally:
        store.close()


def heads(data: bytes) -> list[int]:
    """Where records begin in a file of one block."""
    found, at = [], 0
    while at + HEAD_BYTES <= len(data):
        found.append(at)
        at += HEAD_BYTES + int.from_bytes(data[at + 4 : at + 6], "little")
    return found


def flipped(crashed: Path, name: str, at: int) -> Path:
    """A copy with one bit flipped."""
    copy = crashed.with_name("flipped")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(crashed, copy)
    data = bytearray((copy / name).read_bytes())
    data[at // 8] ^= 1 << at % 8
    (copy / name).write_bytes(data)
    return copy


def file_of(folder: Path, pattern: str) -> str:
    return max(folder.glob(pattern), key=lambda path: path.stat().st_size).name


@pytest.mark.parametrize("pattern", ["MANIFEST-*", "*.log"])
def test_every_bit_of_every_head(tmp_path: Path, pattern: str) -> None:
    """The bits that say how long a record is, and what it is, are those that RocksDB may take for an end."""
    crashed = image(tmp_path / "state")
    expected = content(shutil.copytree(crashed, tmp_path / "whole"))
    assert expected[0] == (6, b"meta 6")
    name = file_of(crashed, pattern)
    starts = heads((crashed / name).read_bytes())
    assert len(starts) > 5
    refused = 0
    for at in (8 * start + bit for start in starts for bit in range(32, 8 * HEAD_BYTES)):
        try:
            assert content(flipped(crashed, name, at)) == expected, f"bit {at}"
        except StoreError as error:
            refused += str(tmp_path / "flipped") in str(error)
    assert refused > 30


@pytest.mark.parametrize("pattern", ["MANIFEST-*", "*.log"])
def test_bits_everywhere(tmp_path: Path, pattern: str) -> None:
    crashed = image(tmp_path / "state")
    expected = content(shutil.copytree(crashed, tmp_path / "whole"))
    name = file_of(crashed, pattern)
    refused = 0
    for at in range(0, 8 * (crashed / name).stat().st_size, 131):
        try:
            assert content(flipped(crashed, name, at)) == expected, f"bit {at}"
        except StoreError:
            refused += 1
    assert refused > 10


def test_without_the_mark_an_older_commit_would_come_back_unsaid(tmp_path: Path) -> None:
    """What the mark is for: RocksDB by itself takes what lies before the damage for all there is."""
    crashed = image(tmp_path / "state")
    name = file_of(crashed, "*.log")
    middle = 8 * ((crashed / name).stat().st_size // 2)
    with pytest.raises(StoreCorruptionError, match=r"checkpoint 6 is gone, [345] is the newest"):
        content(flipped(crashed, name, middle))
    copy = flipped(crashed, name, middle)
    with pytest.raises(StoreError):
        StoredState(copy).commit()
    (copy / END_MARK).unlink()
    found, rows = content(copy)
    assert found in ((3, b"meta 3"), (4, b"meta 4"), (5, b"meta 5"))
    assert {body for _, _, body in rows} == {b"%d" % found[0] * 20}


def test_a_log_torn_anywhere_opens(tmp_path: Path) -> None:
    """What a loss of power leaves of what was not synced: cut, zeros, or anything."""
    crashed = image(tmp_path / "state")
    name = file_of(crashed, "*.log")
    whole = (crashed / name).read_bytes()
    last = heads(whole)[-1]
    expected = content(shutil.copytree(crashed, tmp_path / "whole"))
    for at in range(last, len(whole), 9):
        for rest in (b"", bytes(len(whole) - at), b"\x01" * (len(whole) - at), b"\x01" * 40_000):
            copy = flipped(crashed, name, 0)
            (copy / name).write_bytes(whole[:at] + rest)
            assert content(copy) == expected


def test_a_torn_end_that_looks_like_a_recycled_file_is_refused(tmp_path: Path) -> None:
    """RocksDB would wait for ever: the error says where, and nothing is changed."""
    crashed = image(tmp_path / "state")
    name = file_of(crashed, "*.log")
    whole = (crashed / name).read_bytes()
    last = heads(whole)[-1]
    for at, rest, place in (
        (last, b"\x05" * (len(whole) - last), last),
        (len(whole), b"\x0b" * 40_000, len(whole)),
        (last + 40, b"\x08" * 40_000, len(whole)),
    ):
        copy = flipped(crashed, name, 0)
        (copy / name).write_bytes(whole[:at] + rest)
        with pytest.raises(StoreCorruptionError, match=f"the record at byte {place} of {name} is damaged"):
            content(copy)
        assert (copy / name).read_bytes() == whole[:at] + rest


def test_a_manifest_torn_anywhere_in_its_last_record_is_no_damage(tmp_path: Path) -> None:
    crashed = image(tmp_path / "state")
    name = file_of(crashed, "MANIFEST-*")
    whole = (crashed / name).read_bytes()
    for at in range(heads(whole)[-1] + 1, len(whole)):
        (crashed / name).write_bytes(whole[:at])
        check_files(DiskFiles(), crashed)
    (crashed / name).write_bytes(whole + bytes(20))
    check_files(DiskFiles(), crashed)


@pytest.mark.parametrize("pattern", ["MANIFEST-*", "*.log"])
def test_a_record_of_a_recycled_file_is_refused_and_nothing_is_changed(tmp_path: Path, pattern: str) -> None:
    """RocksDB waits for ever on one: its owner and a reader say where it is."""
    crashed = image(tmp_path / "state")
    name = file_of(crashed, pattern)
    start = heads((crashed / name).read_bytes())[3]
    copy = flipped(crashed, name, 8 * (start + 6) + 2)
    before = (copy / name).read_bytes()
    openers: tuple[Callable[[Path], object], ...] = (StoredState, content)
    for opened in openers:
        with pytest.raises(StoreCorruptionError, match=f"byte {start} of {name}"):
            opened(copy)
        assert (copy / name).read_bytes() == before
