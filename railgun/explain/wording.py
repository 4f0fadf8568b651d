"""Words the parts of an explanation, the same in every form of it."""

from collections.abc import Sequence

from railgun.explain.explanation import (
    CellPlan,
    ComputedPlan,
    DerivedPlan,
    EdgePlan,
    GroupPlan,
    HotColumnPlan,
    PartitionerPlan,
    RowPlan,
)
from railgun.language.duration import format_duration

NAMES_MAX = 4


def edge_text(delta_ms: int) -> str:
    """Return where an edge lies: `T` or `T − 7d`."""
    return f"T − {format_duration(delta_ms)}" if delta_ms else "T"


def group_text(fields: Sequence[str]) -> str:
    """Return the fields of a group: `card, merchant`; `everything` without fields."""
    return ", ".join(fields) or "everything"


def group_by_text(fields: Sequence[str]) -> str:
    """Return `GROUP BY card, merchant`; `everything together` without fields."""
    return f"GROUP BY {', '.join(fields)}" if fields else "everything together"


def partitioner_text(partitioner: str) -> str:
    """Return `by card`; `all events together` for `*`."""
    return "all events together" if partitioner == "*" else f"by {partitioner}"


def count_text(number: int, noun: str) -> str:
    """Return a number with its noun: `1 cell`, `3 cells`, `2 entities`."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun[:-1]}ies" if noun.endswith("ty") else f"{number:,} {noun}s"


COMPUTED_TITLE = "computed fields, written out wherever they are read"
DERIVED_TITLE = "derived metrics, computed for each reply"


def definition_text(defined: ComputedPlan | DerivedPlan) -> str:
    """Return a computed field or derived metric with its expression's canonical text: `rate = declined / n`."""
    return f"{defined.name} = {defined.expression}"


def summary_text(plan: PartitionerPlan) -> str:
    """Return how much a plan has, and how much sharing saves."""
    saved = f" instead of {plan.cells_unshared}" if plan.cells_unshared > plan.cells else ""
    parts = [
        count_text(plan.metrics, "metric"),
        count_text(len(plan.windows), "window"),
        count_text(plan.cursors, "cursor"),
        count_text(plan.cells, "cell") + saved,
    ]
    return ", ".join(parts)


def users_text(cell: CellPlan, group: GroupPlan) -> str:
    """Return which metrics of its group use a cell."""
    everyone = len(cell.metrics) == len(group.metrics) > 1
    return "all of them" if everyone else _listed(cell.metrics, "metric")


def _listed(names: Sequence[str], noun: str) -> str:
    return ", ".join(names) if len(names) <= NAMES_MAX else count_text(len(names), noun)


def cell_text(cell: CellPlan) -> str:
    """Return what a cell holds: `sum of amount, 5 words`."""
    of = "" if cell.of == "*" else f" of {cell.of}"
    spills = ", and pages" if cell.spills else ""
    return f"{cell.kind}{of}, {count_text(cell.words, 'word')}{spills}"


def edge_use_text(edge: EdgePlan) -> str:
    """Return the windows of an edge: `tail of SLIDING 7 DAYS; head of SLIDING 7 DAYS DELAYED BY 7 DAYS`."""
    parts = [
        f"{what} of {', '.join(of)}" for what, of in (("tail", edge.tail_of), ("head", edge.head_of)) if of
    ]
    return "; ".join(parts) + ("" if edge.has_cursor else " (no cursor: events arrive here)")


def row_text(row: RowPlan) -> str:
    """Return the size of a row: `card: 32 words, 288 bytes, for 10 metrics`."""
    metrics = count_text(row.metrics, "metric")
    return f"{group_text(row.fields)}: {count_text(row.words, 'word')}, {row.size_bytes} bytes, for {metrics}"


def hot_column_text(column: HotColumnPlan) -> str:
    """Return a hot column and its users: `amount > 0: predicate of 6 metrics`."""
    what = column.text if column.kind == "value" else f"hash of {column.text}"
    roles = " and ".join(column.roles)
    return f"{what}: {roles} of {_listed(column.used_by, 'metric')}"
