"""The process of one case of figure 9: fills its windows, saying how far, then measures for every line it reads.

python -m bench.paper.warm_child FIGURE CASE SCALE
"""

import gc
import sys
import time

import numpy as np

from bench.children import say
from bench.paper.windows_work import FIGURES, Case
from bench.process import end_in_order, orphaned
from bench.unit_cases import CHECK_EVENTS
from bench.unit_task import WarmTask

QUANTILES = {"p50": 50.0, "p95": 95.0, "p99": 99.0, "p999": 99.9, "p9999": 99.99}
_SAID_EACH_S = 1.0
_STEP_EVENTS = 32_768


def main(figure: str, name: str, scale: str) -> None:
    """Serve until there is nothing more to read."""
    end_in_order()
    (case,) = (case for case in FIGURES[figure](float(scale)) if case.name == name)
    warm = WarmTask(case.workload)
    try:
        _fill(warm, case.fill)
        # As a server does before it answers: collecting what is here for good takes up to half a second.
        gc.collect()
        gc.freeze()
        say({"ready": name, "edges": len(warm.task.runtime.edges)})
        for _ in sys.stdin:
            say(measured(warm, case))
    finally:
        warm.close()


def _fill(warm: WarmTask, events: int) -> None:
    """Fill the windows. The line about how far it is comes once a second at most."""
    said_s, left = time.monotonic(), events
    while left and not orphaned():
        step = min(left, _STEP_EVENTS)
        warm.warm_up(step)
        left -= step
        if time.monotonic() - said_s > _SAID_EACH_S:
            said_s = time.monotonic()
            say({"filled": events - left, "of": events})


def measured(warm: WarmTask, case: Case) -> dict[str, float]:
    """Return throughput in batches, latencies of single events, and how many chunks had to be waited for."""
    cache = warm.task.reservoir.stats().cache
    missed = cache.misses
    figures = warm.measure()
    latencies_ms = singles_ms(warm, case)
    missed = warm.task.reservoir.stats().cache.misses - missed
    # Single events for which there was no time were processed too.
    events = case.workload.measured + CHECK_EVENTS + case.singles
    return {
        "events_per_s": figures["events_per_s"],
        "events_per_cpu_s": figures["events_per_cpu_s"],
        **{f"{key}_ms": float(np.percentile(latencies_ms, share)) for key, share in QUANTILES.items()},
        "greatest_ms": float(np.max(latencies_ms)),
        "single_events": float(len(latencies_ms)),
        "missed_chunks_per_1000": 1e3 * missed / events,
        "chunk_cache_bytes": float(warm.task.reservoir.stats().cache_bytes),
        "rss_bytes": figures["rss_bytes"],
    }


def singles_ms(warm: WarmTask, case: Case) -> list[float]:
    """Process events one by one, for as long as the case says. Returns the time of each in ms.

    The events for which there is no time are processed in batches: without them the windows would have a hole.
    """
    made = list(warm.records.take(case.singles))
    found: list[float] = []
    end_s = time.monotonic() + case.singles_s
    for records in made:
        place = 0
        while place < len(records) and time.monotonic() < end_s:
            found += [seconds * 1e3 for seconds, _ in warm.feed(records.part(place, place + 1), 1)]
            place += 1
        warm.feed(records.part(place, len(records)), case.workload.batch)
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
