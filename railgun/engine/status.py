"""The status of an engine as plain data: its streams, their tasks and metrics, and the disk."""

from collections.abc import Sequence
from dataclasses import dataclass

from railgun.catalog.registrations import Registrations
from railgun.host.task_host import TaskHost
from railgun.plan.program import TIME_MIN
from railgun.telemetry.reading import DiskReading


@dataclass(frozen=True, slots=True)
class MetricStatus:
    """A registered metric.

    home: the partitioner whose tasks compute it; None of a derived metric.
    warming: whether any task does not answer it yet.
    filled: the share, 0 to 1, of the event time to be read for the fill that has been read. It is that of the task
        with the smallest share.
    outdated_zones: time zones of which this program has other tables than the metric was registered with.
    """

    name: str
    sql: str
    home: str | None
    warming: bool
    filled: float
    outdated_zones: tuple[str, ...] = ()


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
    """A deepening under way. state: building, installing once its tasks follow the log, or damaged: it can only be
    given up.

    folder: where it is prepared.  behind: records that the tasks have not followed yet.  failure: why they do not.
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


def with_derived(registered: Registrations, metrics: Sequence[MetricStatus]) -> list[MetricStatus]:
    """The status of a stream's metrics and derived metrics, in the order in which they were added.

    A derived one is warming where a metric that it reads is, and filled as far as the least of these.
    """
    by_name = {each.name: each for each in metrics}
    for name, each in registered.derived.items():
        operands = [by_name[operand] for operand in each.operands if operand in by_name]
        by_name[name] = MetricStatus(
            name,
            each.sql,
            None,
            any(operand.warming for operand in operands),
            min((operand.filled for operand in operands), default=1.0),
            each.outdated_zones,
        )
    return [by_name[name] for name in registered.names if name in by_name]


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
