"""The answers of one partitioner's tasks to a run of events: what tasks deliver, put where the events stand."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from railgun.catalog.model import MetricDefinition
from railgun.language.types import Kind
from railgun.plan.outputs import MetricColumn, is_wide
from railgun.task.replies import Replies
from railgun.wire.columns import REF_LENGTH_BITS, REF_LENGTH_MASK

NOT_SENT = 255
"""In `late` and `duplicate`: the event was not sent to this partitioner."""

Rows = NDArray[np.int64] | slice


class Answers:
    """Columns for n events.

    late uint8[n] (railgun.task.admission.LATE_...), duplicate uint8[n]: NOT_SENT where no task was asked.
    warming int32[n]: index into `warming_sets`, tuples of names, the first of them empty.
    partials: (name of a metric, its bound in ms, int64[...] rows that it is partial in).
    """

    def __init__(self, n: int, metrics: Sequence[MetricDefinition]) -> None:
        self.late = np.full(n, NOT_SENT, np.uint8)
        self.duplicate = np.full(n, NOT_SENT, np.uint8)
        self.warming = np.zeros(n, np.int32)
        self.warming_sets: list[tuple[str, ...]] = [()]
        self.partials: list[tuple[str, int, NDArray[np.int64]]] = []
        self._names = [metric.name for metric in metrics]
        self._types = [metric.resolved.result_type for metric in metrics]
        # All metrics at once: with many of them and few events, what is done for each of them is what counts.
        self._low = np.zeros((len(metrics), n), np.uint64)
        self._nulls = np.ones((len(metrics), n), np.uint8)
        self._high = {
            place: np.zeros(n, np.uint64) for place, type_ in enumerate(self._types) if is_wide(type_)
        }
        self._strings = [place for place, type_ in enumerate(self._types) if type_.kind is Kind.STRING]
        self._heap = _Heap()
        self._is_put = False

    def take(self, replies: Replies, rows: Rows) -> None:
        """Put the replies to n events into n rows."""
        n, out, nulls = replies.n, replies.out, replies.nulls
        self.late[rows], self.duplicate[rows] = replies.late[:n], replies.duplicate[:n]
        told = list(replies.names)
        if told == self._names:
            self._low[:, rows], self._nulls[:, rows] = out[: len(told), :n, 0], nulls[: len(told), :n]
            source = {place: place for place in range(len(told))}
        else:
            source = {self._names.index(name): index for index, name in enumerate(told)}
            for place, index in source.items():
                self._low[place, rows], self._nulls[place, rows] = out[index, :n, 0], nulls[index, :n]
        for place in self._strings:
            if place in source:
                index = source[place]
                self._low[place, rows] = self._heap.take(out[index, :n, 0], nulls[index, :n], replies.heap)
        for place, high in self._high.items():
            if place in source:
                high[rows] = out[source[place], :n, 1]
        if replies.warming:
            self.warming[rows] = self._warming_set(replies.warming)
        for partial in replies.partials:
            within = _within(rows, partial.first_row, partial.after_row)
            self.partials.append((replies.names[partial.metric], partial.bound_ms, within))

    def put(self, columns: Iterable[MetricColumn]) -> None:
        """Have these columns, which need no bytes but their own."""
        self._columns = {column.name: column for column in columns}
        self._is_put = True

    def columns(self) -> dict[str, MetricColumn]:
        """The metrics' results by name, null where no task was asked."""
        if self._is_put:
            return self._columns
        heap = self._heap.joined()
        return {
            name: MetricColumn(name, type_, self._words(place), self._nulls[place], heap)
            for place, (name, type_) in enumerate(zip(self._names, self._types))
        }

    def _words(self, place: int) -> NDArray[np.uint64]:
        low = self._low[place]
        return np.stack((low, self._high[place]), axis=1) if place in self._high else low.reshape(-1, 1)

    def _warming_set(self, names: tuple[str, ...]) -> int:
        if names not in self.warming_sets:
            self.warming_sets.append(names)
        return self.warming_sets.index(names)


def _within(rows: Rows, first: int, after: int) -> NDArray[np.int64]:
    if isinstance(rows, slice):
        return np.arange(rows.start + first, rows.start + after)
    return rows[first:after]


class _Heap:
    """The bytes of strings from many batches, joined."""

    def __init__(self) -> None:
        self._pieces: list[NDArray[np.uint8]] = []
        self._size_bytes = 0

    def take(
        self, words: NDArray[np.uint64], nulls: NDArray[np.uint8], heap: NDArray[np.uint8]
    ) -> NDArray[np.uint64]:
        """Keep the bytes that string references point at; the references as they are from here on."""
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

    def joined(self) -> NDArray[np.uint8]:
        return np.concatenate(self._pieces) if self._pieces else np.zeros(0, np.uint8)
