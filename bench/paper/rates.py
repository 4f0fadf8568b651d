"""Latency against rate by topics, up to the first that is too high (the Structured Streaming paper, figure 7)."""

import os
import statistics
from collections.abc import Sequence
from functools import partial

from bench.e2e_run import running_cluster
from bench.http_run import check
from bench.keeping import Figures, Keeping, StoppedError, spread
from bench.load.injector import inject
from bench.load.latencies import Latencies, merged
from bench.load.outcome import Outcome
from bench.load.schedule import Phase, Schedule
from bench.paper.budget import Budget, check_disk
from bench.paper.pace import BEHIND_SHARE, EVENT_BYTES_MAX, latency_figures
from bench.paper.topics import fill
from bench.paper.units import workload
from bench.report import Report

RATES_PER_S = (500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000)

_SETTLED_S, _MEASURED_S, _SECONDS_FLOOR = 10.0, 30.0, 2.0
# The injector has the lines of a run in memory, 2 KB each.
_RUN_EVENTS_MAX = 600_000
_SLICES = 10
# Events that wait at the end of a run are answered within that, so their latencies are all known.
_GRACE_S = 120.0


def rates(report: Report, keeping: Keeping, budget: Budget) -> bool:
    """Measure one rate after another. Returns whether each has figures, up to the first that is too high."""
    complete, too_high = True, 0
    for rate_per_s in RATES_PER_S:
        part = f"rate_{rate_per_s}"
        if too_high:
            keeping.skip(part, f"{too_high:,} events/s are too many already")
            continue
        complete &= keeping.attempt(
            part, "", partial(measured, rate_per_s, report.scale, report.runs, budget)
        )
        if keeping.results.has(part, "") and part in keeping.results.not_run:
            too_high = rate_per_s
    return complete


def measured(rate_per_s: int, scale: float, runs: int, budget: Budget) -> Figures:
    """Fill the window of a cluster of its own, and return the latencies at a rate of some runs together.

    Raises StoppedError with figures if it does not keep up, BudgetError, ChildFailedError.
    """
    made = workload(1, scale)
    settled_s, slice_s = _seconds(rate_per_s, scale)
    parts_s = (settled_s, *[slice_s] * _SLICES)
    pace = Schedule(tuple(Phase(round(rate_per_s * each), each) for each in parts_s))
    check_disk((made.warm_up + runs * pace.requests) * EVENT_BYTES_MAX)
    with running_cluster(made) as cluster:
        fill(cluster, made.warm_up, budget)
        found = []
        for _ in range(runs):
            budget.check_time(pace.seconds)
            # On disk before it begins: what the load before left in the page cache.
            os.sync()
            found.append(inject(cluster.order(pace, by_topic=True, grace_s=_GRACE_S)))
            check(found[-1])
    return figures_at(rate_per_s, slice_s, found)


def _seconds(rate_per_s: int, scale: float) -> tuple[float, float]:
    """Return for how long latencies are left out, and how long each slice of the measured time is."""
    wanted = [max(_SECONDS_FLOOR, each * min(1.0, scale)) for each in (_SETTLED_S, _MEASURED_S)]
    share = min(1.0, _RUN_EVENTS_MAX / (rate_per_s * sum(wanted)))
    settled_s, measured_s = (each * share for each in wanted)
    return settled_s, measured_s / _SLICES


def figures_at(rate_per_s: int, slice_s: float, found: Sequence[Outcome]) -> Figures:
    """Return the figures of runs at a rate. The first phase of each is left out.

    Raises StoppedError with them if the backlog grows by more than a hundredth of the rate, by the median of runs.
    """
    runs = [each.by_phase[1:] for each in found]
    behind_per_s = max(0.0, statistics.median(growth_per_s(rate_per_s, slice_s, each) for each in runs))
    whole = [merged(each) for each in runs]
    figures = {
        "rate_per_s": float(rate_per_s),
        # Its spread is over runs. The p99.9 itself is that of all runs together, as the other quantiles are.
        **spread("p999_ms", [each.quantile_ms(0.999) for each in whole]),
        **latency_figures(merged(whole)),
        "backlog_events_per_s": behind_per_s,
    }
    if behind_per_s > BEHIND_SHARE * rate_per_s:
        why = f"it does not keep up with {rate_per_s:,} events/s:"
        raise StoppedError(f"{why} its backlog grows by {behind_per_s:,.0f} events each second", figures)
    return figures


def growth_per_s(rate_per_s: float, slice_s: float, slices: Sequence[Latencies]) -> float:
    """Return by how much the number of unanswered events grows in a second, by a line through all slices.

    When an event is answered that waited t, those that became due meanwhile still wait.
    """
    waited_s = [each.quantile_ms(0.5) / 1_000 for each in slices]
    answered_s = [slice_s * place + each for place, each in enumerate(waited_s)]
    return statistics.linear_regression(answered_s, [rate_per_s * each for each in waited_s]).slope
