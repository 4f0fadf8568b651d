"""The phases of a bench: windows are filled, events are processed as fast as they can be, then at a rate."""

import gc
import math
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from time import perf_counter, process_time, thread_time
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from railgun.measuring.crossings import CrossingCount
from railgun.measuring.measured import Load, MeasuredTasks, Part
from railgun.wire.columns import EventColumns
from railgun.wording import number_text

_PIECE_EVENTS = 16_384
# Kernels are loaded and caches are warm after so many events, however short the windows are.
_WARM_EVENTS = 65_536
# So many events are made before the clock of the last phase runs.
_PACED_EVENTS_MAX = 200_000
_LOOK_S = 0.5
# What was processed at full speed is durable after so many seconds, or the last phase begins all the same.
_SETTLING_S = 10.0
# With more events at one time, on average, the processor time of an event is not that of a single one.
_TOGETHER_MAX = 2.0


Tell = Callable[[str, float], None]
"""Called when a phase begins: with its name, and how many seconds it takes at most.

Nothing is shown while a phase lasts: that would be measured too.
"""


class EventSource(Protocol):
    """Events without an end. position: how many were taken. first_ms: the time of the first of all."""

    position: int

    @property
    def first_ms(self) -> int: ...

    def take(self, n: int) -> EventColumns:
        """Return the next n events."""


@dataclass(frozen=True, slots=True)
class Filling:
    """How far the windows were filled. stopped_by: `time` or `disk`; None if all are full."""

    events: int
    seconds: float
    reach_ms: int
    reached_ms: int
    stopped_by: str | None


@dataclass(frozen=True, slots=True)
class TaskLoad:
    """What one task did at full speed.

    events: those that it got. late, duplicates: how many of them were that.
    cpu_s: processor time of the thread that fed it.
    crossed_per_event: for each edge of a window, by how far it is behind the clock: how many events crossed it for
        each that was accepted.
    stored_bytes: of an event on disk, on average; those that are not accepted take none. None if not known.
    """

    partitioner: str
    events: int
    late: int
    duplicates: int
    cpu_s: float
    record_bytes: int
    reply_bytes: int
    crossed_per_event: dict[int, float]
    stored_bytes: float | None


@dataclass(frozen=True, slots=True)
class FullSpeed:
    """What was done as fast as it could be.

    events: those of the stream; each goes to several tasks.
    seconds: the time of processing alone, without that of making records.
    cpu_s: processor time of the thread that processed. background_cpu_s: that of all other threads.
    """

    events: int
    seconds: float
    cpu_s: float
    background_cpu_s: float
    tasks: list[TaskLoad]

    @property
    def events_per_s(self) -> float:
        """The throughput of the one thread."""
        return self.events / self.seconds

    @property
    def cpu_s_per_event(self) -> float:
        """Processor time of all threads for an event."""
        return (self.cpu_s + self.background_cpu_s) / self.events

    @property
    def record_bytes_per_event(self) -> float:
        """The bytes of an event in the logs of all tasks."""
        return sum(task.record_bytes for task in self.tasks) / self.events

    @property
    def stored_bytes_per_event(self) -> float | None:
        """The bytes of an event on disk, in all its tasks; None if not known."""
        found = 0.0
        for task in self.tasks:
            if task.events and task.stored_bytes is None:
                return None
            found += task.events * (task.stored_bytes or 0.0)
        return found / self.events

    @property
    def expiries_per_event(self) -> float | None:
        """How many events cross an edge for each that comes, on average over all edges; None if there is no edge."""
        shares = [share for task in self.tasks for share in task.crossed_per_event.values()]
        return sum(shares) / len(shares) if shares else None


@dataclass(frozen=True, slots=True)
class Paced:
    """Single events at a rate.

    turns: how many times some were processed; those that were due by then were processed together.
    seconds: from when the first was due until the last was answered.
    cpu_s: processor time of all threads, with waking up.
    ms: the latency of each, from when it was due. They are those of a queue unless `kept_up`.
    """

    rate: float
    events: int
    turns: int
    seconds: float
    cpu_s: float
    p50_ms: float
    p99_ms: float
    p999_ms: float
    greatest_ms: float

    @property
    def kept_up(self) -> bool:
        """Whether the last event was answered about when it was due."""
        return self.seconds <= 1.05 * self.events / self.rate + 0.1

    @property
    def kept_rate(self) -> float:
        """How many events were answered in a second."""
        return self.events / self.seconds

    @property
    def together(self) -> float:
        """How many events were processed at one time, on average."""
        return self.events / self.turns

    @property
    def cpu_s_per_event(self) -> float | None:
        """Processor time of an event that comes alone, with waking up for it; None if `not_single`."""
        return None if self.not_single else self.cpu_s / self.events

    @property
    def not_single(self) -> str | None:
        """Why the events were not single ones; None if they were."""
        rate = f"{number_text(self.rate)} single events a second"
        if not self.kept_up:
            return f"{rate} are too many for this machine: {number_text(self.kept_rate)} were answered"
        if self.together > _TOGETHER_MAX:
            return f"{rate} came {number_text(self.together)} at a time, on average"
        return None


def fill(tasks: MeasuredTasks, events: EventSource, seconds: float, tell: Tell) -> Filling:
    """Process events until as many leave every window as come in, or until the time or the disk is at its end."""
    tell("filling the windows", seconds)
    begun, looked_s, reached_ms, stopped_by = perf_counter(), 0.0, -1, None
    while reached_ms <= tasks.reach_ms or events.position < _WARM_EVENTS:
        lapsed_s = perf_counter() - begun
        if lapsed_s >= seconds:
            stopped_by = "time"
            break
        if lapsed_s >= looked_s:
            looked_s = lapsed_s + _LOOK_S
            if not tasks.has_room:
                stopped_by = "disk"
                break
        tasks.feed(events.take(_PIECE_EVENTS))
        reached_ms = tasks.clock_ms - events.first_ms
    is_full = reached_ms > tasks.reach_ms
    return Filling(
        events.position,
        perf_counter() - begun,
        tasks.reach_ms,
        max(0, reached_ms),
        None if is_full else stopped_by,
    )


def at_full_speed(tasks: MeasuredTasks, events: EventSource, seconds: float, tell: Tell) -> FullSpeed:
    """Process events as fast as they can be. The time of making their records does not count."""
    tell("events as fast as they can be", seconds)
    tasks.begin_counting()
    first, begun, begun_process, making_s = events.position, perf_counter(), process_time(), 0.0
    crossings = [CrossingCount(load.task) for load in tasks.loads]
    with ExitStack() as counting:
        for each in crossings:
            counting.enter_context(each)
        while events.position == first or (perf_counter() - begun < seconds and tasks.has_room):
            begun_making = thread_time()
            taken = events.take(_PIECE_EVENTS)
            making_s += thread_time() - begun_making + tasks.feed(taken)
    process_s, n = process_time() - begun_process - making_s, events.position - first
    cpu_s = sum(load.cpu_s for load in tasks.loads)
    return FullSpeed(
        events=n,
        seconds=sum(load.wall_s for load in tasks.loads),
        cpu_s=cpu_s,
        background_cpu_s=max(0.0, process_s - cpu_s),
        tasks=[
            _task_load(load, crossed, tasks.stored_bytes(load))
            for load, crossed in zip(tasks.loads, crossings)
        ],
    )


def _task_load(load: Load, crossings: CrossingCount, stored_bytes: float | None) -> TaskLoad:
    came = max(1, load.accepted)
    if stored_bytes is not None:
        stored_bytes *= load.accepted / max(1, load.events)
    return TaskLoad(
        load.partitioner,
        load.events,
        load.late,
        load.duplicates,
        load.cpu_s,
        load.record_bytes,
        load.reply_bytes,
        {delta: crossed / came for delta, crossed in sorted(crossings.by_delta_ms.items()) if delta},
        stored_bytes,
    )


def at_a_rate(tasks: MeasuredTasks, events: EventSource, rate: float, seconds: float, tell: Tell) -> Paced:
    """Process single events that are due so many times a second, whether earlier ones are answered or not.

    What is due at the same time is processed together. An event is answered when all its tasks have answered.
    Checkpoints of what was processed before are written first.
    """
    n = max(1, min(int(rate * seconds), _PACED_EVENTS_MAX))
    parts = tasks.parts(events.take(n))
    tasks.settle(_SETTLING_S)
    tell(f"single events, {number_text(rate)}/s", n / rate)
    with _no_collection():
        begun_cpu = process_time()
        answered_s, turns = _pace(tasks, parts, n, rate)
        cpu_s = process_time() - begun_cpu
    latencies_ms = np.sort(1000 * (answered_s - np.arange(n) / rate)).tolist()
    # By rank: the least latency that so many of all events do not exceed.
    p50, p99, p999 = (latencies_ms[math.ceil(share * n) - 1] for share in (0.5, 0.99, 0.999))
    return Paced(rate, n, turns, float(answered_s[-1]), cpu_s, p50, p99, p999, latencies_ms[-1])


def _pace(tasks: MeasuredTasks, parts: list[Part], n: int, rate: float) -> tuple[NDArray[np.float64], int]:
    """Return when each of n events was answered, in seconds from when the first was due, and how many times some were
    processed.
    """
    answered_s = np.zeros(n)
    loads = list(zip(tasks.loads, parts))
    done, turns, start = 0, 0, perf_counter()
    while done < n:
        now_s = perf_counter() - start
        due = min(n, int(now_s * rate) + 1)
        if due > done:
            for load, part in loads:
                load.answer(part.between(done, due))
            answered_s[done:due] = perf_counter() - start
            done, turns = due, turns + 1
        elif not tasks.work():
            time.sleep(max(0.0, done / rate - (perf_counter() - start)))
    return answered_s, turns


@contextmanager
def _no_collection() -> Iterator[None]:
    """Have the garbage collector look at nothing that exists by now, as processor units do."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
