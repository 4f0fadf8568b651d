"""Writes the table of a figure from its file of results, with what the paper says of its own."""

from collections.abc import Iterator, Sequence

from bench.found import shown
from bench.kept_results import Results
from bench.pages import circumstances, not_run, table
from bench.paper.claims import CLAIMS
from bench.paper.pace import figure_of

COLUMNS: dict[str, tuple[str, ...]] = {
    "fig9b": (
        "edges",
        "p50_ms",
        "p99_ms",
        "p999_ms",
        "single_events",
        "events_per_s",
        "events_per_cpu_s",
        "missed_chunks_per_1000",
    ),
    "fig8": (
        "p50_ms",
        "p99_ms",
        "p999_ms",
        "p9999_ms",
        "backlog_events_per_s",
        "wrong_share",
        "mean_error",
        "p99_error",
        "greatest_error",
    ),
    "fig10": (
        "bulk_frontend_us",
        "bulk_unit_us",
        "bulk_broker_us",
        "bulk_events_per_s",
        "steady_frontend_us",
        "steady_unit_us",
        "steady_broker_us",
        "steady_p999_ms",
        "computed_events_per_s",
        "computed_broker_cores",
    ),
    "recovery": ("seconds", "seconds_least", "seconds_greatest", "held_events"),
    "rates": (
        "rate_per_s",
        "p50_ms",
        "p99_ms",
        "p999_ms",
        "p999_ms_least",
        "p999_ms_greatest",
        "backlog_events_per_s",
        "measured_events",
    ),
    "fig9a": (
        "p50_ms",
        "p99_ms",
        "p999_ms",
        "p9999_ms",
        "events_per_s",
        "events_per_cpu_s",
        "filled_events",
    ),
}
"""The figures that a table has, by the case. The file has more of them."""
HEADS = {
    "p50_ms": "p50 ms",
    "p99_ms": "p99 ms",
    "p999_ms": "p99.9 ms",
    "p9999_ms": "p99.99 ms",
    "events_per_s": "events/s in batches",
    "single_events": "single events of a run",
    "filled_events": "events before it was measured",
    "missed_chunks_per_1000": "chunks waited for, of 1,000 events",
    "backlog_events_per_s": "backlog grows by, events/s",
    "wrong_share": "share of wrong answers",
    "mean_error": "lacks on average, share of the sum",
    "p99_error": "lacks at p99",
    "greatest_error": "lacks at most",
    "events_per_cpu_s": "events of a second of processor",
    "bulk_frontend_us": "front-end, µs of an event in bulk",
    "bulk_unit_us": "unit in bulk",
    "bulk_broker_us": "broker in bulk",
    "steady_frontend_us": "front-end, µs of an event at 2,000/s",
    "steady_unit_us": "unit at 2,000/s",
    "steady_broker_us": "broker at 2,000/s",
    "bulk_events_per_s": "events/s in bulk",
    "steady_p999_ms": "p99.9 ms at 2,000/s",
    "computed_events_per_s": "events/s, computed",
    "rate_per_s": "events/s due",
    "p999_ms_least": "p99.9 ms, best run",
    "p999_ms_greatest": "p99.9 ms, worst run",
    "measured_events": "events of all runs",
    "seconds": "s",
    "seconds_least": "s, best run",
    "seconds_greatest": "s, worst run",
    "held_events": "events held",
    "computed_broker_cores": "cores of brokers, computed",
}
"""What a column is called, where that is not the figure's name."""


def text_of(results: Results) -> str:
    """Return the table of a figure: what was measured here, then the paper's own statements."""
    figure = results.bench.removeprefix("paper-")
    columns = COLUMNS[figure]
    rows = [[f"`{part}`", *_cells(results, part, columns)] for part in results.runs]
    lines = [
        *table(["measured here", *(HEADS.get(column, column) for column in columns)], rows),
        "",
        circumstances(results),
        "",
        *table(
            ["the paper's own, on its machines", "it says"],
            [[each.where, each.says] for each in CLAIMS[figure]],
        ),
        *not_run(results),
    ]
    return "\n".join(lines) + "\n"


def _cells(results: Results, part: str, columns: Sequence[str]) -> Iterator[str]:
    for column in columns:
        value = figure_of(results, part, column)
        yield "" if value is None else shown(value)
