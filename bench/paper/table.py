"""Writes the table of one or more figures as Markdown, with what the paper says of its own.

python -m bench.paper.table RESULTS.json ...
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.kept_results import Results, read
from bench.pages import circumstances, not_run, table
from bench.paper.claims import CLAIMS

COLUMNS: dict[str, tuple[str, ...]] = {
    "fig9b": ("edges", "p50_ms", "p99_ms", "p999_ms", "events_per_s", "missed_chunks_per_1000"),
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
        "steady_p999_ms",
        "computed_events_per_s",
        "computed_broker_cores",
    ),
    "fig9a": ("p50_ms", "p99_ms", "p999_ms", "p9999_ms", "events_per_s", "filled_events"),
}
"""The figures that a table has, by the paper's figure. The file has more of them."""


def text_of(results: Results) -> str:
    """Return the table of a figure: what was measured here, then the paper's own statements."""
    figure = results.bench.removeprefix("paper-")
    columns = COLUMNS[figure]
    rows = [[f"`{part}`", *_cells(results, part, columns)] for part in results.runs]
    lines = [
        circumstances(results),
        "",
        *table(["measured here", *columns], rows),
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
        value = results.figures.get(f"{part}.{column}")
        yield "" if value is None else f"{value:,.0f}" if value >= 1_000 else f"{value:.3g}"


def main(paths: Sequence[str]) -> int:
    """Print the table of each file. Returns 2 if there is none."""
    try:
        for path in paths:
            print(text_of(read(Path(path))))
    except (OSError, ValueError, KeyError) as error:
        print(f"bench.paper.table: {error!r}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
