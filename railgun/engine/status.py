"""What `Engine.status` returns, as plain data: an engine's streams, their tasks and metrics, and the disk."""

from dataclasses import dataclass

from railgun.host.task_host import TaskHost
from railgun.plan.program import TIME_MIN
from railgun.registry.metric_status import MetricStatus
from railgun.telemetry.reading import DiskReading


@dataclass(frozen=True, slots=True)
class TaskStatus:
    """A task.

    position: the offset of the next record that it will process.
    checkpoint: the offset of the first record that the last durable checkpoint does not cover.
    log_start: the oldest offset that its log still has.
    clock_ms: None before the first event.
    unreadable_records: how many records it has skipped since the start.
    """

    stream: str
    partitioner: str
    partition: int
    position: int
    checkpoint: int
    log_start: int
    clock_ms: int | None
    unreadable_records: int


@dataclass(frozen=True, slots=True)
class DeepeningStatus:
    """A deepening that is under way: a live stream gets older history than its log has.

    state: building; installing once its tasks follow the log; or damaged: it can only be given up.
    folder: the folder where it is prepared.
    behind: how many records of the log the new tasks still have to process.
    failure: why they do not follow the log.
    """

    stream: str
    history: str
    cut_ms: int
    state: str
    folder: str
    behind: int
    failure: str | None


@dataclass(frozen=True, slots=True)
class StreamStatus:
    """One stream: its tasks and its metrics; its deepening, if one is under way."""

    name: str
    tasks: tuple[TaskStatus, ...]
    metrics: tuple[MetricStatus, ...]
    deepening: DeepeningStatus | None = None


@dataclass(frozen=True, slots=True)
class EngineStatus:
    """The status of the whole engine."""

    folder: str
    durability: str
    streams: tuple[StreamStatus, ...]
    disk: DiskReading


def task_status(host: TaskHost) -> TaskStatus:
    """Return the status of a task."""
    task, who = host.task, host.place.identity
    clock_ms = task.admission.clock_ms
    return TaskStatus(
        stream=who.stream,
        partitioner=who.partitioner,
        partition=who.partition,
        position=task.position,
        checkpoint=task.checkpoints.durable_position,
        log_start=host.log.start,
        clock_ms=None if clock_ms == TIME_MIN else clock_ms,
        unreadable_records=task.unreadable_records,
    )
