"""When a task checkpoints, what a checkpoint holds, and what may be deleted once it is durable."""

from collections.abc import Callable
from dataclasses import astuple

import msgspec

from railgun.catalog.stream_reading import stream_to_json
from railgun.plan.program import TIME_MIN
from railgun.task.machine import subtract_clamped
from railgun.task.meta import VERSION, TaskMeta, encode_meta
from railgun.task.view import TaskView

_DEFERRED_PAGES = 64
_FILLS_APART_S = 1.0
# A slice of a checkpoint shall hold events up for no longer; it is halved where it does, grows where it is far from it.
_SLICE_S, _SLICE_FIRST_BYTES, _SLICE_LEAST_BYTES = 0.01, 32 * 1024, 8 * 1024
# The least of a slice is so much more for each of these seconds that a checkpoint takes: where every write is slow, it
# would not come to its end.
_PATIENCE_S = 5.0
# In how small shares the least of a slice is written at most: less in one write would not take less time.
_LEAST_SHARES = 8
# What a record costs a recovery beside its processing: its row, and that of an event that leaves, which were in memory,
# are read from the disk.
_COLD_ROWS_S = 10e-6
# Who waits for less of the time is under full load: handing over, and taking turns, wait too.
_SPARE_SHARE = 1 / 6


class CheckpointWork:
    """The checkpoints of one task. `sync_log` makes the log durable up to an offset, where the log is ours.

    taken: how many became durable.  last_s: how long the last of them took.  durable_chunks: those before no recovery
    will cut off.
    """

    def __init__(self, task: TaskView, sync_log: Callable[[int], None] | None = None) -> None:
        self._task = task
        self._sync_log = sync_log
        self._ended_s, self._ended_bytes = task.now(), task.store.written_bytes
        self._note_clocks()
        self._closing: tuple[int, int, int, int, list[int]] | None = None
        self._slice_bytes = min(_SLICE_FIRST_BYTES, task.settings.trickle_bytes)
        self.durable_position = task.position
        self.durable_log_start = task.journal.log_start(task.position)
        self.durable_chunks = task.reservoir.chunks
        self.taken = 0
        self.last_s = 0.0

    def step(self, share: int = 1) -> bool:
        """A bounded bit of work, or a share of one, beginning a checkpoint when one is due. True: there is more to do
        now.
        """
        task, checkpointer = self._task, self._task.checkpointer
        if checkpointer.is_in_flight:
            if self._trickle(share):
                self._committed()
            return True
        task.pool.free_deferred(_DEFERRED_PAGES)
        if (self._is_due() and task.position > self.durable_position) or self._is_due_for_fill():
            self.begin()
            return True
        checkpointer.step(task.settings.trickle_bytes)
        return False

    def _trickle(self, share: int) -> bool:
        """A slice of a checkpoint in flight. What a byte costs varies: what it overwrites is read."""
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
        """Of a slice, however long it takes."""
        more = int((self._task.now() - self._begun_s) / _PATIENCE_S)
        return min(_SLICE_LEAST_BYTES * (1 + more), self._task.settings.trickle_bytes)

    def _is_due(self) -> bool:
        """By the clock, or by what was written since; or earlier, where what a recovery would have to process again has
        grown long.

        Replaying takes about as long as processing did, and the reading of rows.  An early checkpoint is paid from the
        time in which nothing is to be done (`TaskView.used_s`): the less of that there is, the later it comes; under
        full load only the former two count.
        Where others take the processors, this task is at work for longer than it uses them; both are no spare time.
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

    def _note_clocks(self) -> None:
        task = self._task
        self._begun_s, self._begun_used_s = task.now(), task.used_s()
        self._begun_busy_s, self._started_maintenance_s = task.busy_s, task.maintenance_s
        self._begun_position = task.position

    def begin(self) -> None:
        """Close the epoch at the present position."""
        task = self._task
        self._note_clocks()
        chunks, position = task.reservoir.chunks, task.position
        log_start = task.journal.log_start(position)
        needed_ms = min(task.retained_ms, *self._window_starts())
        full = [g for g, fill in task.metrics.fills.items() if fill.full]
        self._closing = position, log_start, chunks, needed_ms, full
        sync_log = self._sync_log

        def make_durable() -> bytes:
            length = task.reservoir.sync(chunks)
            if sync_log is not None:
                sync_log(position)
            return msgspec.msgpack.encode(astuple(length))

        task.checkpointer.begin(join_meta(self._meta(chunks)), make_durable)

    def take(self) -> None:
        """Take a checkpoint of the present position and wait until it is durable."""
        checkpointer = self._task.checkpointer
        if checkpointer.is_in_flight:
            checkpointer.finish()
            self._committed()
        if self._task.position > self.durable_position or self.taken == 0 or self._has_new_fill():
            self.begin()
            checkpointer.finish()
            self._committed()

    def _is_due_for_fill(self) -> bool:
        """Does a finished fill wait for a checkpoint? While others fill, one checkpoint a second is for all of them:
        they change every row, and each checkpoint would write every row anew.
        """
        if not self._has_new_fill():
            return False
        is_last = all(fill.full for fill in self._task.metrics.fills.values())
        return is_last or self._task.now() - self._ended_s >= _FILLS_APART_S

    def _has_new_fill(self) -> bool:
        """Does a finished fill wait for a checkpoint? Its metrics do, and there may be no traffic to bring one."""
        return any(fill.full and not fill.durable for fill in self._task.metrics.fills.values())

    def _window_starts(self) -> list[int]:
        """What windows, fills and the duplicate memory still need lies after these times."""
        task = self._task
        starts = [task.reservoir.time_before_last(task.stream.dedup_events) if task.stream else TIME_MIN]
        starts += [subtract_clamped(task.admission.clock_ms, delta_ms) for delta_ms in task.machine.edges]
        starts += [fill.filled_ms for fill in task.metrics.fills.values() if not fill.full]
        return starts

    def _committed(self) -> None:
        assert self._closing is not None
        position, log_start, chunks, needed_ms, full = self._closing
        self._closing = None
        self._ended_s, self._ended_bytes = self._task.now(), self._task.store.written_bytes
        self.last_s = self._ended_s - self._begun_s
        self.durable_position = position
        self.durable_log_start, self.durable_chunks = log_start, chunks
        self.taken += 1
        for generation in full:
            fill = self._task.metrics.fills.get(generation)
            if fill is not None:
                fill.durable = True
        if self._task.stream is not None:
            self._task.machine.release_bounds(self._task.admission.clock_ms)
        if needed_ms > TIME_MIN:
            self._task.reservoir.drop_before(needed_ms)

    def _meta(self, chunks: int) -> bytes:
        task = self._task
        return encode_meta(
            TaskMeta(
                version=VERSION,
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
                groups=task.machine.groups_to_json(),
                next_group=task.machine.next_group,
                cells=task.machine.cells_to_json(),
                pool=task.pool.meta(),
                inputs=task.inputs.to_json(),
                history=task.history,
            )
        )


def join_meta(meta: bytes) -> bytes:
    """The first part of a commit record; what syncing says follows (`recovery.split_meta`)."""
    return len(meta).to_bytes(4, "little") + meta
