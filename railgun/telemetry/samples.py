"""Samples by family, and what Prometheus' client makes of them."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric

from railgun.telemetry.buckets import Buckets
from railgun.telemetry.families import Family, Kind
from railgun.telemetry.reading import DiskReading, EngineReading, TaskReading

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
    """A place for the samples of each."""
    return {family.name: [] for family in families}


def put_tasks(samples: Samples, reading: EngineReading) -> None:
    """Every figure of every task."""
    for task in reading.tasks:
        labels = (task.stream, task.partitioner, str(task.partition))
        for name, value in _OF_TASKS.items():
            samples[name].append((labels, float(value(task))))


def put_disk(samples: Samples, disk: DiskReading) -> None:
    """Bytes by kind, and what is left."""
    by_kind = {"events": disk.events_bytes, "state": disk.state_bytes, "log": disk.log_bytes}
    samples["railgun_disk_bytes"] += [((kind,), float(size)) for kind, size in by_kind.items()]
    samples["railgun_disk_free_bytes"].append(((), float(disk.free_bytes)))


def metrics_of(families: Sequence[Family], samples: Samples) -> Iterator[Metric]:
    """Every family, those without samples too."""
    for family in families:
        yield _metric(family, samples.get(family.name, ()))


def _metric(family: Family, samples: Iterable[tuple[Labels, float | Buckets]]) -> Metric:
    if family.kind is Kind.HISTOGRAM:
        histogram = HistogramMetricFamily(family.name, family.says, labels=family.labels)
        for labels, value in samples:
            assert isinstance(value, Buckets)
            histogram.add_metric(labels, value.cumulative(), value.total)
        return histogram
    made: CounterMetricFamily | GaugeMetricFamily
    if family.kind is Kind.COUNTER:
        made = CounterMetricFamily(family.name, family.says, labels=family.labels)
    else:
        made = GaugeMetricFamily(family.name, family.says, labels=family.labels)
    for labels, value in samples:
        assert not isinstance(value, Buckets)
        made.add_metric(labels, value)
    return made
