"""How long until a copy of a task can answer, by four ways to recover (the StreamScope paper, figure 15)."""

from collections.abc import Callable
from functools import cache, partial

from bench.children import ChildFailedError
from bench.copies import EVENTS, FROM_LOG, FROM_NODE, GIVER, TAKER, WORKLOAD, Made, make_anew, start_copy
from bench.failover import definitions_with
from bench.http import Scaled
from bench.http_run import Target
from bench.keeping import Figures, Keeping, spread
from bench.nodes import node_cluster
from bench.paper.budget import Budget, check_disk
from bench.report import Report

WAYS = {
    "takeover": "a silent copy takes over",
    "checkpoint": "own checkpoint, after kill -9",
    "copied": "data from another node",
    "replay": "replay of the whole log",
}
"""The ways to recover, and what they are called in the drawing."""

_RATE_PER_S, _RATE_FLOOR_PER_S, _BEFORE_S, _REST_S = 2_000, 50, 20.0, 20.0
# What an event of 5 fields needs on disk at most: in the log, and in two copies.
_EVENT_BYTES_MAX = 800
_FILL_S, _RUN_S = 600.0, 180.0

# Of each way, how long it took in each run.
_Found = dict[str, list[float]]


def recovery(report: Report, keeping: Keeping, budget: Budget) -> bool:
    """Measure all ways in one cluster. Returns whether all of them have figures."""
    found = cache(partial(_measured, report.scale, report.runs, budget))

    def of(way: str) -> Callable[[], Figures]:
        return lambda: {**spread("seconds", found()[way]), "held_events": float(_events(report.scale))}

    for place, way in enumerate(WAYS):
        if not keeping.attempt(way, "", of(way)):
            # All are measured together, so what kept one from it keeps those that are not known from it.
            for other in list(WAYS)[place + 1 :]:
                if not keeping.results.has(other, ""):
                    keeping.skip(other, keeping.why(way))
            return False
    return True


def _events(scale: float) -> int:
    return Scaled(min(1.0, scale)).events(EVENTS)


def _measured(scale: float, runs: int, budget: Budget) -> _Found:
    """Return the seconds of each way in some runs. Raises BudgetError, ChildFailedError."""
    events = _events(scale)
    budget.check_time(_FILL_S)
    check_disk(events * _EVENT_BYTES_MAX)
    found: _Found = {way: [] for way in WAYS}
    with node_cluster(definitions_with(WORKLOAD, 1), (GIVER, TAKER)) as cluster:
        target = Target(cluster.service, WORKLOAD.payments)
        target.bulk(events, connections=1)
        cluster.await_whole()
        for _ in range(runs):
            budget.check_time(_RUN_S)
            (answers,) = cluster.answering()
            rate_per_s = max(_RATE_FLOOR_PER_S, _RATE_PER_S * min(1.0, scale))
            kill = cluster.nodes[answers].kill
            found["takeover"].append(
                target.while_doing(kill, rate_per_s, _BEFORE_S, _REST_S).greatest_ms / 1_000
            )
            found["checkpoint"].append(_whole_s(start_copy(cluster, answers, FROM_LOG), fetches=False))
            found["replay"].append(_whole_s(make_anew(cluster, FROM_LOG), fetches=False))
            found["copied"].append(_whole_s(make_anew(cluster, FROM_NODE), fetches=True))
    return found


def _whole_s(made: Made, *, fetches: bool) -> float:
    """Return how long a copy took with its node's start. Raises ChildFailedError if it came from elsewhere."""
    if bool(made.fetch) != fetches:
        raise ChildFailedError("a copy was not made from where it should be")
    return made.start_s + made.copy_s
