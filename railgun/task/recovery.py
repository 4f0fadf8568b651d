"""Opens a task: a new one, or one that continues from its last durable checkpoint.

A recovery restores the state of the checkpoint, and puts the events that no chunk holds yet back into the open region
of the reservoir: from the reservoir's files of open rows. The checkpoint of an earlier release has no such files. Then
the log is read again from the journal's first page on.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from railgun.catalog.changes import AddMetric, Change, DropMetric, PutStream, change_from_json
from railgun.catalog.model import LatePolicy, StreamDefinition
from railgun.catalog.stream_reading import stream_from_record
from railgun.cluster.copies import Gap, LogPoint
from railgun.plan.program import TIME_MIN
from railgun.state.rocks import StoreLimits
from railgun.state.store import Store
from railgun.task.admission import Admission
from railgun.task.computed_columns import ColumnComputer
from railgun.task.environment import TaskEnvironment
from railgun.task.errors import LogGapError, StateLeftBehindError
from railgun.task.inputs import InputMemory
from railgun.task.journal import Journal, JournalPage
from railgun.task.meta import Crossing, TaskMeta, decode_meta
from railgun.task.metrics import TaskMetrics
from railgun.task.processor import TaskProcessor
from railgun.task.settings import TaskIdentity, TaskSettings
from railgun.wire.control_records import decode_control
from railgun.wire.decode import Decoded
from railgun.wire.records import CONTROL, EVENT, Records, runs_of
from reservoir.executor import Executor
from reservoir.files import Files
from reservoir.native.jit import address
from reservoir.open_region.saved_rows import SavedRows
from reservoir.reservoir import Reservoir
from reservoir.reservoir import Settings as ReservoirSettings
from reservoir.segments.length import Length

ReadLog = Callable[[int, int], Iterable[tuple[int, Records]]]
"""(first, end) -> consecutive pairs (offset of the first record, records) for the offsets from first to end - 1."""

_Ids = tuple[NDArray[np.int64], NDArray[np.uint64]]
"""Rows in the order of seq: their seqs int64[n], their ids uint64[n][2]."""

CheckState = Callable[[int, int, str], None]
"""Called with the offset of the next record, the leader epoch of the record before it, and the id of its topic."""


def open_task(
    folder: Path,
    identity: TaskIdentity,
    files: Files,
    read_log: ReadLog,
    settings: TaskSettings | None = None,
    *,
    sync_log: Callable[[int], None] | None = None,
    log_start: int = 0,
    topic_id: str = "",
    begin: int = 0,
    gap: Gap | None = None,
    check_state: CheckState | None = None,
    environment: TaskEnvironment | None = None,
) -> TaskProcessor:
    """Open a task from its last durable checkpoint, or a new one. The result's `position` is the offset it needs next.

    sync_log: is called with a checkpoint's position before the checkpoint is committed; see `CheckpointWork`.
    log_start: the first offset that the log still has. StateLeftBehindError is raised if the task needs an earlier one
        next, or if there is no checkpoint and the log begins after `begin`. Nothing is changed then.
    topic_id: the id of the topic of the log, for the task's next checkpoints.
    begin: the offset at which a task begins that has processed no record.
    gap: a gap of this log that an operator has accepted. The task crosses it if its state is the accepted one.
        StateLeftBehindError is raised if its state has not crossed the gap and never will.
    check_state: is called before any file is changed, if there is a checkpoint. It raises if the log does not continue
        the checkpoint's state.
    environment: clocks, randomness and executor of the task; those of this process if None.

    Raises StoreError, CorruptionError, FormatVersionError, CheckpointVersionError, LogGapError and OSError.
    """
    settings, environment = settings or TaskSettings(), environment or TaskEnvironment()
    store = open_state(folder, settings)
    try:
        found = store.recover()
        meta, length = (None, Length()) if found is None else commit_parts(found[1], str(folder))
        if meta is not None and check_state is not None:
            check_state(meta.position, meta.leader_epoch, meta.topic_id)
        crosses = _check_log(str(folder), meta, log_start, begin, gap)
        column_computer, saved_rows = ColumnComputer(), None if meta is None else meta.saved_rows
        reservoir = open_reservoir(
            folder, files, settings, identity.key, column_computer, length, saved_rows, environment.executor
        )
    except BaseException:
        store.close()
        raise
    task = TaskProcessor(identity, reservoir, store, column_computer, settings, environment)
    task.topic_id = topic_id
    try:
        if meta is not None:
            _restore(task, meta, read_log)
        task.position = task.position or begin
        task.begin_checkpoints(sync_log, has_earlier_form=_has_earlier_form(meta, topic_id))
        if gap is not None and crosses:
            _cross(task, gap, read_log)
    except BaseException:
        task.close()
        raise
    return task


def _has_earlier_form(meta: TaskMeta | None, topic_id: str) -> bool:
    """Whether there is a checkpoint of a release that kept no open rows, or no id of the topic."""
    if meta is None:
        return False
    return meta.saved_rows is None or bool(topic_id and not meta.topic_id)


def _check_log(place: str, meta: TaskMeta | None, log_start: int, begin: int, gap: Gap | None) -> bool:
    """Raise StateLeftBehindError if the log does not continue a checkpoint. This is checked before any file is changed.
    Returns whether the task crosses the gap.
    """
    point, clock_ms, needed = LogPoint(begin), None, begin
    if meta is not None and meta.position:
        point, needed = LogPoint(meta.position, meta.leader_epoch), meta.position
        clock_ms = None if meta.clock_ms == TIME_MIN else meta.clock_ms
        if meta.saved_rows is None:
            needed = max(0, Journal.from_json(meta.journal).log_start(meta.position))
    if gap is not None and not _has_crossed(meta, gap):
        if point == gap.state and needed == point.offset and log_start <= gap.offset:
            return True
        if point.offset >= gap.offset:
            reason = (
                f"its state, which needs offset {point.offset} next, is not the one with which the task goes on behind "
                f"the gap before offset {gap.offset} that was accepted"
            )
            raise StateLeftBehindError(place, reason, *point, clock_ms)
    if log_start <= needed:
        return False
    what = (
        "its checkpoint is lost"
        if meta is None
        else "its newest checkpoint is lost, or its log was not kept for long enough"
    )
    reason = (
        f"{what}: the log begins at offset {log_start}, offset {needed} is needed; restore the whole data folder from "
        "a copy"
    )
    if needed < point.offset:
        # Open rows of an earlier release are gone with the log: this state can cross no gap.
        raise LogGapError(place, reason)
    raise StateLeftBehindError(place, reason, *point, clock_ms)


def _has_crossed(meta: TaskMeta | None, gap: Gap) -> bool:
    """Whether a state has crossed a gap, or a later one."""
    if meta is None or meta.gap is None:
        return False
    crossed = meta.gap
    return crossed.offset > gap.offset or (crossed.offset, crossed.position, crossed.leader_epoch) == (
        gap.offset,
        *gap.state,
    )


def _cross(task: TaskProcessor, gap: Gap, read_log: ReadLog) -> None:
    """Let a task go on behind a gap, with the changes of the catalogue that apply there.

    These were written into the log again. Other records that lie between them are left out.
    """
    streams: dict[str, StreamDefinition] = {}
    found: list[Change] = []
    for _, records in read_log(*gap.told):
        for kind, run in runs_of(records):
            for row in range(len(run) if kind == CONTROL else 0):
                change = change_from_json(decode_control(run.record(row)), streams)
                if isinstance(change, PutStream | AddMetric | DropMetric) and change.place <= gap.place:
                    found.append(change)
                if isinstance(change, PutStream):
                    streams[change.stream.name] = change.stream
    if not streams:
        raise LogGapError(
            str(task.identity),
            f"its log has lost the definitions at offset {gap.told[0]} that were written for its gap: accept it again",
        )
    task.cross(Crossing(gap.gap_ms, gap.offset, *gap.state), found, gap.place)


def commit_parts(body: bytes, place: str) -> tuple[TaskMeta, Length]:
    """Decode a commit record: the task's meta data, and the length of the reservoir after it was synced."""
    meta_bytes, length_bytes = split_meta(body)
    return decode_meta(meta_bytes, place), Length(*msgspec.msgpack.decode(length_bytes))


def split_meta(body: bytes) -> tuple[bytes, bytes]:
    """Split a commit record into the task's meta data, and the bytes that were known only after syncing."""
    size = int.from_bytes(body[:4], "little")
    return body[4 : 4 + size], body[4 + size :]


def _restore(task: TaskProcessor, meta: TaskMeta, read_log: ReadLog) -> None:
    task.pool.restore(meta.pool)
    task.inputs = InputMemory.from_json(meta.inputs)
    task.retained_ms, task.history = meta.retained_ms, meta.history
    task.leader_epoch, task.gap, task.begun = meta.leader_epoch, meta.gap, meta.begun
    task.runtime.restore(meta.groups, meta.next_group, meta.cells)
    if meta.stream is None:
        task.position = meta.position
        return
    task.stream = stream = stream_from_record(meta.stream)
    task.schemas = {int(version): stream_from_record(body) for version, body in meta.schemas.items()}
    task.metrics = TaskMetrics.from_json(meta.metrics, {stream.name: stream})
    discard = stream.late_policy is LatePolicy.DISCARD
    task.admission = Admission(stream.lateness_ms, discard, stream.dedup_events)
    task.admission.restore(meta.clock_ms, meta.floor_ms)
    task.rebuild()
    task.journal = Journal.from_json(meta.journal)
    if meta.saved_rows is None:
        open_ids = [_reopen(task, page, read_log) for page in task.journal.pages]
    else:
        open_ids = [_restore_rows(task, rows) for rows in task.reservoir.saved_rows()]
    _recall(task, open_ids, stream.dedup_events)
    task.position = meta.position
    task.admission.least_ms = meta.least_ms
    task.admission.set_lateness(stream.lateness_ms, discard=discard)
    task.admission.restore(meta.clock_ms, meta.floor_ms)
    task.runtime.seek(meta.clock_ms)


def _restore_rows(task: TaskProcessor, rows: SavedRows) -> _Ids:
    """Put rows of a checkpoint's files back into the open region. Returns the ids of those that are still open."""
    decoded = task.runtime.arrivals.read(Records(rows.payload, rows.offsets))
    task.restore(decoded, 0, address(rows.time), address(rows.seq))
    is_open = task.reservoir.slots[: decoded.n] >= 0
    return rows.seq[is_open], _ids(decoded, is_open)


def _reopen(task: TaskProcessor, page: JournalPage, read_log: ReadLog) -> _Ids:
    """Read the records of a journal's page again from the log, and put those that were accepted, and are not sealed,
    back into the open region. Returns their ids.
    """
    admission = task.admission
    admission.set_lateness(page.lateness_ms, discard=page.discard)
    admission.restore(page.clock_ms, page.floor_ms)
    bits = np.frombuffer(bytes(page.accepted), np.uint8)
    position, found = page.first_offset, []
    for offset, records in read_log(page.first_offset, page.end_offset):
        if offset != position:
            raise LogGapError(str(task.identity), f"the log gives offset {offset}, {position} is needed")
        for kind, run in runs_of(records):
            if kind == EVENT:
                decoded = task.runtime.arrivals.read(run)
                start = position - page.first_offset
                accepted = bits[start : start + decoded.n]
                times = admission.readmit(accepted, decoded.time[: decoded.n])
                seqs = np.arange(position, position + decoded.n)
                task.restore(decoded, address(accepted), address(times), address(seqs))
                is_open = task.reservoir.slots[: decoded.n] >= 0
                found.append((seqs[is_open], _ids(decoded, is_open)))
            position += len(run)
    if position != page.end_offset:
        raise LogGapError(
            str(task.identity), f"the log ends at offset {position}, {page.end_offset} is needed"
        )
    return _joined(found)


def _ids(decoded: Decoded, rows: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Return the ids of some records of a batch, uint64[m][2]: hi, lo."""
    n = decoded.n
    return np.stack((decoded.id_hi[:n][rows], decoded.id_lo[:n][rows]), axis=1)


def _joined(parts: Sequence[_Ids]) -> _Ids:
    seqs = [each for each, _ in parts] or [np.zeros(0, np.int64)]
    ids = [each for _, each in parts] or [np.zeros((0, 2), np.uint64)]
    return np.concatenate(seqs), np.concatenate(ids)


def _recall(task: TaskProcessor, open_ids: Sequence[_Ids], dedup_events: int) -> None:
    """Restore the memory of duplicates from the ids of sealed and open rows, in the order of their positions."""
    admission, reservoir = task.admission, task.reservoir
    open_seqs, ids = _joined(open_ids)
    admission.expect(min(dedup_events, reservoir.sealed_rows + len(open_seqs)))
    taken = 0
    for sealed_seqs, sealed_ids in reservoir.recent_ids(dedup_events):
        if len(sealed_seqs):
            behind = int(np.searchsorted(open_seqs, sealed_seqs[-1]))
            places = np.searchsorted(sealed_seqs, open_seqs[taken:behind])
            admission.recall(np.insert(sealed_ids, places, ids[taken:behind], axis=0))
            taken = behind
    admission.recall(ids[taken:])


def open_state(folder: Path, settings: TaskSettings) -> Store:
    """Open the state store of a task's folder."""
    limits = StoreLimits(settings.write_buffer_bytes, settings.block_cache_bytes)
    return Store(folder / "state", limits)


def open_reservoir(
    folder: Path,
    files: Files,
    settings: TaskSettings,
    key: bytes,
    column_computer: ColumnComputer,
    length: Length,
    saved_rows: Sequence[int] | None,
    executor: Executor,
) -> Reservoir:
    """Open the reservoir of a task's folder, cut back to the length in a checkpoint, with its files of open rows."""
    needed = ReservoirSettings(
        stream_key=key,
        chunk_events=settings.chunk_events,
        segment_bytes=settings.segment_bytes,
        cache_bytes=settings.chunk_cache_bytes,
        changelog_entries=settings.crossings_max,
    )
    return Reservoir.open(
        folder / "reservoir",
        files,
        compute_columns=column_computer,
        executor=executor,
        find_recipe=column_computer.find_recipe,
        settings=needed,
        length=length,
        saved_rows=saved_rows,
    )
