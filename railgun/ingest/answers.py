"""Collects the answers of one partitioner's tasks to a batch of events, in the order of the events.

The engine and the front-end make one `Answers` for each partitioner, and copy in the replies as they come.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from railgun.catalog.model import MetricDefinition
from railgun.language.types import Type
from railgun.plan.result_block import ResultBlock, ResultForm
from railgun.task.replies import Replies
from railgun.wire.columns import REF_LENGTH_BITS, REF_LENGTH_MASK

NOT_SENT = 255
"""The value in `late` and `duplicate` of an event that was not sent to this partitioner."""

Rows = NDArray[np.int64] | slice


class Answers:
    """The answers of one partitioner's tasks to n events.

    form: the names and types of the partitioner's metrics. A task may know only some of these metrics.
    late: uint8[n], one of railgun.task.admission.LATE_...; NOT_SENT for events that were not sent to any task.
    duplicate: uint8[n], 1 for duplicates; NOT_SENT for events that were not sent to any task.
    warming: int32[n], an index into `warming_sets`.
    warming_sets: tuples of names of metrics. The first one is empty.
    partials: the metrics that lack old events in some rows: (name, the time in ms up to which events are missing,
        int64[...] the rows).
    """

    def __init__(self, n: int, form: ResultForm) -> None:
        self.late, self.duplicate = np.full((2, n), NOT_SENT, np.uint8)
        self.warming = np.zeros(n, np.int32)
        self.warming_sets: list[tuple[str, ...]] = [()]
        self.partials: list[tuple[str, int, NDArray[np.int64]]] = []
        self._made = ResultBlock.nothing(form, n)
        self._heap = StringHeap()

    @classmethod
    def of(cls, block: ResultBlock) -> "Answers":
        """Make answers that have only results: nothing is late, duplicate, warming or partial."""
        found, n = cls.__new__(cls), block.low.shape[1]
        found.late, found.duplicate = np.zeros((2, n), np.uint8)
        found.warming, found.warming_sets, found.partials = np.zeros(n, np.int32), [()], []
        found._made, found._heap = block, StringHeap()
        return found

    def take(self, replies: Replies, rows: Rows) -> None:
        """Copy a task's replies into the rows of the events that they answer."""
        n, out, nulls, made = replies.n, replies.out, replies.nulls, self._made
        self.late[rows], self.duplicate[rows] = replies.late[:n], replies.duplicate[:n]
        names, form = tuple(replies.names), made.form
        if names == form.names:
            made.low[:, rows], made.nulls[:, rows] = out[: len(names), :n, 0], nulls[: len(names), :n]
            if len(form.wide):
                made.high[:, rows] = out[form.wide, :n, 1]
            source = {place: place for place in form.strings}
        else:
            source = {form.names.index(name): index for index, name in enumerate(names)}
            for place, index in source.items():
                made.low[place, rows], made.nulls[place, rows] = out[index, :n, 0], nulls[index, :n]
            for row, place in enumerate(form.wide.tolist()):
                if place in source:
                    made.high[row, rows] = out[source[place], :n, 1]
        for place in form.strings:
            if place in source:
                index = source[place]
                made.low[place, rows] = self._heap.take(out[index, :n, 0], nulls[index, :n], replies.heap)
        if replies.warming:
            self.warming[rows] = self._warming_set(replies.warming)
        for partial in replies.partials:
            within = _within(rows, partial.first_row, partial.after_row)
            self.partials.append((replies.names[partial.metric], partial.bound_ms, within))

    def put(self, block: ResultBlock) -> None:
        """Set all results at once. The block must hold the bytes of its strings itself."""
        self._made = block

    def block(self) -> ResultBlock:
        """Return the results of the metrics. They are null for events that were not sent to any task."""
        if self._heap.is_used:
            return replace(self._made, heap=self._heap.joined())
        return self._made

    def set_warming(self, sets: Sequence[tuple[str, ...]], codes: NDArray[np.int64]) -> None:
        """Set which metrics are warming in each row. codes int64[n]: indices into `sets`."""
        known = np.array([self._warming_set(names) for names in sets], np.int32)
        self.warming[:] = known[codes]

    def _warming_set(self, names: tuple[str, ...]) -> int:
        if names not in self.warming_sets:
            self.warming_sets.append(names)
        return self.warming_sets.index(names)


def any_set(codes: NDArray[np.uint8]) -> bool:
    """Whether any code is not 0. For few codes this is faster than numpy."""
    octets = codes.tobytes()
    return octets.count(0) < len(octets)


def forms_of(partitioners: Iterable[str], metrics: Iterable[MetricDefinition]) -> dict[str, ResultForm]:
    """Return the form of the answers of each partitioner's tasks. It stays valid until the metrics change."""
    found: dict[str, list[tuple[str, Type]]] = {partitioner: [] for partitioner in partitioners}
    for metric in metrics:
        found[metric.home].append((metric.name, metric.resolved.result_type))
    return {partitioner: ResultForm.of(own) for partitioner, own in found.items()}


def _within(rows: Rows, first: int, after: int) -> NDArray[np.int64]:
    if isinstance(rows, slice):
        return np.arange(rows.start + first, rows.start + after)
    return rows[first:after]


class StringHeap:
    """The bytes of strings from many batches, joined."""

    def __init__(self) -> None:
        self._pieces: list[NDArray[np.uint8]] = []
        self._size_bytes = 0

    def take(
        self, words: NDArray[np.uint64], nulls: NDArray[np.uint8], heap: NDArray[np.uint8]
    ) -> NDArray[np.uint64]:
        """Copy the bytes that string references point at into this heap. Returns the references into this heap."""
        refs = np.where(nulls == 0, words, np.uint64(0))
        starts = refs >> np.uint64(REF_LENGTH_BITS)
        ends = starts + (refs & np.uint64(REF_LENGTH_MASK))
        used = refs != 0
        if not used.any():
            return refs
        first, last = int(starts[used].min()), int(ends.max())
        self._pieces.append(heap[first:last].copy())
        moved = refs + np.uint64(((self._size_bytes - first) << REF_LENGTH_BITS) & (1 << 64) - 1)
        self._size_bytes += last - first
        return np.where(used, moved, np.uint64(0))

    @property
    def is_used(self) -> bool:
        """Whether the heap holds any bytes."""
        return bool(self._pieces)

    def joined(self) -> NDArray[np.uint8]:
        """Return all bytes of the heap in one array."""
        return np.concatenate(self._pieces) if self._pieces else np.zeros(0, np.uint8)
