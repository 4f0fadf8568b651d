"""How fast one task is: raw internal records in, encoded replies out, everything on (reservoir, expiry, checkpoints).

    python -m bench.unit [--only NAME ...] [--runs N] [--scale F]

Each workload runs in a process of its own, in a steady state: as many events leave the windows as arrive, which is
checked. Workloads that are compared with each other are measured in turn. Prints a line per figure with the median
and the spread over the runs, and at the end one line of JSON. docs/benchmarks.md says what each figure is.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from bench import filling, flights_run, killing
from bench.children import Child, ChildFailedError
from bench.process import end_in_order, load
from bench.unit_cases import FAMILIES, MONOTONE, THROUGHPUT, WINDOWS

Measured = dict[str, list[dict[str, Any]]]


@dataclass(slots=True)
class Report:
    """Figures by key, and the lines that say them to people."""

    runs: int
    scale: float
    figures: dict[str, float] = field(default_factory=dict)

    def note(self, key: str, values: Sequence[float], digits: int = 0, remark: str = "") -> None:
        """The median is the figure; the spread is printed."""
        middle = statistics.median(values)
        self.figures[key] = round(middle, digits) if digits else round(middle)
        spread = f"{min(values):,.{digits}f} .. {max(values):,.{digits}f}, {len(values)} runs"
        print(f"{key:28}{middle:>14,.{digits}f}   ({spread}){remark}", flush=True)

    def in_turn(self, workloads: Sequence[str], runs: int | None = None) -> Measured:
        """Warm up a process for each of the workloads, then measure them in turn."""
        found: Measured = {name: [] for name in workloads}
        with ExitStack() as stack:
            children: dict[str, Child] = {}
            for name in workloads:
                child = Child("bench.unit_child", [name, str(self.scale)])
                children[name] = stack.enter_context(child)
                child.answer()
            for _ in range(runs or self.runs):
                for name, child in children.items():
                    found[name].append(child.ask())
        return found


def _column(measured: list[dict[str, Any]], key: str) -> list[float]:
    return [each[key] for each in measured]


def _throughput(name: str) -> Callable[[Report], None]:
    def measure(report: Report) -> None:
        measured = report.in_turn([name])[name]
        cpu = statistics.median(_column(measured, "events_per_cpu_s"))
        rss = statistics.median(_column(measured, "rss_bytes")) / 2**20
        remark = f"   {cpu:,.0f} per CPU second of its thread, {rss:,.0f} MiB"
        report.note(name, _column(measured, "events_per_s"), remark=remark)

    return measure


def _batch1(report: Report) -> None:
    measured = report.in_turn(["batch1"])["batch1"]
    report.note("batch1_p50_ms", _column(measured, "p50_ms"), 4)
    report.note("batch1_p999_ms", _column(measured, "p999_ms"), 4)
    report.note("batch1_p999_cpu_ms", _column(measured, "p999_cpu_ms"), 4)


def _windows(report: Report) -> None:
    measured = report.in_turn(list(WINDOWS), max(report.runs, 5) if report.scale >= 1 else report.runs)
    if not all(each["dropped_page_cache"] for runs in measured.values() for each in runs):
        print("  the page cache could not be dropped (it takes root): chunks may come from memory")
    for name, runs in measured.items():
        report.note(name, _column(runs, "events_per_s"))
        report.note(f"{name}_p999_ms", _column(runs, "p999_ms"), 3)
        report.note(f"{name}_p999_cpu_ms", _column(runs, "p999_cpu_ms"), 3)
        report.note(f"{name}_rss_mib", [value / 2**20 for value in _column(runs, "rss_bytes")])
    small, *_, big = measured.values()
    for key, column, digits in (
        ("window_big_over_small", "events_per_s", 3),
        ("window_big_over_small_per_cpu", "events_per_cpu_s", 3),
        ("window_big_over_small_rss", "rss_bytes", 3),
    ):
        pairs = zip(_column(big, column), _column(small, column), strict=True)
        report.note(key, [of_big / of_small for of_big, of_small in pairs], digits)


def _families(report: Report) -> None:
    for family in (FAMILIES, MONOTONE):
        measured = report.in_turn(list(family))
        (one, of_sum), *others = measured.items()
        report.note(one if one != "sum" else "family_sum", _column(of_sum, "events_per_s"))
        for name, runs in others:
            pairs = zip(runs, of_sum, strict=True)
            ratios = [of_it["events_per_s"] / sums["events_per_s"] for of_it, sums in pairs]
            pool = max(_column(runs, "pool_bytes")) / 2**20
            report.note(f"{name}_over_sum", ratios, 3, f"   page pool at most {pool:,.1f} MiB")


CASES: dict[str, Callable[[Report], None]] = {
    **{name: _throughput(name) for name in THROUGHPUT},
    "batch1": _batch1,
    "windows": _windows,
    "families": _families,
    "fill": filling.measure,
    "recovery": killing.measure,
    "run_flights_3m": flights_run.measure,
}


def main() -> int:
    """Measure what is named, print the figures; 1 where something could not be measured."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.unit",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--only", nargs="*", choices=list(CASES), help="what to measure (default: everything)"
    )
    parser.add_argument("--runs", type=int, default=3, help="runs of each (default 3)")
    parser.add_argument(
        "--scale", type=float, default=1.0, help="measured events, and long windows, as a multiple"
    )
    arguments = parser.parse_args()
    end_in_order()
    report = Report(arguments.runs, arguments.scale)
    failed = False
    print(f"at the start: {load()}")
    for name in arguments.only or CASES:
        try:
            CASES[name](report)
        except ChildFailedError as error:
            failed = True
            print(f"{name}: not measured: {error}", file=sys.stderr)
    print(f"at the end: {load()}")
    print(json.dumps({"bench": "unit", "figures": report.figures}))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
