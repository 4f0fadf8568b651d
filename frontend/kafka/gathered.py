"""The answers of one partitioner's tasks to a run of events, as reply records bring them, column by column."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from railgun.engine.answers import Answers
from railgun.language.types import Kind, Type
from railgun.plan.outputs import MetricColumn
from railgun.wire.reply import ReplyBatch, ReplyFlag, ReplySource, Shape

_LATE = np.uint8(ReplyFlag.REWRITTEN | ReplyFlag.DISCARDED)
_NO_BYTES = np.zeros(0, np.uint8)

Metric = tuple[str, Type]


class Gathered(Answers):
    """Answers to n events, of which some were sent to this partitioner.

    waiting bool[n]: sent and not answered yet.  sets: which metrics records spoke of; codes int32[n]: whose set each
    row has, -1 before its answer.  Tasks may differ while a metric is being added.
    """

    def __init__(self, n: int) -> None:
        super().__init__(n, ())
        self.waiting = np.zeros(n, np.bool_)
        self.codes = np.full(n, -1, np.int32)
        self.sets: list[tuple[Metric, ...]] = []
        self._by_metric: dict[Metric, MetricColumn] = {}

    def expect(self, rows: NDArray[np.int64] | None) -> int:
        """These rows were sent, or all; how many."""
        self.waiting[slice(None) if rows is None else rows] = True
        return len(self.waiting) if rows is None else len(rows)

    def gather(self, batch: ReplyBatch, first: int, after: int, rows: NDArray[np.int64]) -> int:
        """Put rows first..after - 1 of a record where its events stand; how many were waited for.

        A row that was answered before keeps its first answer.
        """
        taken: slice | NDArray[np.int64] = slice(first, after)
        fresh = self.waiting[rows]
        if not fresh.all():
            taken = first + np.flatnonzero(fresh)
            rows = rows[fresh]
        if not len(rows):
            return 0
        self.waiting[rows] = False
        flags = batch.flags[taken]
        self.late[rows] = flags & _LATE
        self.duplicate[rows] = (flags & np.uint8(ReplyFlag.DUPLICATE)) != 0
        metrics = _metrics_of(batch.source)
        self.codes[rows] = self._code(metrics)
        ascends = bool((rows[1:] > rows[:-1]).all())
        whole = ascends and len(rows) == len(self.codes)
        for place, (metric, described) in enumerate(zip(metrics, batch.source.metrics)):
            nulls = batch.nulls[place, taken]
            words = batch.words(place)[taken]
            if whole:
                self._by_metric[metric] = MetricColumn(described.name, metric[1], words, nulls, batch.heap)
            else:
                self._put(metric, described.shape, words, nulls, batch.heap, rows)
        self._note_life(batch, taken, rows)
        return len(rows) if ascends else len(np.unique(rows))

    def names(self, code: int) -> tuple[str, ...]:
        """The metrics of a set."""
        return tuple(name for name, _ in self.sets[code])

    def chosen(self, rows: NDArray[np.int64] | None, code: int, absent: Sequence[Metric]) -> Answers:
        """The answers of some rows, or all, that have one set. code −1: they were not sent; `absent` is null."""
        if rows is None and code >= 0:
            # All is there, and stays as it is: single events come this way.
            heap = self._heap.joined()
            self.put(_chosen(self._by_metric[metric], slice(None), heap) for metric in self.sets[code])
            return self
        n = len(self.codes) if rows is None else len(rows)
        made = Answers(n, ())
        made.warming_sets = self.warming_sets
        which = slice(None) if rows is None else rows
        made.late, made.duplicate, made.warming = self.late[which], self.duplicate[which], self.warming[which]
        made.partials = self.partials if rows is None else _partials_of(self.partials, rows, len(self.codes))
        if code < 0:
            made.put(_nulls(name, type_, n) for name, type_ in absent)
        else:
            heap = self._heap.joined()
            made.put(_chosen(self._by_metric[metric], which, heap) for metric in self.sets[code])
        return made

    def _code(self, metrics: tuple[Metric, ...]) -> int:
        if metrics not in self.sets:
            self.sets.append(metrics)
        return self.sets.index(metrics)

    def _put(
        self,
        metric: Metric,
        shape: Shape,
        words: NDArray[np.uint64],
        nulls: NDArray[np.uint8],
        heap: NDArray[np.uint8],
        rows: NDArray[np.int64],
    ) -> None:
        column = self._by_metric.get(metric)
        if column is None:
            column = self._by_metric[metric] = _nulls(*metric, len(self.codes))
        column.nulls[rows] = nulls
        if shape is Shape.STRING:
            column.words[rows, 0] = self._heap.take(words[:, 0], nulls, heap)
        else:
            column.words[rows] = words

    def _note_life(
        self, batch: ReplyBatch, taken: slice | NDArray[np.int64], rows: NDArray[np.int64]
    ) -> None:
        warming = tuple(each.name for each in batch.source.metrics if each.warming)
        if warming:
            self.warming[rows] = self._warming_set(warming)
        if batch.partials:
            within = np.arange(len(batch))[taken]
            for metric, bound_ms, first, after in batch.partials:
                own = rows[(within >= first) & (within < after)]
                if len(own):
                    self.partials.append((batch.source.metrics[metric].name, bound_ms, own))


# Sources are few, live long and are large: they are known by what they are, not by what they say.
_known_sources: dict[int, tuple[ReplySource, tuple[Metric, ...]]] = {}
_SOURCES_MAX = 4_096


def _metrics_of(source: ReplySource) -> tuple[Metric, ...]:
    found = _known_sources.get(id(source))
    if found is None or found[0] is not source:
        if len(_known_sources) >= _SOURCES_MAX:
            _known_sources.clear()
        metrics = tuple(
            (each.name, Type(Kind(each.kind), each.precision, each.scale)) for each in source.metrics
        )
        found = _known_sources[id(source)] = (source, metrics)
    return found[1]


def _nulls(name: str, type_: Type, n: int) -> MetricColumn:
    column = MetricColumn(name, type_, np.zeros((n, 1), np.uint64), np.ones(n, np.uint8), _NO_BYTES)
    words = np.zeros((n, 2), np.uint64) if column.is_wide else column.words
    return MetricColumn(name, type_, words, column.nulls, _NO_BYTES)


def _chosen(column: MetricColumn, which: slice | NDArray[np.int64], heap: NDArray[np.uint8]) -> MetricColumn:
    if isinstance(which, slice) and (len(column.heap) or not len(heap)):
        return column
    own = column.heap if len(column.heap) else heap
    return MetricColumn(column.name, column.type, column.words[which], column.nulls[which], own)


def _partials_of(
    partials: Sequence[tuple[str, int, NDArray[np.int64]]], rows: NDArray[np.int64], n: int
) -> list[tuple[str, int, NDArray[np.int64]]]:
    """Partials by place among some rows, which ascend."""
    places = np.full(n, -1, np.int64)
    places[rows] = np.arange(len(rows))
    found = [(name, bound_ms, places[own][places[own] >= 0]) for name, bound_ms, own in partials]
    return [each for each in found if len(each[2])]
