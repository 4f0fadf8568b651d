"""How fast everything together is on Kafka: broker, front-end, unit and injector, on the cores of one machine.

    python -m bench.e2e [--only NAME ...] [--runs N] [--scale F]

Prints a line per figure with the median and the spread over the runs, and at the end one line of JSON.
docs/measuring.md says what each figure is.
"""

import sys
from dataclasses import replace

from bench.backlog import backlog
from bench.command_line import Case, measure
from bench.e2e_run import running_cluster
from bench.http import Scaled
from bench.report import Report
from bench.unit_cases import THROUGHPUT
from bench.unit_topic import unit_topic

_NARROW, _WIDE = THROUGHPUT["payments_1x3"], THROUGHPUT["wide_1x3"]
_WARM_EVENTS = 100_000
_STEADY_RATE_PER_S, _STEADY_S, _STEP_S, _AT_MAX_S = 500, 30.0, 5.0, 20.0
_SETTLED_S = 15.0
# What the paper's node of 16 virtual cores takes (section 5.3).
_PAPER_RATE_PER_S = 25_000
_BURST_RATE_PER_S, _BURST_S, _AFTER_S = 5_000, 2.0, 20.0
_HELD_EVENTS, _HELD_CARDS, _HELD_WINDOW_MS = 5_000_000, 1_000_000, 1_000_000_000
_KILLED_RATE_PER_S, _KILLED_S = 5_000, 40.0


def _in_out(report: Report) -> None:
    """Measure events of 103 fields, by the input topic and by HTTP."""
    scaled = Scaled(report.scale)
    settled_s = scaled.seconds(_SETTLED_S)
    found: dict[str, list[float]] = {}

    def note(key: str, value: float) -> None:
        found.setdefault(key, []).append(value)

    with running_cluster(_WIDE) as cluster:
        cluster.bulk(scaled.events(_WARM_EVENTS))
        for _ in range(report.runs):
            for name, by_topic in (("in_out", True), ("http", False)):
                steady = cluster.steady(
                    _STEADY_RATE_PER_S, settled_s, scaled.seconds(_STEADY_S), by_topic=by_topic
                )
                note(f"{name}_p50_ms_at_500", steady.latencies.quantile_ms(0.5))
                note(f"{name}_p999_ms_at_500", steady.latencies.quantile_ms(0.999))
            paper = cluster.steady(_PAPER_RATE_PER_S, settled_s, scaled.seconds(_AT_MAX_S))
            note("in_out_p999_ms_at_25000", paper.latencies.quantile_ms(0.999))
            rate_per_s = cluster.max_rate(scaled.seconds(_STEP_S))
            note("in_out_max_rate", rate_per_s)
            if rate_per_s:
                for key, share in (("in_out_p999_ms_at_max", 1.0), ("in_out_p999_ms_at_half", 0.5)):
                    at = cluster.steady(rate_per_s * share, settled_s, scaled.seconds(_AT_MAX_S))
                    note(key, at.latencies.quantile_ms(0.999))
            note(
                "normal_after_burst_s",
                cluster.normal_after_burst_s(
                    _STEADY_RATE_PER_S, _BURST_RATE_PER_S, _BURST_S, scaled.seconds(_AFTER_S)
                ),
            )
    for key, values in found.items():
        report.note(key, values, 0 if key == "in_out_max_rate" else 3)


def _bulk(report: Report) -> None:
    """Measure how fast the events that lie in the input topic are answered."""
    for key, workload in (("in_out_bulk", _NARROW), ("in_out_bulk_wide", _WIDE)):
        events = Scaled(report.scale).events(_WARM_EVENTS)
        with running_cluster(workload) as cluster:
            cluster.bulk(events)
            report.note(key, [cluster.bulk(events) for _ in range(report.runs)])


def _killed(report: Report) -> None:
    """Measure how long answers are away when a unit is killed under load."""
    share = min(1.0, report.scale)
    cards = max(1_000, int(_HELD_CARDS * share))
    payments = replace(_NARROW.payments, cards=cards, card_exponent=0.0)
    workload = replace(_NARROW, window_ms=_HELD_WINDOW_MS, payments=payments)
    found: list[float] = []
    with running_cluster(workload) as cluster:
        cluster.bulk(int(_HELD_EVENTS * share))
        for _ in range(report.runs):
            seconds = Scaled(report.scale).seconds(_KILLED_S, 10.0)
            found.append(cluster.silent_after_kill_s(_KILLED_RATE_PER_S, seconds))
    report.note("unit_back_after_kill_s", found, 3, f"   {cluster.sent_events:,} events")


CASES: dict[str, Case] = {
    "unit_topic": unit_topic,
    "in_out": _in_out,
    "bulk": _bulk,
    "killed": _killed,
    "backlog": backlog,
}


if __name__ == "__main__":
    sys.exit(measure("e2e", __doc__, CASES))
