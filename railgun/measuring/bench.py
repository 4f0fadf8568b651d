"""Runs a whole bench, and puts what was measured together."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from railgun.catalog.model import ALL, MetricDefinition, StreamDefinition
from railgun.measuring.machine import machine_facts
from railgun.measuring.measured import MeasuredTasks
from railgun.measuring.phases import Filling, FullSpeed, Paced, TaskLoad, Tell, at_a_rate, at_full_speed, fill
from railgun.measuring.process import resident_bytes
from railgun.measuring.repeated import RepeatedEvents
from railgun.measuring.sample import Sample, read_sample, repeat

_YEAR_MS = 365 * 86_400_000


@dataclass(frozen=True, slots=True)
class Job:
    """What a bench measures.

    seconds: how long each phase takes at most. rate: of single events, per second.
    peak: the events per second for which cores are computed, if any.
    """

    stream: StreamDefinition
    metrics: Sequence[MetricDefinition]
    events: Sequence[Path]
    seconds: float
    rate: float
    peak: float | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was measured. tasks_bytes: how much more memory the process has than before the tasks were opened."""

    job: Job
    machine: dict[str, Any]
    sample: Sample
    repeated: RepeatedEvents
    filling: Filling
    full_speed: FullSpeed
    paced: Paced
    process_bytes: int
    tasks_bytes: int
    state_bytes: int

    @property
    def year_events(self) -> float:
        """How many events come in a year, at the mean rate of the files."""
        return self.repeated.per_s * _YEAR_MS / 1000

    def kept_ms(self, task: TaskLoad) -> int:
        """Return for how long a task keeps an event, at most a year.

        That is as long as the stream's retention says, or a window holds it, or its id is known as that of a duplicate.
        """
        stream = self.job.stream
        if stream.retention_ms is None:
            return _YEAR_MS
        partitions = 1 if task.partitioner == ALL else stream.partitions
        per_ms = self.repeated.per_s / 1000 * task.events / self.full_speed.events / partitions
        remembered_ms = stream.dedup_events / per_ms if per_ms else 0.0
        return round(min(_YEAR_MS, max(stream.retention_ms, remembered_ms, *task.crossed_per_event)))

    @property
    def year_bytes(self) -> float | None:
        """What is on disk of the events of a year at its end, in all tasks, once; None if not known."""
        found, full = 0.0, self.full_speed
        for task in full.tasks:
            if task.events and task.stored_bytes is None:
                return None
            kept_events = self.year_events * task.events / full.events * self.kept_ms(task) / _YEAR_MS
            found += kept_events * (task.stored_bytes or 0.0)
        return found


def run_bench(job: Job, tell: Tell) -> Outcome:
    """Read, fill, measure. Raises MeasuringError, FileError, OSError, and what tasks raise.

    Leaves nothing behind.
    """
    machine = machine_facts()
    tell("reading events", job.seconds)
    sample = read_sample(job.stream, job.events, job.seconds)
    repeated = repeat(job.stream, sample, job.rate)
    before_bytes = resident_bytes()
    tasks = MeasuredTasks(job.stream, job.metrics)
    try:
        filling = fill(tasks, repeated, job.seconds, tell)
        full_speed = at_full_speed(tasks, repeated, job.seconds, tell)
        process_bytes = resident_bytes()
        paced = at_a_rate(tasks, repeated, job.rate, job.seconds, tell)
        state_bytes = tasks.state_bytes
    finally:
        tasks.close()
    return Outcome(
        job,
        machine,
        sample,
        repeated,
        filling,
        full_speed,
        paced,
        process_bytes,
        max(0, process_bytes - before_bytes),
        state_bytes,
    )
