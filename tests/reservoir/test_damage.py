"""Torn tails are cut and told; damage elsewhere is a typed error with its place, or does not matter."""

import zlib
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from reservoir.errors import CorruptionError, ForeignSegmentError, FormatVersionError, ReservoirError
from reservoir.reservoir import Reservoir, Settings
from reservoir.segments.describe import describe_folder
from reservoir.segments.format import HEADER_BYTES, pack_header, parse_header
from reservoir.segments.length import Length
from reservoir.segments.segment import SegmentScanner
from reservoir.thread_executor import ThreadExecutor
from tests.reservoir.event_log import AMOUNT, CARD, NAME, compute_columns
from tests.reservoir.log_driver import LogDriver
from tests.reservoir.log_strategies import seeded_log
from tests.reservoir.memory_files import Inode, MemoryFile, MemoryFiles

FOLDER = Path("reservoir")
SETTINGS = Settings(bytes(range(16)), chunk_events=8, segment_bytes=6_000)


def written(records: int = 120) -> tuple[MemoryFiles, Length]:
    """A few segments, all synced."""
    files = MemoryFiles()
    driver = LogDriver(FOLDER, seeded_log(1, records, name_max=5), SETTINGS, files)
    driver.set_hot((AMOUNT, NAME, CARD))
    driver.run_all([50])
    length = driver.reservoir.sync(driver.reservoir.chunks)
    driver.reservoir.close()
    return files, length


def with_bytes(files: MemoryFiles, name: str, data: bytes) -> MemoryFiles:
    changed = MemoryFiles()
    changed.names = {key: Inode(bytearray(inode.data)) for key, inode in files.names.items()}
    changed.names[name] = Inode(bytearray(data))
    return changed


def rows_in(
    files: MemoryFiles, length: Length | None = None
) -> tuple[list[tuple[int, int, bytes]], Reservoir]:
    """Everything that is there, read in full."""
    reservoir = Reservoir.open(
        FOLDER,
        files,
        compute_columns=compute_columns,
        executor=ThreadExecutor(),
        settings=SETTINGS,
        length=length,
    )
    try:
        reservoir.set_hot((AMOUNT, NAME, CARD))
        found = []
        for scanned in reservoir.scan((0, 1, 2)):
            bounds = scanned.offsets.tolist()
            raw = [scanned.payload[a:b].tobytes() for a, b in pairwise(bounds)]
            found += list(zip(scanned.time.tolist(), scanned.seq.tolist(), raw))
        return found, reservoir
    finally:
        reservoir.close()


def last_frame(files: MemoryFiles) -> tuple[str, int]:
    """The last segment, and where its last chunk begins."""
    name = max(files.names)
    scan = SegmentScanner(files, FOLDER, int(name[:12])).scan(whole=True)
    return name, scan.chunks[-1].place.offset


def broken_tails(data: bytes, cut: int) -> dict[str, bytes]:
    garbage = bytes((k * 151 + 7) % 256 for k in range(len(data) - cut))
    return {"cut": data[:cut], "zeros": data[:cut] + bytes(len(data) - cut), "garbage": data[:cut] + garbage}


@pytest.mark.parametrize("step", [101, pytest.param(1, marks=pytest.mark.torture)])
def test_a_torn_tail_is_cut_at_every_byte(step: int) -> None:
    files, _ = written()
    whole, _ = rows_in(files)
    name, begin = last_frame(files)
    data = bytes(files.names[name].data)
    for cut in range(begin, len(data), step):
        for how, torn in broken_tails(data, cut).items():
            if torn == data:
                continue
            changed = with_bytes(files, name, torn)
            found, reservoir = rows_in(changed)
            assert found == whole[:-8], (cut, how)
            if len(torn) > begin:
                (report,) = reservoir.recovered.torn
                assert (report.offset, report.dropped_bytes) in ((begin, len(torn) - begin), (0, len(torn)))
                assert report.file.endswith(name)
            again, reservoir = rows_in(changed)
            assert again == found
            assert reservoir.recovered.torn == []


def test_a_segment_that_was_only_begun_is_dropped() -> None:
    files, _ = written()
    whole, _ = rows_in(files)
    name = f"{int(max(files.names)[:12]) + 1:012d}.seg"
    for size in (0, 1, HEADER_BYTES - 1):
        changed = with_bytes(files, name, bytes(files.names[max(files.names)].data[:size]))
        found, reservoir = rows_in(changed)
        assert found == whole
        assert [report.dropped_bytes for report in reservoir.recovered.torn] == [size]
        assert name not in changed.names


def flipped(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def same_or_typed(files: MemoryFiles, length: Length | None, whole: object) -> bool:
    """Is the damage an error of ours? Otherwise the same data must come back."""
    error: ReservoirError | None = None
    try:
        found, _ = rows_in(files, length)
    except ReservoirError as caught:
        error = caught
    assert ".seg" in str(error) if error else found == whole
    return error is not None


@pytest.mark.parametrize(("step", "records"), [(211, 120), pytest.param(1, 340, marks=pytest.mark.torture)])
def test_a_flipped_bit_gives_the_same_data_or_a_typed_error(step: int, records: int) -> None:
    files, length = written(records)
    whole, _ = rows_in(files)
    found = 0
    for name, inode in files.names.items():
        data = bytes(inode.data)
        for byte in range(0, len(data), step):
            changed = with_bytes(files, name, flipped(data, byte * 8 + byte % 8))
            found += same_or_typed(changed, length, whole)
    assert found > 100 // step


def test_every_bit_of_a_header() -> None:
    files, length = written()
    whole, _ = rows_in(files)
    for name in (min(files.names), max(files.names)):
        data = bytes(files.names[name].data)
        for bit in range(HEADER_BYTES * 8):
            assert same_or_typed(with_bytes(files, name, flipped(data, bit)), length, whole)
            assert same_or_typed(with_bytes(files, name, flipped(data, bit)), None, whole)


def test_damage_before_a_whole_frame_is_not_a_torn_tail() -> None:
    files, _ = written()
    name = max(files.names)
    data = bytes(files.names[name].data)
    with pytest.raises(CorruptionError) as caught:
        rows_in(with_bytes(files, name, flipped(data, (HEADER_BYTES + 30) * 8)))
    assert caught.value.offset == HEADER_BYTES
    assert caught.value.file.endswith(name)


def test_a_missing_segment_is_told() -> None:
    files, length = written(300)
    name = sorted(files.names)[1]
    del files.names[name]
    for known in (None, length):
        with pytest.raises(CorruptionError, match=f"{name}, byte 0: the segment is missing"):
            rows_in(files, known)


def test_a_file_shorter_than_its_checkpoint_is_told() -> None:
    files, length = written()
    name = max(files.names)
    del files.names[name].data[length.size_bytes - 1 :]
    with pytest.raises(CorruptionError, match="made durable"):
        rows_in(files, length)


def test_a_newer_format_is_told() -> None:
    files, length = written()
    name = min(files.names)
    data = bytearray(files.names[name].data)
    data[8:10] = (2).to_bytes(2, "little")
    data[12:16] = zlib.crc32(data[:12]).to_bytes(4, "little")
    for known in (None, length):
        with pytest.raises(FormatVersionError, match="version 2, but this release reads versions up to 1"):
            rows_in(with_bytes(files, name, bytes(data)), known)


def test_segments_of_another_task_are_refused() -> None:
    files, length = written()
    settings = Settings(bytes(16), chunk_events=SETTINGS.chunk_events)
    with pytest.raises(ForeignSegmentError):
        Reservoir.open(
            FOLDER,
            files,
            compute_columns=compute_columns,
            executor=ThreadExecutor(),
            settings=settings,
            length=length,
        )


def test_names_of_others_are_left_alone() -> None:
    files, length = written()
    files.names["notes.txt"] = Inode(bytearray(b"hello"))
    rows_in(files, length)
    assert "notes.txt" in files.names


def test_describe_reads_without_changing() -> None:
    files, length = written()
    name, begin = last_frame(files)
    data = bytes(files.names[name].data)
    described = describe_folder(FOLDER, files)
    assert not described.damaged
    assert described.rows == length.rows
    assert described.size_bytes == sum(len(inode.data) for inode in files.names.values())
    assert [segment.finished for segment in described.segments][:-1] == [True] * (len(described.segments) - 1)
    torn = with_bytes(files, name, data[: begin + 20])
    last = describe_folder(FOLDER, torn).segments[-1]
    assert (last.torn_bytes, last.damage) == (20, None)
    assert len(torn.names[name].data) == begin + 20
    first = min(files.names)
    broken = with_bytes(files, first, flipped(bytes(files.names[first].data), 3000 * 8))
    described = describe_folder(FOLDER, broken)
    assert described.damaged
    assert "CRC" in str(described.segments[0].damage)
    assert described.segments[1].damage is None


@pytest.mark.parametrize("size_bytes", [0, 3, HEADER_BYTES - 1, HEADER_BYTES])
def test_describe_takes_a_segment_that_was_just_begun_for_no_damage(size_bytes: int) -> None:
    files, length = written()
    begun = f"{length.segment + 1:012d}.seg"
    header = bytes(files.names[max(files.names)].data[:HEADER_BYTES])
    data = pack_header(
        replace(parse_header(header, ""), number=length.segment + 1, first_chunk=length.chunks)
    )
    described = describe_folder(FOLDER, with_bytes(files, begun, data[:size_bytes]))
    assert not described.damaged
    assert (described.rows, described.end_chunk) == (length.rows, length.chunks)
    last = described.segments[-1]
    assert (last.file, last.torn_bytes) == (str(FOLDER / begun), size_bytes % HEADER_BYTES)


def test_describe_names_a_missing_segment_before_one_that_was_just_begun() -> None:
    files, length = written()
    described = describe_folder(FOLDER, with_bytes(files, f"{length.segment + 2:012d}.seg", b""))
    assert "the segment is missing" in str(described.segments[-1].damage)


@pytest.mark.parametrize("deleted", [1, 2])
@pytest.mark.parametrize("is_first_read", [False, True])
def test_describe_passes_over_oldest_segments_that_are_deleted_meanwhile(
    monkeypatch: pytest.MonkeyPatch, deleted: int, is_first_read: bool
) -> None:
    files, length = written()
    known, opened = files.list(FOLDER), files.open_read
    listings = iter([known])

    def open_read(path: Path) -> MemoryFile:
        if path.name != known[0] or not is_first_read:
            for name in known[:deleted]:
                files.names.pop(name, None)
        return opened(path)

    monkeypatch.setattr(files, "open_read", open_read)
    if not is_first_read:
        del files.names[known[0]]
    monkeypatch.setattr(files, "list", lambda _: next(listings, None) or sorted(files.names))
    described = describe_folder(FOLDER, files)
    assert not described.damaged
    assert described.end_chunk == length.chunks
    # What was read before it was deleted counts only where nothing behind it is missing.
    read = is_first_read and deleted == 1
    assert len(described.segments) == len(known) - deleted + read


def test_describe_keeps_what_is_left_where_last_segments_are_cut_off_meanwhile() -> None:
    files, length = written()
    known = files.list(FOLDER)
    listings = iter([[*known, f"{length.segment + 1:012d}.seg"]])
    files.list = lambda _: next(listings, None) or known  # type: ignore[method-assign]
    described = describe_folder(FOLDER, files)
    assert not described.damaged
    assert (described.end_chunk, len(described.segments)) == (length.chunks, len(known))


def test_describe_of_segments_that_are_all_gone_is_an_error() -> None:
    files, _ = written()
    listings = iter([files.list(FOLDER)])
    files.names.clear()
    files.list = lambda _: next(listings, [])  # type: ignore[method-assign]
    with pytest.raises(FileNotFoundError):
        describe_folder(FOLDER, files)
