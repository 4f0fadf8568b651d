"""What a plan shares, as plain data: the model that `railgun explain` renders. JSON is made of it as it is."""

import dataclasses
import json
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CellPlan:
    """A piece of an entity's row, `words` of 64 bits, kept for one argument and used by one metric or more.

    kind: what it holds, as in "sum".  of: the argument's text, `*` without one.  spills: it is the root of
    pages that grow with the window.
    """

    kind: str
    of: str
    words: int
    spills: bool
    metrics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MetricPlan:
    """A leaf: `aggregate` as the query writes it, as in `sum(amount)`; `type` of its result."""

    name: str
    aggregate: str
    type: str


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """A group-by under one window and filter; `fields` () is everything."""

    fields: tuple[str, ...]
    metrics: tuple[MetricPlan, ...]
    cells: tuple[CellPlan, ...]


@dataclass(frozen=True, slots=True)
class FilterPlan:
    """A predicate under one window; None lets every event pass."""

    predicate: str | None
    groups: tuple[GroupPlan, ...]


@dataclass(frozen=True, slots=True)
class WindowPlan:
    """A window: its text, its interval of event time as text, and its edges as distances behind the clock T.

    tail_ms: None where nothing leaves event by event.
    """

    text: str
    interval: str
    kind: str
    head_ms: int
    tail_ms: int | None
    filters: tuple[FilterPlan, ...]


@dataclass(frozen=True, slots=True)
class EdgePlan:
    """A point `delta_ms` behind the clock, and the windows that begin or end there.

    has_cursor: False for the clock itself, where events arrive.
    """

    delta_ms: int
    has_cursor: bool
    head_of: tuple[str, ...]
    tail_of: tuple[str, ...]

    @property
    def windows(self) -> int:
        """How many windows it serves."""
        return len(self.head_of) + len(self.tail_of)


@dataclass(frozen=True, slots=True)
class HotColumnPlan:
    """What is computed once per event and stored beside it: an expression's values, or hashes.

    text: the expression, or the fields of the entity.  roles: "argument", "predicate", "entity".
    used_by: metrics by name.
    """

    name: str
    kind: str
    text: str
    roles: tuple[str, ...]
    used_by: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RowPlan:
    """The state row of one entity of a group-by: every window and aggregate of it in one look-up.

    words: its cells, and the gaps that keep those of one window and filter within a cache line. size_bytes: with its
    head, and up to whole cache lines where it is wider than two.
    """

    fields: tuple[str, ...]
    words: int
    size_bytes: int
    metrics: int


@dataclass(frozen=True, slots=True)
class PartitionerPlan:
    """The plan of each task of one partitioner. cells_unshared: what its metrics would take, each alone."""

    partitioner: str
    tasks: int
    windows: tuple[WindowPlan, ...]
    edges: tuple[EdgePlan, ...]
    hot_columns: tuple[HotColumnPlan, ...]
    rows: tuple[RowPlan, ...]
    cells_unshared: int

    @property
    def groups(self) -> tuple[GroupPlan, ...]:
        """All group-by nodes, window by window."""
        return tuple(group for window in self.windows for each in window.filters for group in each.groups)

    @property
    def metrics(self) -> int:
        """How many metrics live here."""
        return sum(len(group.metrics) for group in self.groups)

    @property
    def cells(self) -> int:
        """Cells of all its group-by nodes."""
        return sum(len(group.cells) for group in self.groups)

    @property
    def cursors(self) -> int:
        """Edges that read the reservoir."""
        return sum(edge.has_cursor for edge in self.edges)


@dataclass(frozen=True, slots=True)
class DerivedPlan:
    """A derived metric: its expression as text, the type of its result, and what it reads.

    metrics, fields: read by itself or through others.
    reads: the metrics and derived metrics that its expression names.
    """

    name: str
    expression: str
    type: str
    metrics: tuple[str, ...]
    fields: tuple[str, ...]
    reads: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StreamPlan:
    """The plans of a stream, one per partitioner in the stream's order; and what is derived for each reply."""

    name: str
    partitioners: tuple[PartitionerPlan, ...]
    derived: tuple[DerivedPlan, ...] = ()


@dataclass(frozen=True, slots=True)
class Explanation:
    """Everything that was asked about."""

    streams: tuple[StreamPlan, ...]


def render_json(explanation: Explanation) -> str:
    """The model's fields by name, durations in ms, and the totals that people are shown."""
    body = dataclasses.asdict(explanation)
    for stream, stream_body in zip(explanation.streams, body["streams"]):
        for plan, plan_body in zip(stream.partitioners, stream_body["partitioners"]):
            plan_body |= {"metrics": plan.metrics, "cells": plan.cells, "cursors": plan.cursors}
    return json.dumps(body, indent=2, ensure_ascii=False) + "\n"
