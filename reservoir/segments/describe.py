"""Describes what a folder of segments holds, without changing it: for `railgun inspect`, and to find damage."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from reservoir.errors import CorruptionError, FormatVersionError
from reservoir.files import Files
from reservoir.open_region.saved_rows import read_rows, saved_rows_path
from reservoir.segments.index import IndexedChunk
from reservoir.segments.recovery import check_numbers, check_order
from reservoir.segments.segment import SegmentScan, SegmentScanner, segment_numbers, segment_path


@dataclass(frozen=True, slots=True)
class SegmentDescription:
    """One segment. Times are in ms; None if it has no chunk.

    torn_bytes: bytes at the end that are no whole frame, and that opening will cut off: all of them,
        if it is the last segment and has no whole header.
    damage: what is wrong with it, with the byte offset; None if every CRC matches.
    finished: whether it ends with its index.
    """

    file: str
    size_bytes: int
    chunks: int
    rows: int
    first_time: int | None
    last_time: int | None
    finished: bool
    torn_bytes: int
    damage: str | None


@dataclass(frozen=True, slots=True)
class FolderDescription:
    """All segments, oldest first.

    end_chunk: the number behind that of the last whole chunk; 0 if there is none.
    """

    segments: tuple[SegmentDescription, ...]
    end_chunk: int

    @property
    def rows(self) -> int:
        """How many rows the whole chunks have."""
        return sum(segment.rows for segment in self.segments)

    @property
    def size_bytes(self) -> int:
        """Bytes on disk."""
        return sum(segment.size_bytes for segment in self.segments)

    @property
    def damaged(self) -> bool:
        """Whether anything is wrong that a crash does not explain."""
        return any(segment.damage is not None for segment in self.segments)


def describe_folder(folder: Path, files: Files) -> FolderDescription:
    """Read every byte of every segment and check it. The folder's task may run meanwhile. Raises OSError only."""
    numbers = segment_numbers(files, folder)
    described: list[SegmentDescription] = []
    chunks: list[IndexedChunk] = []
    for k, number in enumerate(numbers):
        scan: SegmentScan | None = None
        damage: str | None = None
        is_last = k == len(numbers) - 1
        try:
            scanner = SegmentScanner(files, folder, number)
        except FileNotFoundError:
            left = segment_numbers(files, folder)
            if not left:
                raise
            # A task that starts may cut off its last segments. One that runs deletes its oldest as time goes on: those
            # before this one are gone too.
            if number > left[-1]:
                break
            described.clear()
            chunks = []
            continue
        try:
            check_numbers(folder, numbers[max(0, k - 1) : k + 1])
            # A new segment is there before its header: a crash may leave it so, and a task that runs will write it.
            if not (is_last and scanner.headless()):
                scan = scanner.scan(None if is_last else scanner.size_bytes, whole=True)
                check_order(folder, chunks, scan)
                chunks = scan.chunks or chunks
        except (CorruptionError, FormatVersionError) as error:
            damage = str(error)
        described.append(_describe(str(segment_path(folder, number)), scanner.size_bytes, scan, damage))
    return FolderDescription(tuple(described), chunks[-1].number + 1 if chunks else 0)


def damaged_open_rows(folder: Path, files: Files, numbers: Sequence[int]) -> list[str]:
    """Read the files of open rows that a checkpoint names. Returns what is wrong with them.

    Raises FormatVersionError for a file that a newer release wrote, and OSError.
    """
    damage = []
    for number in numbers:
        path = saved_rows_path(folder, number)
        try:
            for _ in read_rows(files, path, None):
                pass
        except FileNotFoundError:
            damage.append(f"{path}: the checkpoint names this file of open rows, which is missing")
        except CorruptionError as error:
            damage.append(str(error))
    return damage


def _describe(file: str, size_bytes: int, scan: SegmentScan | None, damage: str | None) -> SegmentDescription:
    if scan is None:
        torn = 0 if damage is not None else size_bytes
        return SegmentDescription(file, size_bytes, 0, 0, None, None, False, torn, damage)
    if not scan.chunks:
        torn = 0 if scan.torn is None else scan.torn.dropped_bytes
        return SegmentDescription(file, size_bytes, 0, 0, None, None, False, torn, damage)
    return SegmentDescription(
        file,
        size_bytes,
        len(scan.chunks),
        sum(chunk.span.rows for chunk in scan.chunks),
        scan.chunks[0].span.first_time,
        scan.chunks[-1].span.last_time,
        scan.finished,
        0 if scan.torn is None else scan.torn.dropped_bytes,
        damage,
    )
