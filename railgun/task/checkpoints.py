"""Decides when a task takes a checkpoint, what the checkpoint holds, and what may be deleted once it is durable.

`TaskProcessor` has one `CheckpointWork`. Its host calls `step` between batches; `begin`, `advance` and `take` are for
callers that need a checkpoint now, such as a last one before the task is closed.
"""

from collections.abc import Callable
from dataclasses import astuple

import msgspec

from railgun.catalog.stream_reading import stream_to_json
from railgun.plan.program import TIME_MIN
from railgun.task.meta import TaskMeta, encode_meta, version_for
from railgun.task.plan_runtime import subtract_clamped
from railgun.task.view import TaskView
from reservoir.executor import Job

_DEFERRED_PAGES = 64
_FILLS_APART_S = 1.0
# A slice of a checkpoint should hold up events for no longer than this. A slice that takes longer halves the next
# one, and one that takes much less time doubles it.
_SLICE_S, _SLICE_FIRST_BYTES, _SLICE_LEAST_BYTES = 0.01, 32 * 1024, 8 * 1024
# After each period of this length within one checkpoint, the least size of a slice grows. Otherwise a checkpoint
# would never end while every write is slow.
_PATIENCE_S = 5.0
# The least size of a slice is divided into at most this many shares. Smaller writes would not take less time.
_LEAST_SHARES = 8
# The additional time that a record costs in a recovery. Its row, and the row of an event that leaves a window, were
# in memory before and have to be read from the disk.
_COLD_ROWS_S = 10e-6
# A process that is idle for less than this share of the time counts as fully loaded: some idle time is only waiting
# between threads.
_SPARE_SHARE = 1 / 6
# A checkpoint is outdated after this many intervals, or records. A copy that begins with it would have much to process
# again.
_OUTDATED_INTERVALS, _OUTDATED_RECORDS = 2, 100_000


class CheckpointWork:
    """The checkpoints of one task.

    sync_log: is called with a checkpoint's position before the checkpoint is committed. It runs in the checkpoint lane,
        not in the task's thread, and may block there. An engine then syncs its log; a unit waits until
        the replies before the position are acknowledged. None if nothing has to be done.
    has_earlier_form: whether the last durable checkpoint is of an earlier release, and needs more of the log than one
        of this release does. It is replaced even if no record comes.
    taken: how many checkpoints have become durable.
    last_s: how many seconds the last one took.
    durable_position: the position of the last durable checkpoint.
    durable_epoch: the leader epoch of the record before it; -1 if it is not known.
    durable_log_start: the least offset of an event that no chunk of that checkpoint has. A recovery reads the log from
        the checkpoint's position on; an earlier release, and Spark's source of a log, read it from here on.
    durable_chunks: the chunks before this one are kept by every recovery.
    """

    def __init__(
        self, task: TaskView, sync_log: Callable[[int], None] | None = None, *, has_earlier_form: bool = False
    ) -> None:
        self._task = task
        self._sync_log = sync_log
        self._has_earlier_form = has_earlier_form
        self._ended_s, self._ended_bytes = task.now(), task.store.written_bytes
        self._note_clocks()
        self._stored_fills = self._fill_positions()
        self._closing: tuple[int, int, int, int, int, list[int]] | None = None
        self._snapshot: Job[None] | None = None
        self._slice_bytes = min(_SLICE_FIRST_BYTES, task.settings.trickle_bytes)
        self.durable_position, self.durable_epoch = task.position, task.leader_epoch
        self.durable_log_start = task.journal.log_start(task.position)
        self.durable_chunks = task.reservoir.chunks
        self.taken = 0
        self.last_s = 0.0

    def step(self, share: int = 1) -> bool:
        """Do a bounded amount of checkpoint work, or a share of it, and begin a checkpoint if one is due.

        Returns whether there is more to do now.
        """
        task, checkpointer = self._task, self._task.checkpointer
        if checkpointer.is_in_flight:
            if self._trickle(share):
                self._committed()
            return True
        task.pool.free_deferred(_DEFERRED_PAGES)
        is_due = (self._is_due() and self._has_advanced()) or self._is_due_for_fill()
        if is_due and not self.is_held:
            self.begin()
            return True
        checkpointer.step(task.settings.trickle_bytes)
        return False

    def _trickle(self, share: int) -> bool:
        """Write a slice of the checkpoint that is in flight. Returns whether it is durable.

        The cost of a byte varies, because the old values of what is overwritten are read. So the size of a slice
        follows the time that the last one took.
        """
        task, checkpointer = self._task, self._task.checkpointer
        is_writing, begun_s = not checkpointer.is_committing, task.now()
        least_bytes = self._least_bytes()
        share_bytes = max(self._slice_bytes // share, least_bytes // _LEAST_SHARES)
        is_durable = checkpointer.step(max(1, share_bytes))
        slice_s = (task.now() - begun_s) * share
        if is_writing and slice_s > _SLICE_S:
            self._slice_bytes = max(least_bytes, self._slice_bytes // 2)
        elif is_writing and slice_s < _SLICE_S / 4:
            self._slice_bytes = min(2 * self._slice_bytes, task.settings.trickle_bytes)
        return is_durable

    def _least_bytes(self) -> int:
        """Return the least number of bytes of a slice, whatever the time it takes."""
        more = int((self._task.now() - self._begun_s) / _PATIENCE_S)
        return min(_SLICE_LEAST_BYTES * (1 + more), self._task.settings.trickle_bytes)

    def _is_due(self) -> bool:
        """Whether a checkpoint is due.

        It is due when its interval is over, or when enough bytes of state were written since the last one. It is due
        earlier if a recovery would take long to process the new records again.

        Processing records again takes about as long as it took the first time, plus the time for reading rows. An
        early checkpoint must fit into the time in which the process has nothing to do (`TaskView.used_s`). The less
        of that time there is, the later the checkpoint comes; under full load there is no early one. Time lost to other
        processes does not count as idle time.
        """
        task, settings = self._task, self._task.settings
        now_s = task.now()
        if now_s - self._ended_s >= settings.checkpoint_interval_s:
            return True
        if task.store.written_bytes - self._ended_bytes >= settings.checkpoint_bytes:
            return True
        busy_s = task.busy_s - self._begun_busy_s
        again_s = busy_s + (task.position - self._begun_position) * _COLD_ROWS_S
        if again_s < settings.replay_s:
            return False
        passed_s, at_work_s = now_s - self._begun_s, busy_s + task.maintenance_s - self._started_maintenance_s
        idle_s = passed_s - max(at_work_s, task.used_s() - self._begun_used_s)
        if idle_s < _SPARE_SHARE * passed_s:
            return False
        return again_s * idle_s > settings.replay_s * passed_s

    def _has_advanced(self) -> bool:
        """Whether there are new records, or a fill has read on (a task may have to fill a metric before it goes on), or
        the last checkpoint is of an earlier release.
        """
        has_filled = any(each not in self._stored_fills for each in self._fill_positions())
        return has_filled or self._has_earlier_form or self._task.position > self.durable_position

    def _fill_positions(self) -> list[tuple[int, int, int]]:
        fills = self._task.metrics.fills.items()
        return [(g, fill.filled_ms, fill.filled_seq) for g, fill in fills if not fill.full]

    def _note_clocks(self) -> None:
        task = self._task
        self._begun_s, self._begun_used_s = task.now(), task.used_s()
        self._begun_busy_s, self._started_maintenance_s = task.busy_s, task.maintenance_s
        self._begun_position = task.position

    @property
    def is_outdated(self) -> bool:
        """Whether the last durable checkpoint is old or far behind the task."""
        behind, age_s = self._task.position - self.durable_position, self._task.now() - self._begun_s
        is_old = age_s > _OUTDATED_INTERVALS * self._task.settings.checkpoint_interval_s
        return behind > _OUTDATED_RECORDS or (behind > 0 and is_old)

    @property
    def is_held(self) -> bool:
        """Whether a snapshot of the last checkpoint is being made. None may begin meanwhile, so nothing is deleted."""
        return self._snapshot is not None and not self._snapshot.done()

    def hold_for(self, snapshot: Job[None]) -> None:
        """Begin no checkpoint until this job has ended. No checkpoint may be in flight."""
        assert not self._task.checkpointer.is_in_flight
        self._snapshot = snapshot

    def begin(self) -> None:
        """Begin a checkpoint: close the epoch at the present position."""
        assert not self.is_held
        task = self._task
        self._has_earlier_form = False
        self._note_clocks()
        chunks, position, saving = task.reservoir.chunks, task.position, task.reservoir.save_open_rows()
        log_start = task.journal.log_start(position)
        needed_ms = min(task.retained_ms, *self._window_starts())
        full = [g for g, fill in task.metrics.fills.items() if fill.full]
        self._closing = position, task.leader_epoch, log_start, chunks, needed_ms, full
        self._stored_fills = self._fill_positions()
        sync_log = self._sync_log

        def make_durable() -> bytes:
            saving.write()
            length = task.reservoir.sync(chunks)
            if sync_log is not None:
                sync_log(position)
            return msgspec.msgpack.encode(astuple(length))

        task.checkpointer.begin(join_meta(self._meta(chunks, saving.files)), make_durable)

    def take(self) -> None:
        """Take a checkpoint of the present position and wait until it is durable."""
        checkpointer = self._task.checkpointer
        if self._snapshot is not None:
            self._snapshot.exception()
        if checkpointer.is_in_flight:
            checkpointer.finish()
            self._committed()
        if self._is_needed():
            self.begin()
            checkpointer.finish()
            self._committed()

    def advance(self) -> bool:
        """Do a part of `take`, and wait for nothing. Returns whether all of it is done.

        Must not be called while a snapshot is being made.
        """
        checkpointer = self._task.checkpointer
        if checkpointer.is_in_flight and checkpointer.step(self._task.settings.trickle_bytes):
            self._committed()
        if checkpointer.is_in_flight:
            return False
        is_needed = self._is_needed()
        if is_needed:
            self.begin()
        return not is_needed

    def _is_needed(self) -> bool:
        """Whether `take` begins a checkpoint, when none is in flight."""
        return self._task.position > self.durable_position or self.taken == 0 or self._has_new_fill()

    def _is_due_for_fill(self) -> bool:
        """Whether a checkpoint is due because a fill has finished.

        While other fills go on there is at most one such checkpoint a second: each would write every row again, since
        fills change every row.
        """
        if not self._has_new_fill():
            return False
        is_last = all(fill.full for fill in self._task.metrics.fills.values())
        return is_last or self._task.now() - self._ended_s >= _FILLS_APART_S

    def _has_new_fill(self) -> bool:
        """Whether a finished fill is not covered by a durable checkpoint. Its metrics wait for one, even without new
        records.
        """
        return any(fill.full and not fill.durable for fill in self._task.metrics.fills.values())

    def _window_starts(self) -> list[int]:
        """Return times such that windows, fills and the duplicate memory need only events after the least of them."""
        task = self._task
        starts = [task.reservoir.time_before_last(task.stream.dedup_events) if task.stream else TIME_MIN]
        starts += [subtract_clamped(task.admission.clock_ms, delta_ms) for delta_ms in task.runtime.edges]
        starts += [fill.filled_ms for fill in task.metrics.fills.values() if not fill.full]
        return starts

    def _committed(self) -> None:
        assert self._closing is not None
        position, epoch, log_start, chunks, needed_ms, full = self._closing
        self._closing = None
        self._ended_s, self._ended_bytes = self._task.now(), self._task.store.written_bytes
        self.last_s = self._ended_s - self._begun_s
        self.durable_position, self.durable_epoch = position, epoch
        self.durable_log_start, self.durable_chunks = log_start, chunks
        self.taken += 1
        self._task.reservoir.forget_saved_rows()
        for generation in full:
            fill = self._task.metrics.fills.get(generation)
            if fill is not None:
                fill.durable = True
        if self._task.stream is not None:
            self._task.runtime.release_bounds(self._task.admission.clock_ms)
        if needed_ms > TIME_MIN:
            self._task.reservoir.drop_before(needed_ms)

    def _meta(self, chunks: int, saved_rows: list[int]) -> bytes:
        task = self._task
        return encode_meta(
            TaskMeta(
                version=version_for(task.gap),
                position=task.position,
                clock_ms=task.admission.clock_ms,
                floor_ms=task.admission.floor_ms,
                retained_ms=task.retained_ms,
                least_ms=task.admission.least_ms,
                chunks=chunks,
                journal=task.journal.to_json(),
                stream=None if task.stream is None else stream_to_json(task.stream),
                schemas={str(version): stream_to_json(stream) for version, stream in task.schemas.items()},
                metrics=task.metrics.to_json(),
                groups=task.runtime.groups_to_json(),
                next_group=task.runtime.next_group,
                cells=task.runtime.cells_to_json(),
                pool=task.pool.meta(),
                inputs=task.inputs.to_json(),
                history=task.history,
                leader_epoch=task.leader_epoch,
                saved_rows=saved_rows,
                topic_id=task.topic_id,
                gap=task.gap,
                begun=task.begun,
            )
        )


def join_meta(meta: bytes) -> bytes:
    """Return the first part of a commit record. What becomes known by syncing is appended (`recovery.split_meta`)."""
    return len(meta).to_bytes(4, "little") + meta
