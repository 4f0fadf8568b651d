"""How fast one task is: raw internal records in, encoded replies out, everything on (reservoir, expiry, checkpoints).

    python -m bench.unit [--only NAME ...] [--runs N] [--scale F]

Each workload runs in a process of its own, in a steady state: as many events leave the windows as arrive, which is
checked. Workloads that are compared with each other are measured in turn. Prints a line per figure with the median
and the spread over the runs, and at the end one line of JSON. docs/measuring.md says what each figure is.
"""

import statistics
import sys
from typing import Any

from bench import filling, flights_run, killing
from bench.command_line import Case, measure
from bench.report import Report
from bench.unit_cases import EXCLUDING, FAMILIES, MONOTONE, THROUGHPUT, WINDOWS


def _column(measured: list[dict[str, Any]], key: str) -> list[float]:
    return [each[key] for each in measured]


def _throughput(name: str) -> Case:
    def throughput(report: Report) -> None:
        measured = report.in_turn([name])[name]
        cpu = statistics.median(_column(measured, "events_per_cpu_s"))
        rss = statistics.median(_column(measured, "rss_bytes")) / 2**20
        remark = f"   {cpu:,.0f} per CPU second of its thread, {rss:,.0f} MiB"
        report.note(name, _column(measured, "events_per_s"), remark=remark)

    return throughput


def _batch1(report: Report) -> None:
    measured = report.in_turn(["batch1"])["batch1"]
    report.note("batch1_p50_ms", _column(measured, "p50_ms"), 4)
    report.note("batch1_p999_ms", _column(measured, "p999_ms"), 4)
    report.note("batch1_p999_cpu_ms", _column(measured, "p999_cpu_ms"), 4)


def _windows(report: Report) -> None:
    measured = report.in_turn(list(WINDOWS), max(report.runs, 5) if report.scale >= 1 else report.runs)
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


def _excluding(report: Report) -> None:
    for name in EXCLUDING:
        plain = name.removesuffix("_excluding")
        measured = report.in_turn([plain, name])
        pairs = zip(
            _column(measured[name], "events_per_s"), _column(measured[plain], "events_per_s"), strict=True
        )
        report.note(f"{name}_over_plain", [of_it / of_plain for of_it, of_plain in pairs], 3)


CASES: dict[str, Case] = {
    **{name: _throughput(name) for name in THROUGHPUT},
    "batch1": _batch1,
    "windows": _windows,
    "families": _families,
    "excluding": _excluding,
    "fill": filling.measure,
    "recovery": killing.measure,
    "run_flights_3m": flights_run.measure,
}


if __name__ == "__main__":
    sys.exit(measure("unit", __doc__, CASES))
