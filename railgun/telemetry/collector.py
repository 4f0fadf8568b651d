"""Prometheus' families, made of what was noted and read; nothing here waits for the thread that scores."""

import time
from collections.abc import Callable, Iterable, Iterator

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from railgun.telemetry.families import SERVED
from railgun.telemetry.reading import DiskReading, EngineReading
from railgun.telemetry.recording import Recording
from railgun.telemetry.samples import Samples, metrics_of, none_of, put_disk, put_tasks

_DISK_SECONDS = 10.0


class RailgunCollector(Collector):
    """recording: what is noted.  reading: how tasks stood lately; None before there is an engine.  disk: looks at the
    data folder, at most once in ten seconds; None before there is one.  in_flight: (events,
    bytes).  is_ready: whether events are taken.
    version: of this program.
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
        """Every family there is, those without samples too."""
        samples = none_of(SERVED)
        reading = self._reading()
        self._put_process(samples, reading)
        self._put_traffic(samples)
        if reading is not None:
            put_tasks(samples, reading)
        yield from metrics_of(SERVED, samples)

    def describe(self) -> Iterable[Metric]:
        """The same without samples, so that registering looks at nothing."""
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
