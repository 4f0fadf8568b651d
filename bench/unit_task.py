"""One task under a workload: opened, warmed up, measured as often as is asked, with everything on."""

import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from time import perf_counter, thread_time
from typing import Any

import numpy as np

from bench.payments import blocks
from bench.process import drop_page_cache
from bench.records import RecordMaker
from bench.unit_cases import CHECK_EVENTS, Workload
from railgun.catalog.changes import AddMetric, Change, PutStream, change_to_json
from railgun.catalog.definitions import parse_definitions
from railgun.measuring.answering import Answering
from railgun.measuring.crossings import CrossingCount
from railgun.measuring.process import resident_bytes
from railgun.task.processor import TaskIdentity
from railgun.task.recovery import open_task
from railgun.task.replies import Replies
from railgun.task.settings import TaskSettings
from railgun.wire.control_records import encode_control
from railgun.wire.records import Records
from reservoir.files import DiskFiles

_WARM_UP_BATCH = 2048
_STEADY_TOLERANCE = 0.1


class UnsteadyError(Exception):
    """The windows are in no steady state: other numbers of events leave them than arrive."""


class WarmTask:
    """A task in a folder of its own, removed by `close`. Fill its windows with `warm_up` before measuring.

    events: blocks of payments to process, in place of those that the workload describes.
    """

    def __init__(self, workload: Workload, events: Iterable[Any] | None = None) -> None:
        self.workload = workload
        definitions = parse_definitions(workload.definitions)
        (stream,) = definitions.streams.values()
        self._folder = Path(tempfile.mkdtemp(prefix="railgun-bench-"))
        identity = TaskIdentity(stream.name, "card", 0, bytes(16))
        settings = TaskSettings(**workload.limits)
        self.task = open_task(self._folder, identity, DiskFiles(), _no_log, settings)
        changes: list[Change] = [PutStream(1, stream, 1)]
        changes += [AddMetric(place, metric) for place, metric in enumerate(definitions.metrics, 2)]
        self.control(changes)
        self.records = RecordMaker(blocks(workload.payments) if events is None else events, stream)
        self.answer = Answering(self.task)

    def control(self, changes: Iterable[Change]) -> None:
        """Put changes into force by control records."""
        records = Records.of([encode_control(change_to_json(change)) for change in changes])
        self.task.process(records, self.task.position, _unanswered)

    def warm_up(self, events: int | None = None) -> None:
        """Process the events that fill the windows (or as many as are given)."""
        for records in self.records.take(self.workload.warm_up if events is None else events):
            self.feed(records, _WARM_UP_BATCH)

    def feed(self, records: Records, batch: int) -> list[tuple[float, float]]:
        """Process records in batches, with the background work in between; the seconds of each batch, by the clock
        and of this thread's CPU time."""
        taken: list[tuple[float, float]] = []
        task, answer = self.task, self.answer
        for first in range(0, len(records), batch):
            part = records.part(first, min(len(records), first + batch))
            begun, begun_cpu = perf_counter(), thread_time()
            task.process(part, task.position, answer)
            task.work()
            taken.append((perf_counter() - begun, thread_time() - begun_cpu))
        return taken

    def measure(self) -> dict[str, float]:
        """events_per_s, events_per_cpu_s (of this thread alone), p50_ms and p999_ms of a batch (p999_cpu_ms: by
        this thread's CPU time, without what others on the machine took), rss_bytes, pool_bytes.

        Raises UnsteadyError.
        """
        workload = self.workload
        made = list(self.records.take(workload.measured))
        if workload.drop_page_cache:
            drop_page_cache(self._folder)
        taken: list[tuple[float, float]] = []
        pool_bytes = 0
        begun, begun_cpu = perf_counter(), thread_time()
        for records in made:
            taken += self.feed(records, workload.batch)
            pool_bytes = max(pool_bytes, self.task.pool.stats().size_bytes)
        seconds, cpu_seconds = perf_counter() - begun, thread_time() - begun_cpu
        del made
        batches_ms, cpu_ms = np.array(taken).T * 1e3
        figures = {
            "events_per_s": workload.measured / seconds,
            "events_per_cpu_s": workload.measured / cpu_seconds,
            "p50_ms": float(np.percentile(batches_ms, 50)),
            "p999_ms": float(np.percentile(batches_ms, 99.9)),
            "p999_cpu_ms": float(np.percentile(cpu_ms, 99.9)),
            "rss_bytes": float(resident_bytes()),
            "pool_bytes": float(pool_bytes),
        }
        self._check_steady()
        return figures

    def _check_steady(self) -> None:
        """Count the entries that cross the windows' ends while a few more events arrive."""
        crossed = CrossingCount(self.task)
        with crossed:
            for records in self.records.take(CHECK_EVENTS):
                self.feed(records, _WARM_UP_BATCH)
        for delta_ms, events in crossed.by_delta_ms.items():
            if delta_ms and abs(events / CHECK_EVENTS - 1) > _STEADY_TOLERANCE:
                raise UnsteadyError(
                    f"{CHECK_EVENTS} events arrived and {events} crossed the edge {delta_ms} ms behind them"
                )

    def close(self) -> None:
        """Close the task, and remove its folder."""
        self.task.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def _no_log(first: int, end: int) -> Iterable[tuple[int, Records]]:
    return ()


def _unanswered(replies: Replies) -> None:
    """Control records have no replies."""
