"""Figure 8: latencies of one sum over 60 minutes by topics, and by how much hopping windows would be wrong."""

from dataclasses import replace
from functools import partial

from bench.e2e_run import Cluster, running_cluster
from bench.keeping import Figures, Keeping
from bench.load.latencies import merged
from bench.paper.budget import Budget, check_disk
from bench.paper.flink_hops import flink_hops
from bench.paper.hops import HOPS_S, Sums, figures
from bench.paper.pace import EVENT_BYTES_MAX, RATE_PER_S, WINDOW_MS, latency_figures, payments, seconds
from bench.payments import blocks
from bench.report import Report
from bench.unit_cases import Workload

_FILL_EVENTS = 50_000
# Events of the hops' comparison: two windows, at most.
_HOP_WINDOWS = 2


def workload(scale: float) -> Workload:
    """Return the workload. At a smaller scale fewer events come in a second of event time."""
    return Workload(
        (f"SLIDING {WINDOW_MS} MILLISECONDS",),
        WINDOW_MS,
        payments(scale, 103),
        0,
        select="sum(amount) AS s{n}",
        settling=0,
    )


def figure8(report: Report, keeping: Keeping, budget: Budget) -> bool:
    """Measure this engine, compute the errors of hops, and measure Flink. Returns whether all that has figures."""
    complete = keeping.attempt("engine", "", partial(_engine, report.scale, report.runs, budget))
    for hop_s in HOPS_S:
        complete &= keeping.attempt(f"hop_{hop_s}s_computed", "", partial(_hop_errors, report.scale, hop_s))
    return flink_hops(report.scale, keeping, budget) and complete


def _engine(scale: float, runs: int, budget: Budget) -> Figures:
    """Fill the window by the topic, and return the latencies of some runs together."""
    made = workload(scale)
    check_disk(made.warm_up * EVENT_BYTES_MAX)
    settled_s, measured_s = seconds(scale)
    with running_cluster(made) as cluster:
        fill(cluster, made.warm_up, budget)
        budget.check_time(runs * (settled_s + measured_s))
        found = [cluster.steady(RATE_PER_S, settled_s, measured_s) for _ in range(runs)]
    return {
        **latency_figures(merged(each.latencies for each in found)),
        "filled_events": float(made.warm_up),
        "events_per_s": RATE_PER_S,
    }


def fill(cluster: Cluster, events: int, budget: Budget) -> None:
    """Fill a cluster's windows by the input topic, as fast as it answers. Raises BudgetError."""
    for first in range(0, events, _FILL_EVENTS):
        budget.check_time()
        cluster.bulk(min(_FILL_EVENTS, events - first))


def _hop_errors(scale: float, hop_s: int) -> Figures:
    made = payments(scale, 5)
    events = int(made.rate_per_s * WINDOW_MS / 1_000 * _HOP_WINDOWS)
    sums = Sums.of(blocks(replace(made, events=events)))
    return {"hop_s": float(hop_s), **figures(sums.errors(WINDOW_MS, hop_s * 1_000))}
