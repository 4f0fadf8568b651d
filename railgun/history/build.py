"""Builds the folder of a task from past events that never were in the task's log (history), for a live task to take.

The task processes the events as if they had been in the log. Spark's executors make a `HistoryBuild` for each task
(`railgun/spark/backfill/tasks.py`). It writes into an empty folder, whose bytes FORMAT.md describes.
"""

import sys
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from railgun.catalog.changes import AddMetric, Change, PutStream, change_to_json
from railgun.catalog.model import StreamDefinition
from railgun.history.accepted_events import OwnEvents
from railgun.history.manifest import HistoryManifest, write_manifest
from railgun.history.open_records import FIRST_OFFSET, write_tail
from railgun.plan.program import TIME_MIN
from railgun.task.environment import TaskEnvironment
from railgun.task.errors import TaskError
from railgun.task.inputs import InputMemory, Met
from railgun.task.recovery import open_task
from railgun.task.replies import Replies
from railgun.task.settings import TaskIdentity, TaskSettings
from railgun.wire.control_records import encode_control
from railgun.wire.decode import Decoded
from railgun.wire.records import Records
from reservoir.files import DiskFiles
from reservoir.native.jit import array_at

# A build never recovers from a checkpoint. Checkpoints only allow it to delete segments that nothing needs.
_CHECKPOINT_S = 60.0


@dataclass(frozen=True, slots=True)
class HistoryPlan:
    """The plan from which all tasks of a stream's history are built.

    history: the id of the history.
    key: the stream's 16 secret bytes.
    created: the place in the catalogue of the stream's first definition.
    schemas: the stream's definitions by schema version.
    metrics: as they are registered.
    last_place: the place in the catalogue of the last change that the tasks are to know.
    cut_ms: all events of the history are before this time, in ms.
    chunk_events, segment_bytes: as in `TaskSettings`.
    own: what each task had accepted itself, if a live stream is deepened (gets older events than its log has).
    own_folder: the folder with the files of `own`, which all machines of the job can read.
    """

    history: str
    key: bytes
    created: int
    schemas: Mapping[int, StreamDefinition]
    metrics: Sequence[AddMetric]
    last_place: int
    cut_ms: int
    chunk_events: int
    segment_bytes: int
    own: Mapping[tuple[str, int], OwnEvents] = field(default_factory=dict)
    own_folder: Path = Path()

    @property
    def stream(self) -> StreamDefinition:
        """The stream's newest definition."""
        return self.schemas[max(self.schemas)]

    @property
    def tasks(self) -> list[tuple[str, int]]:
        """(partitioner, partition) of all tasks of the stream."""
        return self.stream.tasks


def new_history_id(randomness: Callable[[int], bytes]) -> str:
    """Return an id that no other history has. randomness: returns that many random bytes, as in `TaskEnvironment`."""
    return randomness(16).hex()


class HistoryBuild:
    """Builds one task of history in an empty folder.

    settings: the memory limits of the task. The plan and the build set the size of chunks and segments, and when
        checkpoints are taken.
    environment: the task's executor, clock and randomness, as for `open_task`.
    """

    def __init__(
        self,
        folder: Path,
        plan: HistoryPlan,
        partitioner: str,
        partition: int,
        settings: TaskSettings,
        environment: TaskEnvironment | None = None,
    ) -> None:
        self._folder, self._plan = folder, plan
        self._own = plan.own.get((partitioner, partition))
        # The times at which the live stream accepted the events that `take_own` is processing.
        self._due: npt.NDArray[np.int64] | None = None
        self._due_done = 0
        self._identity = TaskIdentity(plan.stream.name, partitioner, partition, plan.key)
        fixed = replace(
            settings,
            chunk_events=plan.chunk_events,
            segment_bytes=plan.segment_bytes,
            checkpoint_interval_s=_CHECKPOINT_S,
            checkpoint_bytes=sys.maxsize,
        )
        task = self._task = open_task(
            folder, self._identity, DiskFiles(), _no_log, fixed, environment=environment
        )
        task.position, task.history, task.inputs = FIRST_OFFSET, plan.history, _NoInputs()
        task.begin_checkpoints(None)
        self._open: deque[tuple[int, Records]] = deque()
        self._times: deque[tuple[int, int]] = deque()
        self._accepted = self._events = self._duplicates = 0
        newest = max(plan.schemas)
        put = PutStream(plan.created, plan.schemas[newest], newest)
        changes: list[Change] = [put]
        changes += [each for each in plan.metrics if each.metric.home == partitioner]
        self._process(Records.of([encode_control(change_to_json(each)) for each in changes]))
        task.schemas = dict(sorted(plan.schemas.items()))
        task.rebuild()
        task.metrics.last_place = max(plan.last_place, task.metrics.last_place)

    @property
    def events(self) -> int:
        """How many events it has processed."""
        return self._events

    def take(self, records: Records) -> None:
        """Process the next events, in order of time. Raises what tasks raise."""
        if len(records):
            self._events += len(records)
            self._process(records)
            self._task.work()

    def take_own(self, records: Records, times_ms: npt.NDArray[np.int64]) -> None:
        """Process the next events that the live stream itself accepted at or after the cut, in the order of its log.

        times_ms: int64[n]; the times at which the live stream accepted them.
        Raises TaskError if an event would be accepted at another time now.
        """
        self._due, self._due_done = times_ms, 0
        self.take(records)
        self._due = None

    def finish(self) -> HistoryManifest:
        """End the build after the last event: complete the folder, make it durable, and close it. Returns its
        manifest.
        """
        task, own = self._task, self._own
        if own is not None and own.floor_ms <= task.admission.clock_ms:
            # The lateness may have been smaller once. What was late then stays late.
            task.admission.restore(task.admission.clock_ms, max(own.floor_ms, task.admission.floor_ms))
        oldest_open = task.journal.first_offset
        write_tail(self._folder, self._open if oldest_open is not None else ())
        has_any = task.admission.clock_ms > TIME_MIN
        manifest = HistoryManifest(
            history=self._plan.history,
            created=self._plan.created,
            stream=self._identity.stream,
            partitioner=self._identity.partitioner,
            partition=self._identity.partition,
            cut_ms=self._plan.cut_ms,
            events=self._events,
            duplicates=self._duplicates,
            first_ms=task.admission.least_ms if has_any else None,
            last_ms=task.admission.clock_ms if has_any else None,
            remembered_ms=self._remembered_ms(),
            position=0 if own is None else own.position,
            known_place=self._plan.last_place,
        )
        task.position, task.inputs = 0, InputMemory()
        if own is not None:
            task.position = own.position
            task.inputs = InputMemory.from_json(msgspec.msgpack.decode(own.inputs) if own.inputs else {})
        task.checkpoints.take()
        task.close()
        return write_manifest(self._folder, manifest)

    def give_up(self) -> None:
        """Close the folder. Its content cannot be used."""
        self._task.close()

    def _process(self, records: Records) -> None:
        task = self._task
        self._open.append((task.position, records))
        task.process(records, task.position, self._note)
        oldest = task.journal.first_offset
        while self._open and (oldest is None or self._open[0][0] + len(self._open[0][1]) <= oldest):
            self._open.popleft()

    def _note(self, replies: Replies) -> None:
        n = replies.n
        self._duplicates += int(np.count_nonzero(replies.duplicate[:n]))
        if self._due is not None:
            self._check_times(self._due, replies)
        accepted = np.flatnonzero(replies.accepted[:n])
        if len(accepted):
            self._times.append((self._accepted, int(replies.decoded.time[accepted[0]])))
            self._accepted += len(accepted)
        while len(self._times) > 1 and self._times[1][0] <= self._accepted - self._plan.stream.dedup_events:
            self._times.popleft()

    def _check_times(self, due_ms: npt.NDArray[np.int64], replies: Replies) -> None:
        """Raise TaskError if one of the stream's own events was accepted at another time than before.

        due_ms: the times at which they were accepted before. Duplicates of events of the history are left out.
        """
        n, done = replies.n, self._due_done
        self._due_done += n
        _, _, times_at, _ = self._task.admission.addresses
        accepted = replies.accepted[:n] != 0
        other = accepted & (array_at(times_at, n, np.int64) != due_ms[done : done + n])
        other |= ~accepted & (replies.duplicate[:n] == 0)
        if other.any():
            time_ms = int(due_ms[done : done + n][other][0])
            raise TaskError(
                str(self._identity),
                f"an event that counted at {time_ms} ms would count at another time now: the stream's lateness was "
                "changed after it came; choose an --until later than all that came before that change",
            )

    def _remembered_ms(self) -> int | None:
        """Return the time from which on all events are in the duplicate memory; None if all events are.

        It is exact only to a batch, because only the time of each batch's first event is kept.
        """
        least = self._accepted - self._plan.stream.dedup_events
        if least <= 0:
            return None
        inside = [time_ms for number, time_ms in self._times if number >= least]
        return (inside[0] if inside else self._task.admission.clock_ms) + 1


class _NoInputs(InputMemory):
    """A memory of input topics that finds no repeats. A record from an input topic is processed by its place in the
    log alone.
    """

    def meet(self, decoded: Decoded) -> Met | None:
        return None


def _no_log(first: int, end: int) -> Iterable[tuple[int, Records]]:
    return ()
