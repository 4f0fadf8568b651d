"""Opens a task: a new one, or one that continues from its last durable checkpoint and its log.

A recovery restores the state of the checkpoint. It then reads again the log of the journal's pages, to put back the
events that were accepted but not yet sealed in chunks of the reservoir.
"""

from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec
import numpy as np

from railgun.catalog.model import LatePolicy
from railgun.catalog.stream_reading import stream_from_json
from railgun.task.admission import Admission
from railgun.task.computed_columns import ColumnComputer
from railgun.task.environment import TaskEnvironment
from railgun.task.errors import LogGapError
from railgun.task.inputs import InputMemory
from railgun.task.journal import Journal, JournalPage
from railgun.task.meta import TaskMeta, decode_meta
from railgun.task.metrics import TaskMetrics
from railgun.task.processor import TaskIdentity, TaskProcessor, open_reservoir, open_state
from railgun.task.settings import TaskSettings
from railgun.wire.records import EVENT, Records, runs_of
from reservoir.files import Files
from reservoir.segments.length import Length

ReadLog = Callable[[int, int], Iterable[tuple[int, Records]]]
"""(first, end) -> consecutive pairs (offset of the first record, records) for the offsets from first to end - 1."""

CheckState = Callable[[int, int], None]
"""Called with the offset of the next record, and with the leader epoch of the record before it."""


def open_task(
    folder: Path,
    identity: TaskIdentity,
    files: Files,
    read_log: ReadLog,
    settings: TaskSettings | None = None,
    *,
    sync_log: Callable[[int], None] | None = None,
    log_start: int = 0,
    check_state: CheckState | None = None,
    environment: TaskEnvironment | None = None,
) -> TaskProcessor:
    """Open a task from its last durable checkpoint, or a new one. The result's `position` is the offset it needs next.

    sync_log: see `CheckpointWork`.
    log_start: the first offset that the log still has. LogGapError is raised if the checkpoint needs an earlier one,
        or if there is no checkpoint and the log does not begin at 0. Nothing is changed then.
    check_state: is called before any file is changed, if there is a checkpoint. It raises if the log does not continue
        the checkpoint's state.
    environment: clocks, randomness and executor of the task; those of this process if None.

    Raises StoreError, CorruptionError, FormatVersionError, CheckpointVersionError, LogGapError and OSError.
    """
    settings, environment = settings or TaskSettings(), environment or TaskEnvironment()
    store = open_state(folder, settings)
    try:
        found = store.recover()
        meta, length = (None, Length()) if found is None else _parts(found[1], str(folder))
        _check_log(folder, meta, log_start)
        if meta is not None and check_state is not None:
            check_state(meta.position, meta.leader_epoch)
        column_computer = ColumnComputer()
        reservoir = open_reservoir(
            folder, files, settings, identity.key, column_computer, length, environment.executor
        )
    except BaseException:
        store.close()
        raise
    task = TaskProcessor(identity, reservoir, store, column_computer, settings, environment)
    try:
        if meta is not None:
            _restore(task, meta, read_log)
        task.begin_checkpoints(sync_log)
    except BaseException:
        task.close()
        raise
    return task


def _check_log(folder: Path, meta: TaskMeta | None, log_start: int) -> None:
    """Raise LogGapError if the log lacks records that are needed after a checkpoint. This is checked before any file
    is changed.
    """
    needed = 0
    if meta is not None:
        needed = max(0, Journal.from_json(meta.journal).log_start(meta.position))
    if log_start > needed:
        what = "its checkpoint is lost" if meta is None else "its newest checkpoint is lost"
        raise LogGapError(
            str(folder),
            f"{what}: the log begins at offset {log_start}, offset {needed} is needed; restore the whole data "
            "folder from a copy",
        )


def _parts(body: bytes, place: str) -> tuple[TaskMeta, Length]:
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
    task.leader_epoch = meta.leader_epoch
    task.runtime.restore(meta.groups, meta.next_group, meta.cells)
    if meta.stream is None:
        task.position = meta.position
        return
    task.stream = stream = stream_from_json(meta.stream)
    task.schemas = {int(version): stream_from_json(body) for version, body in meta.schemas.items()}
    task.metrics = TaskMetrics.from_json(meta.metrics, {stream.name: stream})
    discard = stream.late_policy is LatePolicy.DISCARD
    task.admission = Admission(stream.lateness_ms, discard, stream.dedup_events)
    task.admission.restore(meta.clock_ms, meta.floor_ms)
    task.rebuild()
    task.journal = Journal.from_json(meta.journal)
    _recall(task, meta, stream.dedup_events)
    for page in task.journal.pages:
        _reopen(task, page, read_log)
    task.position = meta.position
    task.admission.least_ms = meta.least_ms
    task.admission.set_lateness(stream.lateness_ms, discard=discard)
    task.admission.restore(meta.clock_ms, meta.floor_ms)
    task.runtime.seek(meta.clock_ms)


def _recall(task: TaskProcessor, meta: TaskMeta, dedup_events: int) -> None:
    """Restore the duplicate memory from sealed events whose positions lie before the journal's first page."""
    first = task.journal.first_offset
    before = meta.position if first is None else first
    task.admission.expect(min(dedup_events, task.reservoir.sealed_rows))
    for seqs, ids in task.reservoir.recent_ids(dedup_events):
        task.admission.recall(ids[: np.searchsorted(seqs, before)])


def _reopen(task: TaskProcessor, page: JournalPage, read_log: ReadLog) -> None:
    """Read the records of a journal's page again from the log.

    Those that were accepted but not sealed are put back into the open region of the reservoir.
    """
    admission = task.admission
    admission.set_lateness(page.lateness_ms, discard=page.discard)
    admission.restore(page.clock_ms, page.floor_ms)
    bits = np.frombuffer(bytes(page.accepted), np.uint8)
    task.position = page.first_offset
    for offset, records in read_log(page.first_offset, page.end_offset):
        if offset != task.position:
            raise LogGapError(str(task.identity), f"the log gives offset {offset}, {task.position} is needed")
        for kind, run in runs_of(records):
            if kind == EVENT:
                decoded = task.runtime.arrivals.read(run)
                start = task.position - page.first_offset
                admitted = admission.readmit(
                    bits[start : start + decoded.n],
                    decoded.status,
                    decoded.time,
                    decoded.id_hi,
                    decoded.id_lo,
                )
                task.append(decoded, admitted, restoring=True)
            task.position += len(run)
    if task.position != page.end_offset:
        raise LogGapError(
            str(task.identity), f"the log ends at offset {task.position}, {page.end_offset} is needed"
        )
