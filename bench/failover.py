"""How long answers are away when units and nodes are killed, stopped and emptied; what a silent copy costs.

    python -m bench.failover [--only NAME ...] [--runs N] [--scale F]

Prints a line per figure with the median and the spread over the runs, and at the end one line of JSON.
docs/measuring.md says what each figure is. The rate and the seconds are multiplied by the scale.
"""

import random
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from bench.children import ChildFailedError
from bench.command_line import Case, measure
from bench.http import Scaled
from bench.http_run import Target, check
from bench.load.injector import Injection
from bench.load.outcome import Outcome
from bench.load.schedule import Phase, Schedule
from bench.nodes import NodeCluster, NodeProcess, node_cluster
from bench.process import cpu_s
from bench.report import Report
from bench.unit_cases import THROUGHPUT, Workload

_RATE_PER_S, _BEFORE_S, _AFTER_S, _QUIET_S = 2_000, 5.0, 10.0, 60.0
_ROLLING_S, _SILENT_S = 90.0, 20.0
# No kill should take answers away for longer. If one does, the logs are kept, to find the reason.
_LONG_S = 3.0
_NARROW = THROUGHPUT["payments_1x3"]
_NODES = ("node-1", "node-2", "node-3")
_GRACE_S = 60.0


def definitions_with(workload: Workload, partitions: int) -> str:
    """Return a workload's definitions with so many tasks."""
    return replace(workload, partitions=partitions).definitions


class _Load:
    """A load of events at a rate over HTTP, counted by second."""

    def __init__(self, cluster: NodeCluster, scale: float) -> None:
        self._target = Target(cluster.service, replace(_NARROW.payments, cards=10_000))
        self._rate_per_s = max(50, round(_RATE_PER_S * min(1.0, scale)))

    def during(self, before_s: float, after_s: float, act: Callable[[], object]) -> tuple[Outcome, int, int]:
        """Events before and after something is done; what came of them, and the seconds in which it was done.

        Raises ChildFailedError where an event was not answered, or where there were none any more when all was done.
        """
        seconds = round(before_s) + round(after_s)
        schedule = Schedule(tuple(Phase(self._rate_per_s, 1.0) for _ in range(seconds)))
        injection = Injection(self._target.order(schedule, grace_s=_GRACE_S))
        try:
            start_ns = injection.start()
            _sleep_until(start_ns + round(before_s) * 1_000_000_000)
            begun_ns = time.monotonic_ns()
            act()
            ended_ns = time.monotonic_ns()
        except BaseException:
            injection.stop()
            raise
        found = injection.outcome()
        check(found)
        return found, *_seconds_of(start_ns, begun_ns, ended_ns, seconds)


def _seconds_of(start_ns: int, begun_ns: int, ended_ns: int, seconds: int) -> tuple[int, int]:
    """Return the first and the last of the seconds in which something was done.

    Raises ChildFailedError where it took longer than events came: its last part is in no figure then.
    """
    first, last = ((each - start_ns) // 1_000_000_000 for each in (begun_ns, ended_ns))
    if last >= seconds:
        raise ChildFailedError(
            f"it took {last - first + 1} s, and events came for {seconds - first} s of them: its last part is not "
            "measured; let them come for longer"
        )
    return first, last


def _sleep_until(when_ns: int) -> None:
    time.sleep(max(0.0, (when_ns - time.monotonic_ns()) / 1e9))


def _worst_ms(found: Outcome, first: int, after: int) -> float:
    return max((each.greatest_ms for each in found.by_phase[first:after]), default=0.0)


def _killed(report: Report) -> None:
    """Kill units and nodes, under load and after quiet seconds. Each of them answers some task."""
    scaled, chance = Scaled(report.scale), random.Random(1)
    kinds: dict[str, Callable[[NodeProcess], None]] = {
        "unit": NodeProcess.kill_unit,
        "node": NodeProcess.kill,
    }
    found: dict[str, list[float]] = {}
    with node_cluster(definitions_with(_NARROW, 4), _NODES) as cluster:
        load = _Load(cluster, report.scale)
        for _ in range(report.runs):
            for name, kill in kinds.items():
                for when, before_s in (("under_load", _BEFORE_S), ("after_quiet", 0.0)):
                    if not before_s:
                        time.sleep(scaled.seconds(_QUIET_S, 5.0))
                    node = cluster.nodes[chance.choice(cluster.answering())]
                    outcome, first, _ = load.during(before_s, _AFTER_S, partial(kill, node))
                    away_s = _worst_ms(outcome, first, first + 2) / 1000
                    later_s = _worst_ms(outcome, first + 2, len(outcome.by_phase)) / 1000
                    found.setdefault(f"{name}_killed_{when}_s", []).append(away_s)
                    found.setdefault(f"{name}_killed_{when}_later_s", []).append(later_s)
                    if before_s and first > 2:
                        # Events due in the last second may have been under way, and wait for another unit.
                        found.setdefault("before_s", []).append(_worst_ms(outcome, 1, first - 1) / 1000)
                    if away_s > _LONG_S:
                        seconds = ", ".join(f"{each.greatest_ms / 1000:.1f}" for each in outcome.by_phase)
                        print(
                            f"{name}_killed_{when}, in second {first}: {away_s:.1f} s away; the longest waits of each "
                            f"second of load: {seconds}; logs are kept in {cluster.keep_logs()}",
                            flush=True,
                        )
                    if name == "node":
                        node.start()
                    cluster.await_whole()
    for key, values in found.items():
        report.note(key, values, 3)


def _graceful(report: Report) -> None:
    """Measure a rolling restart of all nodes, and a node that is emptied and used again, against a quiet time."""
    found: dict[str, list[float]] = {}
    with node_cluster(definitions_with(_NARROW, 4), _NODES) as cluster:
        load = _Load(cluster, report.scale)

        def restart() -> None:
            for node in cluster.nodes.values():
                node.stop()
                node.start()
                cluster.await_whole()

        def empty() -> None:
            for order, state in (("drain", "drained"), ("undrain", "live")):
                cluster.service.ask("POST", f"/v1/cluster/nodes/{_NODES[0]}/{order}", {})
                cluster.await_seen(
                    lambda seen, state=state: _state(seen) == state and not seen["moves"],  # type: ignore[misc]
                    f"{_NODES[0]} is not {state}",
                )

        # After this load, everything that a load or a first start compiles is compiled.
        load.during(_BEFORE_S, _BEFORE_S, lambda: None)
        for _ in range(report.runs):
            for name, act in (("rolling_restart", restart), ("drain", empty)):
                outcome, first, last = load.during(_ROLLING_S / 3, _ROLLING_S, act)
                took = last - first + 1
                quiet_ms = _worst_ms(outcome, max(0, first - took), first)
                worst_ms = _worst_ms(outcome, first, last + 2)
                found.setdefault(f"{name}_worst_ms", []).append(worst_ms)
                found.setdefault(f"{name}_quiet_worst_ms", []).append(quiet_ms)
                found.setdefault(f"{name}_more_ms", []).append(worst_ms - quiet_ms)
                found.setdefault(f"{name}_took_s", []).append(took)
    for key, values in found.items():
        report.note(key, values, 1)


def _state(seen: dict[str, object]) -> str:
    nodes: list[dict[str, str]] = seen["nodes"]  # type: ignore[assignment]
    return next(node["state"] for node in nodes if node["name"] == _NODES[0])


def _silent(report: Report) -> None:
    """Measure one task with two copies: the processor time of the silent one over that of the answering one."""
    found: list[float] = []
    with node_cluster(definitions_with(_NARROW, 1), _NODES[:2]) as cluster:
        load = _Load(cluster, report.scale)
        load.during(_BEFORE_S, _BEFORE_S, lambda: None)
        (answers,) = cluster.answering()
        units = {name: node.unit() for name, node in cluster.nodes.items()}
        for _ in range(report.runs):
            before = {name: cpu_s(unit.pid) for name, unit in units.items()}
            load.during(0.0, _SILENT_S, lambda: None)
            used = {name: cpu_s(unit.pid) - before[name] for name, unit in units.items()}
            (silent,) = (seconds for name, seconds in used.items() if name != answers)
            found.append(silent / used[answers])
    report.note("silent_over_answering_cpu", found, 3)


CASES: dict[str, Case] = {"killed": _killed, "graceful": _graceful, "silent": _silent}


if __name__ == "__main__":
    sys.exit(measure("failover", __doc__, CASES))
