"""A task's replies to a run of consecutive records, as columns of results. It does no I/O.

`TaskProcessor` makes them; hosts send them to front-ends, or hand them to the engine's callers. A result is *partial*
if its metric lacks events of long ago, or of a gap in the log (docs/semantics.md: Life of a metric, A gap in the log).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from railgun.language.types import Kind, Type
from railgun.plan.outputs import MetricColumn, Value, is_wide
from railgun.plan.program import TIME_MIN
from railgun.task.admission import Admitted
from railgun.task.inputs import Repeat
from railgun.task.meta import Crossing
from railgun.task.metrics import LiveMetric, TaskMetrics
from railgun.task.settings import TaskIdentity
from railgun.wire.decode import Decoded
from railgun.wire.encode import NO_REPLY
from railgun.wire.msgpack import Status
from railgun.wire.reply import (
    BatchReplies,
    Partial,
    ReplyEncoder,
    ReplyFlag,
    ReplyMetric,
    ReplySource,
    Shape,
    only_destination,
)


def partials_of(
    metrics: TaskMetrics,
    names: Sequence[str],
    admitted: Admitted,
    n: int,
    least_ms: int,
    gap: Crossing | None,
) -> list[Partial]:
    """Return the partial metrics of a batch.

    A warm metric is partial in a row if its window begins at or before the metric's bound, and an event at or before
    that bound has been accepted by then; or if its window begins at or before the end of a gap. The greater of both
    times counts. No two of them are about one metric and row.
    least_ms: the least time that was accepted before the batch.
    gap: the last gap that the task has crossed.
    """
    accepted = admitted.accepted[:n] != 0
    least_after = least_ms
    if admitted.count:
        least_after = min(least_ms, int(admitted.time_ms[:n][accepted].min()))
    found: list[Partial] = []
    for index, name in enumerate(names):
        metric = metrics.by_name[name]
        if not metric.warm:
            continue
        in_gap = 0 if gap is None else _rows_reaching_back(metric, gap.gap_ms, admitted, n)
        if gap is not None and gap.gap_ms >= metric.after_ms:
            # Every window that reaches back to the metric's bound reaches the gap too.
            if in_gap:
                found.append(Partial(index, gap.gap_ms, 0, in_gap))
            continue
        first, behind = n, 0
        if metric.after_ms > TIME_MIN and least_after <= metric.after_ms:
            first, behind = 0, _rows_reaching_back(metric, metric.after_ms, admitted, n)
            if least_ms > metric.after_ms:
                first = int(np.flatnonzero(accepted & (admitted.time_ms[:n] <= metric.after_ms))[0])
        if gap is not None and min(first, in_gap):
            found.append(Partial(index, gap.gap_ms, 0, min(first, in_gap)))
        if behind > first:
            found.append(Partial(index, metric.after_ms, first, behind))
    return found


def _rows_reaching_back(metric: LiveMetric, bound_ms: int, admitted: Admitted, n: int) -> int:
    """Return how many rows, counted from the first one, have a window that begins at or before a time.

    These rows come first, because the clock only grows.
    """
    low, high = 0, n
    while low < high:
        middle = (low + high) // 2
        if metric.reaches_back(bound_ms, int(admitted.clock_ms[middle])):
            low = middle + 1
        else:
            high = middle
    return low


@dataclass(frozen=True, slots=True)
class Replies:
    """Answers to n consecutive event records. The arrays belong to the task and are valid until its next call.

    first_offset: the offset of the first record in the log.
    decoded: the header columns of the records. A record whose status is not 0 could not be read and has no answer.
    accepted, late, duplicate: uint8[n]; `late` has railgun.task.admission.LATE_...
    out: uint64[metrics, stride, 2]; results as the interpreter writes them, null for warming metrics.
    nulls: uint8[metrics, stride].
    heap: the bytes of string results.
    names, types: the names and types of the metrics.
    warming: the names of the metrics that do not answer yet.
    partials: which metrics lack events up to a bound, and in which rows.
    place: the number of the catalogue's newest change that is in force at these records.
    repeats: rows that get the reply of an earlier record. Their values in the columns do not count.
    is_query: whether these answer value queries, at one place of the log: all are of `first_offset`, the last record
        that is included, and `decoded.time` has the task's clock.
    """

    first_offset: int
    n: int
    decoded: Decoded
    accepted: npt.NDArray[np.uint8]
    late: npt.NDArray[np.uint8]
    duplicate: npt.NDArray[np.uint8]
    out: npt.NDArray[np.uint64]
    nulls: npt.NDArray[np.uint8]
    heap: npt.NDArray[np.uint8]
    names: Sequence[str]
    types: Sequence[Type]
    warming: tuple[str, ...]
    partials: Sequence[Partial]
    place: int
    repeats: Mapping[int, Repeat] = field(default_factory=dict)
    is_query: bool = False

    @property
    def columns(self) -> list[MetricColumn]:
        """The results as one column for each metric."""
        return [
            MetricColumn(name, type_, self.out[index, : self.n], self.nulls[index, : self.n], self.heap)
            for index, (name, type_) in enumerate(zip(self.names, self.types))
        ]

    def source(self, identity: TaskIdentity) -> ReplySource:
        """Return the task and its metrics, as reply records describe them."""
        metrics = tuple(
            _described(name, type_, name in self.warming) for name, type_ in zip(self.names, self.types)
        )
        return ReplySource(identity.stream, identity.partitioner, identity.partition, metrics)

    def metrics(self, row: int) -> dict[str, Value]:
        """Return the results of one record, by the names of metrics."""
        return {column.name: column.value(row) for column in self.columns}

    def partial(self, row: int) -> dict[str, int]:
        """Return for each partial metric of one record the time, in ms, up to and including which it lacks events."""
        return {self.names[p.metric]: p.bound_ms for p in self.partials if p.first_row <= row < p.after_row}


class ReplyWriter:
    """Writes the reply records of one task."""

    def __init__(self, identity: TaskIdentity) -> None:
        self._identity = identity
        self._encoder: ReplyEncoder | None = None
        self._metrics: tuple[Sequence[str], Sequence[Type], tuple[str, ...]] | None = None
        self._whole: tuple[int, bytes] | None = None

    def records(self, replies: Replies) -> list[tuple[int, bytes]]:
        """Return a pair (front-end, reply record) for every front-end that waits for some of the replies."""
        decoded = replies.decoded
        whole, self._whole = self._whole, None
        if whole is not None and whole[0] == replies.first_offset:
            destination = only_destination(decoded.reply_to, decoded.n)
            if destination is not None:
                return [(destination, whole[1])]
        if decoded.exceptions:
            # The column `reply_to` is not valid for records that could not be read: it holds values of other records.
            decoded.reply_to[np.flatnonzero(decoded.status[: replies.n] != Status.OK)] = NO_REPLY
        repeated: list[tuple[int, bytes]] = []
        for row, repeat in replies.repeats.items():
            destination = int(decoded.reply_to[row])
            if destination > NO_REPLY:
                correlation = int(decoded.incarnation[row]), int(decoded.sequence[row])
                repeated.append((destination, repeat.record(*correlation)))
            decoded.reply_to[row] = NO_REPLY
        return self._ready(replies).encode(_of_batch(replies)) + repeated

    def rows(self, replies: Replies, rows: npt.NDArray[np.int64]) -> bytes:
        """Return one reply record for some rows (int64[...], ascending), whichever front-ends wait for them."""
        record = self._ready(replies).encode_rows(_of_batch(replies), rows)
        if len(rows) == replies.n:
            # If one front-end waits for all rows, `records` returns this same record.
            self._whole = replies.first_offset, record
        return record

    def _ready(self, replies: Replies) -> ReplyEncoder:
        """Return an encoder for the metrics of these replies."""
        metrics = replies.names, replies.types, replies.warming
        if self._encoder is None or metrics != self._metrics:
            self._encoder, self._metrics = ReplyEncoder(replies.source(self._identity)), metrics
        return self._encoder


def _of_batch(replies: Replies) -> BatchReplies:
    flags = replies.late | (replies.duplicate * np.uint8(ReplyFlag.DUPLICATE))
    step = 0 if replies.is_query else 1
    offsets = replies.first_offset + step * np.arange(replies.n)
    return BatchReplies(
        replies.decoded,
        flags,
        offsets,
        replies.out,
        replies.nulls,
        replies.heap,
        replies.partials,
        place=replies.place,
    )


def _described(name: str, type_: Type, warming: bool) -> ReplyMetric:
    shape = Shape.STRING if type_.kind is Kind.STRING else Shape.WIDE if is_wide(type_) else Shape.WORD
    return ReplyMetric(name, str(type_.kind), type_.precision, type_.scale, shape, warming)


def discard_replies(replies: Replies) -> None:
    """Do nothing with replies. For records that nobody waits for."""
