"""Makes Prometheus' metric families from counts and readings, for `/metrics` of servers, nodes and units.

Nothing here waits for the thread that scores.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from railgun.telemetry.families import SERVED, Family, FamilyKind
from railgun.telemetry.reading import DiskReading, EngineReading, TaskReading
from railgun.telemetry.recording import Buckets, Recording

Labels = tuple[str, ...]
Samples = dict[str, list[tuple[Labels, float | Buckets]]]

_OF_TASKS: dict[str, Callable[[TaskReading], float]] = {
    "railgun_task_position": lambda task: task.position,
    "railgun_task_checkpoint_position": lambda task: task.checkpoint,
    "railgun_task_clock_seconds": lambda task: task.clock_s,
    "railgun_unreadable_records_total": lambda task: task.unreadable_records,
    "railgun_checkpoints_total": lambda task: task.checkpoints,
    "railgun_checkpoint_last_seconds": lambda task: task.checkpoint_s,
    "railgun_state_written_bytes_total": lambda task: task.state_written_bytes,
    "railgun_rows": lambda task: task.rows,
    "railgun_rows_bytes": lambda task: task.rows_bytes,
    "railgun_rows_loaded_total": lambda task: task.rows_loaded,
    "railgun_rows_evicted_total": lambda task: task.rows_evicted,
    "railgun_pages_bytes": lambda task: task.pages_bytes,
    "railgun_page_operations_total": lambda task: task.page_operations,
    "railgun_page_faults_total": lambda task: task.page_faults,
    "railgun_chunks": lambda task: task.chunks,
    "railgun_chunks_pending": lambda task: task.chunks_pending,
    "railgun_chunk_cache_bytes": lambda task: task.chunk_cache_bytes,
    "railgun_chunk_hits_total": lambda task: task.chunk_hits,
    "railgun_chunk_misses_total": lambda task: task.chunk_misses,
    "railgun_chunks_wasted_total": lambda task: task.chunks_wasted,
    "railgun_open_rows": lambda task: task.open_rows,
    "railgun_open_bytes": lambda task: task.open_bytes,
    "railgun_metrics": lambda task: task.metrics,
    "railgun_metrics_warming": lambda task: task.metrics_warming,
    "railgun_fill_ratio": lambda task: task.fill_ratio,
}


def none_of(families: Sequence[Family]) -> Samples:
    """Return an empty list of samples for each family."""
    return {family.name: [] for family in families}


def put_tasks(samples: Samples, reading: EngineReading) -> None:
    """Add every figure of every task."""
    for task in reading.tasks:
        labels = (task.stream, task.partitioner, str(task.partition))
        for name, value in _OF_TASKS.items():
            samples[name].append((labels, float(value(task))))


def put_disk(samples: Samples, disk: DiskReading) -> None:
    """Add the bytes of the data folder by kind, and the free space."""
    by_kind = {"events": disk.events_bytes, "state": disk.state_bytes, "log": disk.log_bytes}
    samples["railgun_disk_bytes"] += [((kind,), float(size)) for kind, size in by_kind.items()]
    samples["railgun_disk_free_bytes"].append(((), float(disk.free_bytes)))


def metrics_of(families: Sequence[Family], samples: Samples) -> Iterator[Metric]:
    """Yield every family, including those without samples."""
    for family in families:
        yield _metric(family, samples.get(family.name, ()))


def _metric(family: Family, samples: Iterable[tuple[Labels, float | Buckets]]) -> Metric:
    if family.kind is FamilyKind.HISTOGRAM:
        histogram = HistogramMetricFamily(family.name, family.says, labels=family.labels)
        for labels, value in samples:
            assert isinstance(value, Buckets)
            histogram.add_metric(labels, value.cumulative(), value.total)
        return histogram
    made: CounterMetricFamily | GaugeMetricFamily
    if family.kind is FamilyKind.COUNTER:
        made = CounterMetricFamily(family.name, family.says, labels=family.labels)
    else:
        made = GaugeMetricFamily(family.name, family.says, labels=family.labels)
    for labels, value in samples:
        assert not isinstance(value, Buckets)
        made.add_metric(labels, value)
    return made


_DISK_SECONDS = 10.0


class RailgunCollector(Collector):
    """Gives Prometheus the metrics of a process.

    recording: returns the counts of the process.
    reading: returns the latest reading of the tasks; None before there is an engine.
    disk: measures the data folder, at most once in ten seconds; None before there is one.
    in_flight: returns (events, bytes) that are not answered yet.
    is_ready: returns whether events are accepted.
    version: the version of this program.
    """

    def __init__(
        self,
        recording: Callable[[], Recording],
        reading: Callable[[], EngineReading | None],
        disk: Callable[[], DiskReading | None],
        in_flight: Callable[[], tuple[int, int]],
        is_ready: Callable[[], bool],
        version: str,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._recording, self._reading, self._disk = recording, reading, disk
        self._in_flight, self._is_ready = in_flight, is_ready
        self._version, self._now_s = version, now_s
        self._disk_at_s = float("-inf")
        self._disk_seen: DiskReading | None = None

    def collect(self) -> Iterator[Metric]:
        """Yield every family, including those without samples."""
        samples = none_of(SERVED)
        reading = self._reading()
        self._put_process(samples, reading)
        self._put_traffic(samples)
        if reading is not None:
            put_tasks(samples, reading)
        yield from metrics_of(SERVED, samples)

    def describe(self) -> Iterable[Metric]:
        """Yield the families without samples, so that registering measures nothing."""
        return metrics_of(SERVED, {})

    def _put_process(self, samples: Samples, reading: EngineReading | None) -> None:
        samples["railgun_build_info"].append(((self._version,), 1.0))
        samples["railgun_ready"].append(((), float(self._is_ready())))
        events, size_bytes = self._in_flight()
        samples["railgun_in_flight_events"].append(((), float(events)))
        samples["railgun_in_flight_bytes"].append(((), float(size_bytes)))
        if reading is not None:
            samples["railgun_reading_age_seconds"].append(((), max(0.0, self._now_s() - reading.at_s)))
        if self._now_s() - self._disk_at_s >= _DISK_SECONDS:
            self._disk_at_s, self._disk_seen = self._now_s(), self._disk()
        disk = self._disk_seen
        if disk is not None:
            put_disk(samples, disk)

    def _put_traffic(self, samples: Samples) -> None:
        for stream, record in self._recording().streams():
            samples["railgun_events_total"].append(((stream,), float(record.events)))
            for reason, count in dict(record.refused).items():
                samples["railgun_events_refused_total"].append(((stream, reason), float(count)))
            for (partitioner, outcome), count in dict(record.late).items():
                samples["railgun_events_late_total"].append(((stream, partitioner, outcome), float(count)))
            for partitioner, count in dict(record.duplicates).items():
                samples["railgun_events_duplicate_total"].append(((stream, partitioner), float(count)))
            samples["railgun_batch_events"].append(((stream,), record.batches))
            for stage, buckets in record.stages.items():
                samples["railgun_stage_seconds"].append(((stream, stage), buckets))
            for outcome, count in dict(record.queries).items():
                samples["railgun_value_queries_total"].append(((stream, outcome), float(count)))
            if record.queries:
                samples["railgun_value_query_seconds"].append(((stream,), record.query_seconds))
