"""Tasks that are measured: one for each partitioner of a stream, fed in turn by one thread."""

import shutil
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from pathlib import Path
from time import perf_counter, thread_time

import numpy as np
from numpy.typing import NDArray

from railgun.catalog.model import MetricDefinition, StreamDefinition
from railgun.engine.offline_tasks import SCHEMA_VERSION, close_tasks, open_tasks, task_folder
from railgun.host.disk_usage import measure_disk
from railgun.ingest.routing import Router
from railgun.ingest.taken_records import take_records
from railgun.measuring.answering import Answering
from railgun.measuring.errors import NoRoomError
from railgun.plan.program import TIME_MIN
from railgun.task.environment import TaskEnvironment
from railgun.task.processor import TaskProcessor
from railgun.task.replies import Replies
from railgun.task.settings import TaskSettings
from railgun.wire.columns import EventColumns
from railgun.wire.encode import encode_columns
from railgun.wire.records import Records
from reservoir.native.jit import keeps_interpreter

_BATCH_EVENTS = 2048
# The kernels take only microseconds for so few events, so they keep the interpreter lock, as in an engine.
_BRIEF_EVENTS = 16
_ROOM_BYTES = 1_000_000_000
_LEFT_BYTES = 256 << 20
_COMMIT_LOOK_S = 0.001
# Chunks that wait to be written are on disk after this time, on any disk that could hold the load.
_WRITTEN_S = 10.0
# A front-end that waits for the replies, so that tasks encode them.
_REPLY_TO = 0


class Part:
    """The records that one task gets of a run of n events.

    rows: int64[...], the indexes of the events, ascending; None for all of them.
    """

    def __init__(self, records: Records, rows: NDArray[np.int64] | None, n: int) -> None:
        self.records = records
        # For each event, and for the end: the first record that is not before it.
        self._places = None if rows is None else np.searchsorted(rows, np.arange(n + 1)).tolist()

    def between(self, first: int, after: int) -> Records:
        """Return the records of events `first` to `after` - 1."""
        if self._places is None:
            return self.records.part(first, after)
        return self.records.part(self._places[first], self._places[after])


class Load:
    """One task, and what it was fed since `begin_counting`.

    events, accepted, late, duplicates: how many events it got, and how many of them were that.
    wall_s, cpu_s: the time that it took, and the processor time of the thread that feeds it.
    """

    def __init__(self, task: TaskProcessor) -> None:
        self.task, self.partitioner = task, task.identity.partitioner
        self._answering = Answering(task)
        self.begin_counting()

    def begin_counting(self) -> None:
        """Count from 0."""
        self.events = self.accepted = self.late = self.duplicates = 0
        self.record_bytes, self._answering.size_bytes = 0, 0
        self.wall_s = self.cpu_s = 0.0

    @property
    def reply_bytes(self) -> int:
        """The bytes of the reply records."""
        return self._answering.size_bytes

    def feed(self, records: Records) -> None:
        """Process records in batches, with the background work in between."""
        begun, begun_cpu = perf_counter(), thread_time()
        for first in range(0, len(records), _BATCH_EVENTS):
            part = records.part(first, min(len(records), first + _BATCH_EVENTS))
            self.task.process(part, self.task.position, self._take)
            self.task.work()
        self.wall_s += perf_counter() - begun
        self.cpu_s += thread_time() - begun_cpu
        self.record_bytes += records.size_bytes

    def answer(self, records: Records) -> None:
        """Process the records of events that came together. Nothing is counted."""
        if len(records):
            with keeps_interpreter if len(records) <= _BRIEF_EVENTS else nullcontext():
                self.task.process(records, self.task.position, self._answering)

    def _take(self, replies: Replies) -> None:
        self.events += replies.n
        self.accepted += int((replies.accepted[: replies.n] != 0).sum())
        self.late += int((replies.late[: replies.n] != 0).sum())
        self.duplicates += int((replies.duplicate[: replies.n] != 0).sum())
        self._answering(replies)


class MeasuredTasks:
    """One task for each partitioner of a stream, in a temporary folder that `close` removes.

    Raises NoRoomError, StoreError, ReservoirError, TaskError and OSError.
    """

    def __init__(self, stream: StreamDefinition, metrics: Sequence[MetricDefinition]) -> None:
        self._stream = replace(stream, partitions=1)
        self._router, self._sequence = Router(self._stream), 0
        with ExitStack() as undoing:
            self.folder = Path(tempfile.mkdtemp(prefix="railgun-bench-"))
            undoing.callback(shutil.rmtree, self.folder, ignore_errors=True)
            _check_room(self.folder)
            tasks = open_tasks(self._stream, metrics, self.folder, TaskSettings(), TaskEnvironment())
            undoing.callback(close_tasks, tasks)
            self.loads = [Load(task) for task in tasks]
            self._closing = undoing.pop_all()

    def close(self) -> None:
        """Close all tasks, and remove the folder."""
        self._closing.close()

    @property
    def has_room(self) -> bool:
        """Whether the disk has more room than the tasks should leave free."""
        return shutil.disk_usage(self.folder).free > _LEFT_BYTES

    def parts(self, events: EventColumns) -> list[Part]:
        """Return the records that each task gets, in the order of `loads`. They are made as a front-end makes them."""
        made = encode_columns(SCHEMA_VERSION, events, _REPLY_TO, 1, self._sequence)
        self._sequence += len(events)
        # They are copied, since the encoder's buffer has room for the worst case.
        records = Records(np.array(made.buffer), made.offsets)
        parts: list[Part] = []
        for shares in self._router.shares(events):
            rows = shares[0].rows if shares else np.zeros(0, np.int64)
            parts.append(Part(take_records(records, rows), rows, len(events)))
        return parts

    def begin_counting(self) -> None:
        """Have each task count from 0."""
        for load in self.loads:
            load.begin_counting()

    def feed(self, events: EventColumns) -> float:
        """Process events as fast as it goes. Returns the processor time of making their records, in seconds."""
        begun = thread_time()
        parts = self.parts(events)
        making_s = thread_time() - begun
        for load, part in zip(self.loads, parts):
            load.feed(part.records)
        return making_s

    def work(self) -> bool:
        """Do a brief step of background work in each task. Returns whether there is more to do now."""
        is_more = [load.task.work(brief=True) for load in self.loads]
        return any(is_more)

    def settle(self, seconds: float) -> None:
        """Write a checkpoint of all that was processed in each task, for at most so many seconds in all."""
        until_s = perf_counter() + seconds
        for load in self.loads:
            while not load.task.checkpoints.advance() and perf_counter() < until_s:
                if load.task.checkpointer.is_committing:
                    time.sleep(_COMMIT_LOOK_S)

    @property
    def clock_ms(self) -> int:
        """The latest event time of any task."""
        return max(load.task.admission.clock_ms for load in self.loads)

    @property
    def reach_ms(self) -> int:
        """How far the last edge of any window is behind the clock; 0 if nothing ever leaves a window."""
        return max((delta for load in self.loads for delta in load.task.runtime.edges), default=0)

    @property
    def state_bytes(self) -> int:
        """What is on disk beside events."""
        return measure_disk(self.folder).state_bytes

    def stored_bytes(self, load: Load) -> float | None:
        """Return how many bytes a stored event takes on disk in a task; None if too few are there yet to tell."""
        reservoir, who = load.task.reservoir, load.task.identity
        until_s = perf_counter() + _WRITTEN_S
        while reservoir.stats().pending_chunks and perf_counter() < until_s:
            # Nothing is before this, but the reservoir notes which chunks are on disk by now.
            reservoir.drop_before(TIME_MIN)
            time.sleep(_COMMIT_LOOK_S)
        rows = reservoir.sealed_rows - reservoir.stats().pending_chunks * reservoir.settings.chunk_events
        own = task_folder(self.folder, who.partitioner, who.partition)
        size_bytes = sum(each.stat().st_size for each in own.rglob("*.seg"))
        return size_bytes / rows if rows > 0 else None


def _check_room(folder: Path) -> None:
    free_bytes = shutil.disk_usage(folder).free
    if free_bytes < _ROOM_BYTES:
        raise NoRoomError(
            f"{folder.parent}: {free_bytes / 1e9:.1f} GB are free, and a bench needs {_ROOM_BYTES / 1e9:.1f} GB; "
            "free some, or name another folder with TMPDIR"
        )
