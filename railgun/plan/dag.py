"""The plan as a shared-prefix DAG: window -> filter -> group by -> metric (Railgun paper, section 4.1.2).

Pure data, made from resolved metrics alone. Equal prefixes of metrics become one node.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from railgun.language import ast
from railgun.language.resolve import ResolvedMetric
from railgun.language.typed import TypedExpression


@dataclass(frozen=True, slots=True)
class GroupNode:
    """A group-by under one window and filter. Its metrics share one row per entity. `fields` is () without GROUP BY."""

    fields: tuple[str, ...]
    metrics: tuple[ResolvedMetric, ...]


@dataclass(frozen=True, slots=True)
class FilterNode:
    """A predicate under one window; None lets every event pass."""

    predicate: TypedExpression | None
    groups: tuple[GroupNode, ...]


@dataclass(frozen=True, slots=True)
class WindowNode:
    """One window, and the filters under it."""

    window: ast.Window
    filters: tuple[FilterNode, ...]

    @property
    def head_ms(self) -> int:
        """The distance of its head edge behind the clock."""
        return self.window.delay_ms

    @property
    def tail_ms(self) -> int | None:
        """The distance of its tail edge behind the clock; None if events do not expire one by one."""
        if self.window.kind is not ast.WindowKind.SLIDING or self.window.size_ms is None:
            return None
        return self.window.delay_ms + self.window.size_ms


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of all metrics of one task."""

    windows: tuple[WindowNode, ...]

    @property
    def edges_ms(self) -> tuple[int, ...]:
        """The distinct edges that need a cursor, as distances behind the clock, ascending.

        A head without a delay needs none: every accepted event is at or before the clock when it arrives.
        """
        heads = {window.head_ms for window in self.windows if window.head_ms > 0}
        tails = {window.tail_ms for window in self.windows if window.tail_ms is not None}
        return tuple(sorted(heads | tails))


def build_plan(metrics: Iterable[ResolvedMetric]) -> Plan:
    """The plan of these metrics. Within a node, children are in the order in which the metrics first named them."""
    windows: dict[ast.Window, dict[TypedExpression | None, dict[tuple[str, ...], list[ResolvedMetric]]]] = {}
    for metric in metrics:
        groups = windows.setdefault(metric.window, {}).setdefault(metric.predicate, {})
        groups.setdefault(metric.group_by, []).append(metric)
    return Plan(
        tuple(
            WindowNode(
                window,
                tuple(
                    FilterNode(
                        predicate, tuple(GroupNode(fields, tuple(found)) for fields, found in groups.items())
                    )
                    for predicate, groups in filters.items()
                ),
            )
            for window, filters in windows.items()
        )
    )
