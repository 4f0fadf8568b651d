"""Figure 10: the processor time of an event in front-end, broker and unit, with one unit and two."""

import statistics
from collections.abc import Callable
from functools import partial

from bench.e2e_run import Cluster, running_cluster
from bench.keeping import Figures, Keeping
from bench.load.latencies import merged
from bench.load.outcome import Outcome
from bench.paper.budget import Budget, check_disk
from bench.paper.many_nodes import NODES, Costs, computed
from bench.paper.pace import EVENT_BYTES_MAX, payments
from bench.paper.topics import fill
from bench.process import cpu_s
from bench.report import Report
from bench.unit_cases import Workload

UNITS = (1, 2)
_WINDOW_MS = 5 * 60_000
_STEADY_PER_S, _SETTLED_S, _STEADY_S, _SECONDS_FLOOR = 2_000.0, 15.0, 120.0, 5.0
_BULK_EVENTS, _BULK_EVENTS_FLOOR = 400_000, 20_000


def workload(units: int, scale: float) -> Workload:
    """Return the workload of the paper's section 5.3, with a partition for each unit."""
    select = "sum(amount) AS s{n}, avg(amount) AS a{n}, count(amount) AS c{n}"
    over = (f"SLIDING {_WINDOW_MS} MILLISECONDS",)
    return Workload(over, _WINDOW_MS, payments(scale, 103), 0, select=select, settling=0, partitions=units)


def figure10(report: Report, keeping: Keeping, budget: Budget) -> bool:
    """Measure one unit and two, and compute larger clusters from the costs of one unit in bulk.

    Returns whether there are figures of all that.
    """
    complete = True
    for units in UNITS:
        complete &= keeping.attempt(
            f"units_{units}", "", partial(_measured, units, report.scale, report.runs, budget)
        )
    known = keeping.results.figures
    names = [f"units_1.bulk_{who}_us" for who in ("frontend", "unit", "broker")]
    for nodes in NODES:
        what = f"nodes_{nodes}_computed"
        if any(name not in known for name in names):
            keeping.skip(what, "the costs of one unit are not known")
        else:
            # It is computed anew each time, as it follows from figures that may have been measured again.
            keeping.results.note(what, "", computed(Costs(*(known[name] for name in names)), nodes))
    return complete


def _measured(units: int, scale: float, runs: int, budget: Budget) -> Figures:
    made = workload(units, scale)
    factor = min(1.0, scale)
    bulk = max(_BULK_EVENTS_FLOOR, int(_BULK_EVENTS * factor))
    settled_s, steady_s = (max(_SECONDS_FLOOR, each * factor) for each in (_SETTLED_S, _STEADY_S))
    check_disk((made.warm_up + runs * (bulk + _STEADY_PER_S * (settled_s + steady_s))) * EVENT_BYTES_MAX)
    with running_cluster(made, {"RAILGUN_CLUSTER__UNITS": str(units)}) as cluster:
        fill(cluster, made.warm_up, budget)
        rates: list[float] = []
        found: list[Outcome] = []
        in_bulk, steady = _Added(), _Added()
        for _ in range(runs):
            budget.check_time(settled_s + steady_s)
            in_bulk.take(cluster, bulk, lambda: rates.append(cluster.bulk(bulk)))
            cluster.at(_STEADY_PER_S, settled_s)
            events = round(_STEADY_PER_S * steady_s)
            steady.take(cluster, events, lambda: found.append(cluster.at(_STEADY_PER_S, steady_s)))
    latencies = merged(each.latencies for each in found)
    return {
        "bulk_events_per_s": statistics.median(rates),
        **in_bulk.figures("bulk"),
        **steady.figures("steady"),
        "steady_p50_ms": latencies.quantile_ms(0.5),
        "steady_p999_ms": latencies.quantile_ms(0.999),
        "units": float(units),
    }


class _Added:
    """The processor time of each kind of process while something is done, added up over all times."""

    def __init__(self) -> None:
        self._seconds = dict.fromkeys(("frontend", "unit", "broker"), 0.0)
        self._events = 0

    def take(self, cluster: Cluster, events: int, doing: Callable[[], object]) -> None:
        """Do something with so many events, and add what it takes."""
        before = _seconds(cluster)
        doing()
        for who, seconds in _seconds(cluster).items():
            self._seconds[who] += seconds - before[who]
        self._events += events

    def figures(self, name: str) -> Figures:
        """Return the processor time of an event, in µs."""
        return {f"{name}_{who}_us": seconds / self._events * 1e6 for who, seconds in self._seconds.items()}


def _seconds(cluster: Cluster) -> dict[str, float]:
    """Return the processor time of each kind of process so far. Raises ChildFailedError."""
    return {
        "frontend": cluster.service.cpu_s(),
        "unit": sum(map(cpu_s, cluster.service.unit_pids)),
        "broker": cpu_s(cluster.broker_pid),
    }
