"""The table of how well metrics of the library tell planted fraud from ordinary payments. It fits into 80 columns."""

from collections.abc import Sequence

from rich.table import Table

from railgun.demo.payments_run import Separation

LEGEND = "catches: of that fraud; flags: of ordinary payments; medians: fraud, ordinary"


def payments_table(rows: Sequence[Separation]) -> Table:
    """Return a table with a row for each metric. LEGEND explains its columns."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    for title in ("planted fraud", "condition"):
        table.add_column(title, no_wrap=True)
    for title in ("catches", "flags"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("medians", justify="right", no_wrap=True)
    for row in rows:
        table.add_row(
            row.shown.pattern,
            f"{row.shown.metric} >= {row.shown.start}",
            f"[green]{row.caught:.1%}[/green]",
            f"{row.flagged:.2%}",
            f"{row.fraud_median:.1f}, {row.ordinary_median:.1f}",
        )
    return table
