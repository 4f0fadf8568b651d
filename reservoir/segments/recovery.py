"""Opens a folder of segments for `Reservoir`: finds their chunks, cuts off what the checkpoint does not know, reports
what was cut.
"""

from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from reservoir.errors import CorruptionError
from reservoir.files import Files
from reservoir.segments.format import check_header
from reservoir.segments.index import IndexedChunk
from reservoir.segments.length import Length
from reservoir.segments.segment import (
    SegmentScan,
    SegmentScanner,
    SegmentWriter,
    TornTail,
    segment_numbers,
    segment_path,
)


@dataclass(slots=True)
class RecoveryReport:
    """What opening has dropped.

    length: the length that is left.
    torn: the bytes that a crash left at the end of the last segment.
    cut: segments that were shortened or deleted because they lay behind the checkpoint's length.
    """

    length: Length = field(default_factory=Length)
    torn: list[TornTail] = field(default_factory=list)
    cut: list[TornTail] = field(default_factory=list)


@dataclass(slots=True)
class Recovered:
    """What opening has found. chunk_events: that of this folder. segment: that in which writing continues, if any."""

    chunk_events: int
    chunks: list[IndexedChunk] = field(default_factory=list)
    segment: SegmentWriter | None = None
    report: RecoveryReport = field(default_factory=RecoveryReport)


def recover(
    files: Files, folder: Path, stream_key: bytes, chunk_events: int, length: Length | None
) -> Recovered:
    """Open a folder at a checkpoint's length, or, if length is None, with all chunks that are whole.

    chunk_events: used for a folder without segments; any other folder keeps its own.
    If a crash interrupts it, the next call gives the same result.
    Raises CorruptionError, FormatVersionError, ForeignSegmentError, OSError.
    """
    files.make_folder(folder)
    recovered = Recovered(chunk_events)
    report = recovered.report
    numbers = segment_numbers(files, folder)
    if length is not None:
        numbers = _cut_segments(files, folder, numbers, length, report)
    check_numbers(folder, numbers)
    last: SegmentScan | None = None
    for number in numbers:
        is_last = number == numbers[-1]
        if length is None:
            scan = _scan_all(files, folder, number, report, is_last=is_last)
        else:
            scan = _scan_known(files, folder, number, length.size_bytes if is_last else None)
        if scan is not None:
            if last is None:
                recovered.chunk_events = scan.header.chunk_events
            check_header(scan.header, str(segment_path(folder, number)), stream_key, recovered.chunk_events)
            check_order(folder, recovered.chunks, scan)
            recovered.chunks += scan.chunks
            last = scan
    if last is not None:
        recovered.segment = _reopen(files, folder, last, report, torn=length is None)
        report.length = _measure(last, recovered.segment.size_bytes)
    if length is not None and report.length != length:
        file = str(segment_path(folder, length.segment))
        reason = f"the segments hold {report.length}, the checkpoint says {length}"
        raise CorruptionError(file, length.size_bytes, reason)
    return recovered


def check_numbers(folder: Path, numbers: list[int]) -> None:
    """Raise CorruptionError if a segment between others is missing."""
    for before, number in pairwise(numbers):
        if number != before + 1:
            raise CorruptionError(str(segment_path(folder, before + 1)), 0, "the segment is missing")


def check_order(folder: Path, chunks: list[IndexedChunk], scan: SegmentScan) -> None:
    """Raise CorruptionError if a segment does not continue where the one before it ended."""
    file, before = str(segment_path(folder, scan.header.number)), chunks[-1] if chunks else None
    if before is not None and scan.header.first_chunk != before.number + 1:
        raise CorruptionError(
            file, 0, f"it begins with chunk {scan.header.first_chunk}, not {before.number + 1}"
        )
    for chunk in scan.chunks:
        first = chunk.span.first_time, chunk.span.first_seq
        if before is not None and (before.span.last_time, before.span.last_seq) >= first:
            reason = f"chunk {chunk.number} is not after the one before it"
            raise CorruptionError(file, chunk.place.offset, reason)
        before = chunk


def _cut_segments(
    files: Files, folder: Path, numbers: list[int], length: Length, report: RecoveryReport
) -> list[int]:
    """Delete the segments behind the length, beginning with the last, so that a crash leaves no gap."""
    for number in reversed(numbers):
        if number > length.segment:
            path = segment_path(folder, number)
            size = files.open_read(path).size()
            files.delete(path)
            report.cut.append(TornTail(str(path), 0, size, "the checkpoint does not know this segment"))
    kept = [number for number in numbers if number <= length.segment]
    if length.chunks and (not kept or kept[-1] != length.segment):
        raise CorruptionError(
            str(segment_path(folder, length.segment)), 0, "the checkpoint's segment is missing"
        )
    return kept


def _scan_known(files: Files, folder: Path, number: int, end_bytes: int | None) -> SegmentScan:
    """Scan a segment that is part of a checkpoint: heads and directories only, or just its index."""
    scanner = SegmentScanner(files, folder, number)
    if end_bytes is not None:
        return scanner.scan(end_bytes, whole=False)
    return scanner.listed() or scanner.scan(scanner.size_bytes, whole=False)


def _scan_all(
    files: Files, folder: Path, number: int, report: RecoveryReport, *, is_last: bool
) -> SegmentScan | None:
    """Scan every byte of a segment if there is no checkpoint. None if it is the last one and has no whole chunk."""
    scanner = SegmentScanner(files, folder, number)
    if not is_last:
        return scanner.scan(scanner.size_bytes, whole=True)
    path, reason = segment_path(folder, number), "no whole chunk was written to it"
    try:
        scan = scanner.scan(None, whole=True)
        if scan.chunks:
            report.torn += [scan.torn] if scan.torn is not None else []
            return scan
    except CorruptionError as error:
        if not scanner.headless():
            raise
        reason = error.reason
    report.torn.append(TornTail(str(path), 0, scanner.size_bytes, reason))
    files.delete(path)
    return None


def _reopen(
    files: Files, folder: Path, scan: SegmentScan, report: RecoveryReport, *, torn: bool
) -> SegmentWriter:
    """Open the last segment for writing, cut off behind its last whole chunk.

    An index at its end is cut off too. It will be written again, with the same bytes, when the next chunk comes.
    """
    place = scan.chunks[-1].place
    end, path = place.offset + place.size_bytes, segment_path(folder, scan.header.number)
    handle = files.open_append(path)
    size = handle.size()
    if size > end:
        handle.truncate(end)
        if not torn:
            report.cut.append(TornTail(str(path), end, size - end, "it lay behind the checkpoint's length"))
    return SegmentWriter(files, path, scan.header, handle, end, scan.chunks)


def _measure(last: SegmentScan, size_bytes: int) -> Length:
    chunk = last.chunks[-1]
    chunks, span = chunk.number + 1, chunk.span
    rows = chunks * last.header.chunk_events
    return Length(last.header.number, size_bytes, chunks, rows, span.last_time, span.last_seq)
