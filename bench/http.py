"""How fast the service answers over HTTP: `railgun serve` as a process, and the injector, on the same machine.

    python -m bench.http [--only NAME ...] [--runs N] [--scale F]

Prints a line per figure with the median and the spread over the runs, and at the end one line of JSON.
docs/measuring.md says what each figure is.
"""

import math
import random
import shutil
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from bench.children import ChildFailedError
from bench.command_line import Case, measure
from bench.http_run import Added, Singles, Target, added
from bench.killing import INTERVAL_S
from bench.report import Report
from bench.service import Service
from bench.unit_cases import THROUGHPUT, Workload

_NARROW, _WIDE = THROUGHPUT["payments_1x3"], THROUGHPUT["wide_1x3"]
_BULK_EVENTS, _WIDE_BULK_EVENTS = 1_000_000, 200_000
_STEADY_RATE_PER_S, _FAST_RATE_PER_S, _STEADY_S, _STEP_S = 500, 5_000, 30.0, 5.0
_ONE_BY_ONE = 15_000
_ADDED, _ADDED_BEFORE_S, _ADDED_REST_S, _IN_TURN_EVERY_S = 100, 20.0, 80.0, 1.5
_SHARED_WINDOWS = 5
# Ten events lie above a p99.9 then, and a checkpoint is under way before and after.
_ADDED_FLOOR_S = 20.0
_KILLED_EVENTS, _KILLED_CARDS, _KILLED_WINDOW_MS = 5_000_000, 1_000_000, 1_000_000
_KILLED_RATE_PER_S, _KILLED_LINES = 5_000, 50
# The scale of `make bench-quick`.
_FIGURES_FROM = 0.02
_RATES = ("bulk", "max_rate")

Values = defaultdict[str, list[float]]


class Scaled:
    """Seconds and events of a bench at a scale, with floors below which a figure says nothing.

    At a scale below _FIGURES_FROM they are lower too: it is for trying whether the bench runs.
    """

    def __init__(self, scale: float) -> None:
        self._scale = scale
        self._floors = min(1.0, scale / _FIGURES_FROM)

    def seconds(self, at_scale_1: float, floor: float = 3.0) -> float:
        """Return a duration at this scale, not below the floor."""
        return max(min(floor * self._floors, at_scale_1), at_scale_1 * self._scale)

    def events(self, at_scale_1: int, floor: int = 20_000) -> int:
        """Return a number of events at this scale, not below the floor."""
        return max(int(floor * self._floors), int(at_scale_1 * self._scale))


@contextmanager
def _served(
    workload: Workload, durability: str, *, is_computed: bool = False
) -> Iterator[tuple[Target, float]]:
    """Yield a server on a clean folder, and the seconds until it was ready.

    is_computed: whether the partitioner is a computed field.
    """
    definitions = workload.with_computed_partitioner if is_computed else workload.definitions
    folder = Path(tempfile.mkdtemp(prefix="railgun-bench-"))
    try:
        with Service(folder, definitions, durability) as service:
            ready_s = service.start()
            yield Target(service, workload.payments), ready_s
            service.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _traffic(prefix: str, workload: Workload, durability: str, *, is_computed: bool = False) -> Case:
    """Return the case that measures throughput and latency of one kind of events under one durability.

    is_computed: whether the partitioner is a computed field.
    """

    def traffic(report: Report) -> None:
        scaled = Scaled(report.scale)
        bulk_events = _WIDE_BULK_EVENTS if workload is _WIDE else _BULK_EVENTS
        found: Values = defaultdict(list)
        for _ in range(report.runs - 1):
            with _served(workload, durability, is_computed=is_computed) as (_, ready_s):
                found["ready_clean_s"].append(ready_s)
        with _served(workload, durability, is_computed=is_computed) as (target, ready_s):
            found["ready_clean_s"].append(ready_s)
            target.bulk(workload.warm_up)
            for _ in range(report.runs):
                found["bulk_cpu_us"].append(
                    target.cpu_us(lambda: found["bulk"].append(target.bulk(scaled.events(bulk_events))))
                )
                if why := singles(target, scaled, found):
                    report.note_missing(f"{prefix}p999_ms_at_{_FAST_RATE_PER_S}", why)
        for key, values in found.items():
            # Of a part that took nothing no ratio can be formed, so it has no figure.
            if any(values) or key in _RATES:
                report.note(f"{prefix}{key}", values, 0 if key in _RATES else 3 if "_ms" in key else 2)

    return traffic


def singles(target: Target, scaled: Scaled, found: Values) -> str | None:
    """Measure single events once: at two rates, one by one, and how many are too many.

    Returns why the higher rate was not measured, or None.
    """
    seconds = scaled.seconds(_STEADY_S)
    _note(found, f"at_{_STEADY_RATE_PER_S}", target.steady(_STEADY_RATE_PER_S, seconds))
    _note(found, "one_by_one", target.one_by_one(scaled.events(_ONE_BY_ONE, 1_000)))
    found["single_cpu_us"].append(
        target.cpu_us(lambda: found["max_rate"].append(target.max_rate(scaled.seconds(_STEP_S))))
    )
    if found["max_rate"][-1] < _FAST_RATE_PER_S:
        return f"max_rate is {found['max_rate'][-1]:,.0f}"
    try:
        _note(found, f"at_{_FAST_RATE_PER_S}", target.steady(_FAST_RATE_PER_S, seconds))
    except ChildFailedError as error:
        return str(error)
    return None


def _note(found: Values, key: str, each: Singles) -> None:
    """Note the latencies of single events, and what one of them cost the server."""
    found[f"p50_ms_{key}"].append(each.latencies.quantile_ms(0.5))
    found[f"p999_ms_{key}"].append(each.latencies.quantile_ms(0.999))
    for name, value in each.used.items():
        found[f"{name}_{key}"].append(value)


def _own_window(place: int) -> str:
    """Return the SQL of a metric over a window that no other metric has."""
    over = f"SLIDING {30 + place} SECONDS"
    return f"SELECT sum(amount) AS {added(place)} FROM payments GROUP BY card OVER {over}"


def _shared_window(place: int) -> str:
    """Return the SQL of a metric with a filter of its own, over one of few windows."""
    over = f"SLIDING {30 + 15 * (place % _SHARED_WINDOWS)} SECONDS"
    return (
        f"SELECT sum(amount) AS {added(place)} FROM payments WHERE amount > {place} GROUP BY card OVER {over}"
    )


def _added(prefix: str, sql: Callable[[int], str], every_s: float | None = None) -> Case:
    """Return the case of metrics added under load: all at once, or one after another, each dropped once it answers."""

    def case(report: Report) -> None:
        scaled = Scaled(report.scale)
        found: list[Added] = []
        sqls = [sql(place) for place in range(max(3, int(_ADDED * min(1.0, report.scale))))]
        before_s, rest_s = (scaled.seconds(each, _ADDED_FLOOR_S) for each in (_ADDED_BEFORE_S, _ADDED_REST_S))
        if every_s is not None:
            rest_s = max(_ADDED_FLOOR_S, len(sqls) * every_s)
        for _ in range(report.runs):
            with _served(_NARROW, "os") as (target, _):
                target.bulk(_NARROW.warm_up, connections=1)
                found.append(
                    target.with_metrics_added(sqls, _STEADY_RATE_PER_S, before_s, rest_s, every_s=every_s)
                )
        report.note(f"{prefix}_p999_ratio", [each.during_ms / each.before_ms for each in found], 3)
        report.note(f"{prefix}_p999_before_ms", [each.before_ms for each in found], 3)
        report.note(f"{prefix}_p999_ms", [each.during_ms for each in found], 3)
        after_ms = [each.after_ms for each in found if not math.isnan(each.after_ms)]
        if after_ms:
            report.note(f"{prefix}_p999_after_ms", after_ms, 3)
        report.note(f"{prefix}_registered_s", [each.registered_s for each in found], 3)
        report.note(f"{prefix}_warm_s", [each.warm_s for each in found], 3)

    return case


def _killed(durability: str, prefix: str) -> Case:
    """Return the case that measures the time until the server is ready again after kill -9 under load."""

    def killed(report: Report) -> None:
        share = min(1.0, report.scale)
        cards = max(1_000, int(_KILLED_CARDS * share))
        workload = replace(
            _NARROW,
            window_ms=_KILLED_WINDOW_MS,
            payments=replace(_NARROW.payments, cards=cards, card_exponent=0.0),
        )
        after = random.Random(1)
        found: list[float] = []
        with _served(workload, durability) as (target, _):
            target.bulk(int(_KILLED_EVENTS * share))
            for _ in range(report.runs):
                # The kill comes after a whole interval of checkpoints, at a random time of the next.
                steady_s = INTERVAL_S * after.uniform(1.0, 2.0) * max(0.1, share)
                found.append(target.killed(_KILLED_RATE_PER_S, _KILLED_LINES, steady_s))
        report.note(f"{prefix}ready_after_kill_s", found, 3, f"   {target.sent_events:,} events")

    return killed


CASES: dict[str, Case] = {
    "os": _traffic("", _NARROW, "os"),
    "fsync": _traffic("fsync_", _NARROW, "fsync"),
    "wide": _traffic("wide_", _WIDE, "os"),
    "fsync_wide": _traffic("fsync_wide_", _WIDE, "fsync"),
    "computed": _traffic("computed_", _NARROW, "os", is_computed=True),
    "metrics_added": _added("metrics_added", _own_window),
    "metrics_shared": _added("metrics_shared", _shared_window),
    "metrics_in_turn": _added("metrics_in_turn", _own_window, _IN_TURN_EVERY_S),
    "killed": _killed("os", ""),
    "fsync_killed": _killed("fsync", "fsync_"),
}


if __name__ == "__main__":
    sys.exit(measure("http", __doc__, CASES))
