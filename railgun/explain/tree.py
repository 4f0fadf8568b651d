"""An explanation as a tree of text: window, filter, group by, metric; then what they share."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from railgun.explain.explanation import Explanation, GroupPlan, PartitionerPlan, WindowPlan
from railgun.explain.wording import (
    COMPUTED_TITLE,
    DERIVED_TITLE,
    cell_text,
    count_text,
    definition_text,
    edge_text,
    edge_use_text,
    group_by_text,
    hot_column_text,
    partitioner_text,
    row_text,
    summary_text,
    users_text,
)


@dataclass(slots=True)
class _Branch:
    text: str
    below: list["_Branch"] = field(default_factory=list)


def render_tree(explanation: Explanation) -> str:
    """Return lines for a terminal. The last line ends with a line break too."""
    if not explanation.streams:
        return "nothing to explain: there are no streams\n"
    blocks = []
    for stream in explanation.streams:
        root = _Branch(f"stream {stream.name}")
        if stream.computed:
            rows = [(definition_text(each), each.type) for each in stream.computed]
            root.below.append(_table(COMPUTED_TITLE, rows))
        root.below += [_partitioner(plan) for plan in stream.partitioners]
        if stream.derived:
            rows = [(definition_text(each), each.type) for each in stream.derived]
            root.below.append(_table(DERIVED_TITLE, rows))
        blocks.append("\n".join(_lines(root)) + "\n")
    return "\n".join(blocks)


def _lines(root: _Branch) -> Iterator[str]:
    yield root.text
    for place, branch in enumerate(root.below):
        is_last = place == len(root.below) - 1
        first, rest = ("└─ ", "   ") if is_last else ("├─ ", "│  ")
        for number, line in enumerate(_lines(branch)):
            yield (rest if number else first) + line


def _partitioner(plan: PartitionerPlan) -> _Branch:
    title = f"{partitioner_text(plan.partitioner)} ({count_text(plan.tasks, 'task')})"
    if not plan.windows:
        return _Branch(f"{title}: no metric lives here")
    branch = _Branch(f"{title}: {summary_text(plan)}", [_window(window) for window in plan.windows])
    branch.below += [
        _table("edges", [(edge_text(edge.delta_ms), edge_use_text(edge)) for edge in plan.edges]),
        _Branch("rows of an entity", [_Branch(row_text(row)) for row in plan.rows]),
        _Branch(
            "hot columns, computed once per event and stored with it",
            [_Branch(hot_column_text(column)) for column in plan.hot_columns],
        ),
    ]
    return branch


def _window(window: WindowPlan) -> _Branch:
    branch = _Branch(f"{window.text}   {window.interval}")
    for each in window.filters:
        groups = [_group(group) for group in each.groups]
        if each.predicate is None:
            branch.below += groups
        else:
            branch.below.append(_Branch(f"WHERE {each.predicate}", groups))
    return branch


def _group(group: GroupPlan) -> _Branch:
    rows = [(f"{metric.name} = {metric.aggregate}", metric.type) for metric in group.metrics]
    branch = _table(group_by_text(group.fields), rows)
    shared = [cell for cell in group.cells if len(cell.metrics) > 1]
    branch.below += [_Branch(f"shared: {cell_text(cell)}, by {users_text(cell, group)}") for cell in shared]
    return branch


def _table(title: str, rows: Sequence[tuple[str, str]]) -> _Branch:
    width = max((len(left) for left, _ in rows), default=0)
    return _Branch(title, [_Branch(f"{left:<{width}}   {right}") for left, right in rows])
