"""Reads and checks every byte of tasks' folders, for `railgun inspect`. Changes nothing."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from railgun.history.manifest import HISTORY, read_manifest
from railgun.history.open_records import check_tail
from railgun.history.task_folder import POINTER, current_folder
from railgun.host.data_folder import is_on_its_way
from railgun.plan.program import TIME_MIN
from railgun.state.errors import StoreError, StoreVersionError
from railgun.state.stored import Amount, StoredState
from railgun.task.errors import HistoryDamagedError
from railgun.task.meta import TaskMeta, decode_meta
from railgun.task.recovery import split_meta
from reservoir.errors import CorruptionError
from reservoir.files import DiskFiles
from reservoir.segments.describe import (
    FolderDescription,
    SegmentDescription,
    damaged_open_rows,
    describe_folder,
)
from reservoir.segments.length import Length
from reservoir.segments.segment import SegmentScanner, segment_numbers, segment_path

RESERVOIR, STATE = "reservoir", "state"


@dataclass(frozen=True, slots=True)
class StateReport:
    """The state of a task as of its last checkpoint.

    position: the offset of the next log record to process.
    clock_ms: the task's clock; None before the first event.
    rows: the amount of rows by group-by (fields joined by commas).
    """

    epoch: int
    position: int
    stream: str | None
    clock_ms: int | None
    metrics: tuple[str, ...]
    warming: tuple[str, ...]
    rows: dict[str, Amount]
    pages: Amount
    strings: Amount


@dataclass(frozen=True, slots=True)
class HistoryReport:
    """The history that a task has from before its log.

    cut_ms: all events of the history are before this time.
    events: the number of events with which the task was built.
    position: the offset of the log up to which a deepened live stream was built; 0 if history was put before its log.
    """

    history: str
    cut_ms: int
    events: int
    position: int = 0


@dataclass(frozen=True, slots=True)
class TaskReport:
    """The report on one task.

    state: None if nothing was ever checkpointed, or if it cannot be read.
    damage: what is wrong, each with file and place.
    torn: what a crash left, which the next start cuts off.
    history: the manifest of the history before its log; None if it has none.
    """

    folder: str
    segments: tuple[SegmentDescription, ...]
    events: int
    chunks: int
    size_bytes: int
    first_ms: int | None
    last_ms: int | None
    state: StateReport | None
    torn: tuple[str, ...]
    damage: tuple[str, ...]
    history: HistoryReport | None = None


def task_folders(folder: Path) -> Iterator[Path]:
    """Yield the folders of tasks at and below a folder, sorted by name. Raises OSError."""

    def refuse(error: OSError) -> None:
        raise error

    for above, below, files in os.walk(folder, onerror=refuse):
        below[:] = [name for name in below if not is_on_its_way(name)]
        if POINTER in files:
            below[:] = [current_folder(Path(above)).name]
            continue
        if RESERVOIR in below and STATE in below and _is_task(Path(above)):
            yield Path(above)
            below.clear()
        below.sort()


def _is_task(folder: Path) -> bool:
    return (folder / STATE / "CURRENT").exists() or bool(segment_numbers(DiskFiles(), folder / RESERVOIR))


def inspect_task(folder: Path) -> TaskReport:
    """Read all of a task. Damage is in the report.

    Raises FormatVersionError, StoreVersionError and CheckpointVersionError for what another release wrote; and OSError.
    """
    files = DiskFiles()
    _check_versions(folder / RESERVOIR, files)
    damage: list[str] = []
    # The state comes first: while a task runs, its segments hold at least what a checkpoint that was read before has.
    found: tuple[StateReport, Length, list[int]] | None = None
    try:
        found = _state(folder)
        if found is not None:
            state, _, saved_rows = found
            damage += _damaged_open_rows(folder, files, state.epoch, saved_rows)
    except StoreVersionError:
        raise
    except StoreError as error:
        damage.append(str(error))
    events = describe_folder(folder / RESERVOIR, files)
    damage += [segment.damage for segment in events.segments if segment.damage is not None]
    torn = [
        f"{segment.file}: {segment.torn_bytes} bytes at the end are no whole chunk"
        for segment in events.segments
        if segment.torn_bytes
    ]
    if found is not None:
        damage += _missing(folder / RESERVOIR, events, found[1])
    try:
        history = _history(folder)
    except HistoryDamagedError as error:
        history = None
        damage.append(str(error))
    times = [time for s in events.segments for time in (s.first_time, s.last_time) if time is not None]
    return TaskReport(
        folder=str(folder),
        segments=events.segments,
        events=events.rows,
        chunks=sum(segment.chunks for segment in events.segments),
        size_bytes=events.size_bytes,
        first_ms=min(times, default=None),
        last_ms=max(times, default=None),
        state=None if found is None else found[0],
        torn=tuple(torn),
        damage=tuple(damage),
        history=history,
    )


def _check_versions(folder: Path, files: DiskFiles) -> None:
    """Raise FormatVersionError for a segment of a newer release, because that is no damage."""
    for number in segment_numbers(files, folder):
        try:
            SegmentScanner(files, folder, number).header()
        except (CorruptionError, FileNotFoundError):
            continue


def _state(folder: Path) -> tuple[StateReport, Length, list[int]] | None:
    """Return the state of the last checkpoint, the length of the reservoir, and its files of open rows."""
    if not any((folder / STATE).iterdir()):
        return None
    stored = StoredState(folder / STATE)
    try:
        commit = stored.commit()
        if commit is None:
            return None
        amounts = stored.amounts()
    finally:
        stored.close()
    epoch, body = commit
    meta_bytes, length_bytes = split_meta(body)
    meta = decode_meta(meta_bytes, str(folder))
    names = {number: name for name, number in meta.groups.items()}
    report = StateReport(
        epoch=epoch,
        position=meta.position,
        stream=None if meta.stream is None else str(meta.stream.get("name")),
        clock_ms=None if meta.clock_ms == TIME_MIN else meta.clock_ms,
        metrics=_metrics(meta, warm=True) + _metrics(meta, warm=False),
        warming=_metrics(meta, warm=False),
        rows={names.get(n, f"dropped group {n}"): amount for n, amount in sorted(amounts.rows.items())},
        pages=amounts.pages,
        strings=amounts.strings,
    )
    return report, Length(*msgspec.msgpack.decode(length_bytes)), meta.saved_rows or []


def _damaged_open_rows(folder: Path, files: DiskFiles, epoch: int, saved_rows: list[int]) -> list[str]:
    """Return what is wrong with the files of open rows. A task that runs may take a checkpoint meanwhile, and delete
    the files of the one before.
    """
    damage = damaged_open_rows(folder / RESERVOIR, files, saved_rows)
    found = _state(folder) if damage else None
    if found is not None and found[0].epoch > epoch:
        return _damaged_open_rows(folder, files, found[0].epoch, found[2])
    return damage


def _history(folder: Path) -> HistoryReport | None:
    """Read the manifest of a task's history, and check its file of open rows. Raises HistoryDamagedError, OSError."""
    if not (folder / HISTORY).is_dir():
        return None
    manifest = read_manifest(folder)
    check_tail(folder)
    return HistoryReport(manifest.history, manifest.cut_ms, manifest.events, manifest.position)


def _metrics(meta: TaskMeta, *, warm: bool) -> tuple[str, ...]:
    found = [each for each in meta.metrics.get("metrics", ()) if each["warm"] == warm]
    return tuple(each["change"]["name"] for each in found)


def _missing(folder: Path, events: FolderDescription, length: Length) -> list[str]:
    """Return what a checkpoint made durable and the segments lack."""
    if length.chunks == 0:
        return []
    if not events.segments:
        return [f"{segment_path(folder, length.segment)}: the segment is missing"]
    found = events.end_chunk
    if any(segment.damage for segment in events.segments) or found >= length.chunks:
        return []
    last = events.segments[-1]
    what = f"the checkpoint has {length.chunks} chunks, the segments end after {found}"
    return [f"{last.file}, byte {last.size_bytes}: {what}"]
