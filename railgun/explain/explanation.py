"""The model that `railgun explain` renders: what a plan shares, as plain data. It becomes JSON as it is."""

import dataclasses
import json
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CellPlan:
    """A piece of an entity's row, `words` of 64 bits, kept for one argument and used by one metric or more.

    kind: what it holds, such as "sum".
    of: the argument's text; `*` without an argument.
    spills: whether it is the root of pages that grow with the window.
    """

    kind: str
    of: str
    words: int
    spills: bool
    metrics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MetricPlan:
    """A metric. aggregate: as the query writes it, such as `sum(amount)`. type: the type of its result."""

    name: str
    aggregate: str
    type: str


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """A group-by under one window and filter. fields: () groups everything together."""

    fields: tuple[str, ...]
    metrics: tuple[MetricPlan, ...]
    cells: tuple[CellPlan, ...]


@dataclass(frozen=True, slots=True)
class FilterPlan:
    """A predicate under one window. The predicate None lets every event pass."""

    predicate: str | None
    groups: tuple[GroupPlan, ...]


@dataclass(frozen=True, slots=True)
class WindowPlan:
    """A window: its text, its interval of event time as text, and its edges as distances behind the clock T, in ms.

    tail_ms: None if no events leave one by one.
    """

    text: str
    interval: str
    kind: str
    head_ms: int
    tail_ms: int | None
    filters: tuple[FilterPlan, ...]


@dataclass(frozen=True, slots=True)
class EdgePlan:
    """A point `delta_ms` behind the clock, with the windows that begin or end there.

    has_cursor: whether a cursor reads the reservoir there. The clock itself has none, because events arrive there.
    """

    delta_ms: int
    has_cursor: bool
    head_of: tuple[str, ...]
    tail_of: tuple[str, ...]

    @property
    def windows(self) -> int:
        """The number of windows that it serves."""
        return len(self.head_of) + len(self.tail_of)


@dataclass(frozen=True, slots=True)
class HotColumnPlan:
    """An expression that is computed once for each event and stored beside it, as values or hashes.

    text: the expression, or the fields of the entity.
    roles: some of "argument", "predicate" and "entity".
    used_by: the names of the metrics that use it.
    """

    name: str
    kind: str
    text: str
    roles: tuple[str, ...]
    used_by: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RowPlan:
    """The state row of one entity of a group-by. It has every window and aggregate of the entity in one look-up.

    words: its cells, with the gaps that keep the cells of one window and filter within a cache line.
    size_bytes: the size with the row's head. Rows wider than two cache lines are rounded up to whole ones.
    """

    fields: tuple[str, ...]
    words: int
    size_bytes: int
    metrics: int


@dataclass(frozen=True, slots=True)
class PartitionerPlan:
    """The plan of each task of one partitioner. cells_unshared: the cells that its metrics need without sharing."""

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
        """The number of metrics that are computed here."""
        return sum(len(group.metrics) for group in self.groups)

    @property
    def cells(self) -> int:
        """The number of cells of all group-by nodes."""
        return sum(len(group.cells) for group in self.groups)

    @property
    def cursors(self) -> int:
        """The number of edges that read the reservoir."""
        return sum(edge.has_cursor for edge in self.edges)


@dataclass(frozen=True, slots=True)
class DerivedPlan:
    """A derived metric: its expression as text, the type of its result, and what it reads.

    metrics, fields: read by itself or through others; fields as they are named, computed ones too.
    reads: the metrics and derived metrics that its expression names.
    """

    name: str
    expression: str
    type: str
    metrics: tuple[str, ...]
    fields: tuple[str, ...]
    reads: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ComputedPlan:
    """A computed field: its expression as text, and its type. It is written out wherever it is read."""

    name: str
    expression: str
    type: str


@dataclass(frozen=True, slots=True)
class StreamPlan:
    """The plans of a stream's partitioners, in the stream's order, and the metrics that are derived for each reply.

    computed: the computed fields, each behind those that it reads.
    """

    name: str
    partitioners: tuple[PartitionerPlan, ...]
    derived: tuple[DerivedPlan, ...] = ()
    computed: tuple[ComputedPlan, ...] = ()


@dataclass(frozen=True, slots=True)
class Explanation:
    """The explanation of everything that was asked about."""

    streams: tuple[StreamPlan, ...]


def render_json(explanation: Explanation) -> str:
    """Return the model's fields by name as JSON, with durations in ms, and the totals that people are shown."""
    body = dataclasses.asdict(explanation)
    for stream, stream_body in zip(explanation.streams, body["streams"]):
        for plan, plan_body in zip(stream.partitioners, stream_body["partitioners"]):
            plan_body |= {"metrics": plan.metrics, "cells": plan.cells, "cursors": plan.cursors}
    return json.dumps(body, indent=2, ensure_ascii=False) + "\n"
