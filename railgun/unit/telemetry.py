"""The Prometheus metrics of a unit.

The loop's thread reads the state once a second, with the heartbeat; any thread may format it.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, GCCollector, ProcessCollector, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from railgun.host.reading import read_tasks
from railgun.host.task_host import TaskHost
from railgun.telemetry.collector import Labels, Samples, metrics_of, none_of, put_tasks
from railgun.telemetry.families import IN_UNIT
from railgun.telemetry.reading import EngineReading
from railgun.unit.copies import UnitCopies
from railgun.unit.figures import UnitFigures


@dataclass(frozen=True, slots=True)
class UnitReading:
    """A unit's state at one moment.

    hosted: for each task its labels, its state, its lag in records, and the offset before which all records are
        answered.
    """

    is_ready: bool
    tasks: EngineReading
    hosted: tuple[tuple[Labels, str, int, int], ...]


class UnitTelemetry(Collector):
    """Collects the metrics of a unit. Only the unit's thread calls `read`; any thread may call the other methods."""

    def __init__(
        self, figures: UnitFigures, copies: UnitCopies, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._figures, self._copies, self._now_s = figures, copies, now_s
        self._reading: UnitReading | None = None
        self._registry = CollectorRegistry()
        self._registry.register(self)
        ProcessCollector(registry=self._registry)
        GCCollector(registry=self._registry)

    def read(self, hosts: Iterable[TaskHost], *, is_ready: bool) -> None:
        """Read the present state of the tasks. Raises TransportError if replies could not be sent."""
        hosts = list(hosts)
        self._reading = UnitReading(
            is_ready,
            read_tasks((host.task for host in hosts if host.is_running), self._now_s()),
            tuple(
                (_labels(host), self._copies.state(host).shown, host.lag, host.replied()) for host in hosts
            ),
        )

    def text(self) -> str:
        """Return all metrics in Prometheus' format."""
        return generate_latest(self._registry).decode()

    def describe(self) -> Iterable[Metric]:
        """Return the metric families without samples."""
        return metrics_of(IN_UNIT, {})

    def collect(self) -> Iterator[Metric]:
        """Return the metric families. They have samples of tasks once `read` was called."""
        samples, reading, figures = none_of(IN_UNIT), self._reading, self._figures
        samples["railgun_ready"].append(((), float(reading is not None and reading.is_ready)))
        samples["railgun_rebalances_total"].append(((), float(figures.rebalances)))
        samples["railgun_reply_records_total"].append(((), float(figures.replies)))
        samples["railgun_reply_records_dropped_total"].append(((), float(figures.dropped)))
        samples["railgun_value_answers_total"].append(((), float(figures.query_answers)))
        _put_streams(samples, figures)
        if reading is not None:
            age_s = max(0.0, self._now_s() - reading.tasks.at_s)
            samples["railgun_reading_age_seconds"].append(((), age_s))
            put_tasks(samples, reading.tasks)
            for labels, state, lag, replied in reading.hosted:
                samples["railgun_task_state"].append(((*labels, state), 1.0))
                samples["railgun_task_lag_records"].append((labels, float(lag)))
                samples["railgun_task_replied_position"].append((labels, float(replied)))
        yield from metrics_of(IN_UNIT, samples)


def _put_streams(samples: Samples, figures: UnitFigures) -> None:
    for stream, notes in figures.streams():
        for partitioner, count in dict(notes.records).items():
            samples["railgun_unit_records_total"].append(((stream, partitioner), float(count)))
        samples["railgun_unit_batch_records"].append(((stream,), notes.batches))
        for stage, buckets in notes.stages.items():
            samples["railgun_unit_stage_seconds"].append(((stream, stage), buckets))


def _labels(host: TaskHost) -> Labels:
    key = host.place.key
    return key.stream, key.partitioner, str(key.partition)
