"""Measures a metric that is added to a task with history: how fast it fills, and the latency of events meanwhile."""

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from bench.children import Child, say
from bench.process import end_in_order, orphaned
from bench.report import Report
from bench.unit_cases import THROUGHPUT
from bench.unit_task import WarmTask
from railgun.catalog.changes import AddMetric
from railgun.catalog.definitions import parse_definitions

_HISTORY_EVENTS = 5_000_000
_LIVE_PER_S = 500
_BEFORE_S = 12.0
_NEW = """
[[metrics]]
sql = "SELECT sum(amount) AS filled, count(*) AS filled_count FROM payments GROUP BY card OVER SLIDING 30 DAYS"
"""


def measure(report: Report) -> None:
    """Report `fill` in events/s, and p99.9 of live events before the filling and during it."""
    found: list[dict[str, Any]] = []
    for _ in range(min(report.runs, 3)):
        with Child("bench.filling", [str(report.scale)]) as child:
            found.append(child.answer())
    report.note("fill", [each["fill"] for each in found])
    for when in ("before", "during"):
        for quantile in ("p50", "p999"):
            key = f"{quantile}_{when}_ms"
            report.note(f"fill_live_{key}", [each[key] for each in found], 3)


class _Live:
    """Events that arrive at a steady rate; latency counts from when each was due."""

    def __init__(self, warm: WarmTask) -> None:
        self._warm = warm
        self._due_s = time.perf_counter()

    def serve(self, until: Callable[[], bool]) -> list[float]:
        """Answer events as they are due, with background work in between. Returns their latencies in s."""
        latencies: list[float] = []
        warm, task = self._warm, self._warm.task
        (records,) = warm.records.take(1)
        self._due_s = time.perf_counter()
        while not until() and not orphaned():
            now_s = time.perf_counter()
            if now_s >= self._due_s:
                task.process(records, task.position, warm.answer)
                latencies.append(time.perf_counter() - self._due_s)
                self._due_s += 1 / _LIVE_PER_S
                (records,) = warm.records.take(1)
            elif not task.work():
                time.sleep(max(0.0, min(0.001, self._due_s - time.perf_counter())))
        return latencies


def main(scale: str) -> None:
    """The child: history, live events, then the new metric under the same live events."""
    end_in_order()
    history = int(_HISTORY_EVENTS * min(1.0, float(scale)))
    before_s = max(1.0, _BEFORE_S * min(1.0, float(scale)))
    workload = THROUGHPUT["payments_1x3"]
    warm = WarmTask(workload)
    try:
        warm.warm_up(history)
        live = _Live(warm)
        live.serve(_after(1.0))
        before = live.serve(_after(before_s))
        warm.control(_additions(workload.definitions, warm.task.metrics.last_place))
        begun = time.perf_counter()
        during = live.serve(lambda: not warm.task.fills.waiting)
        seconds = time.perf_counter() - begun
        say({"fill": history / seconds, **_quantiles("before", before), **_quantiles("during", during)})
    finally:
        warm.close()


def _after(seconds: float) -> Callable[[], bool]:
    end_s = time.perf_counter() + seconds
    return lambda: time.perf_counter() >= end_s


def _additions(definitions: str, last_place: int) -> list[AddMetric]:
    metrics = parse_definitions(definitions + _NEW).metrics[-2:]
    return [AddMetric(place, metric) for place, metric in enumerate(metrics, last_place + 1)]


def _quantiles(when: str, latencies: list[float]) -> dict[str, float]:
    latencies_ms = np.array(latencies) * 1e3
    return {
        f"p50_{when}_ms": float(np.percentile(latencies_ms, 50)),
        f"p999_{when}_ms": float(np.percentile(latencies_ms, 99.9)),
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
