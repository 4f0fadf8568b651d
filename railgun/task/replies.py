"""What a task answers: columns of results for a run of consecutive records.

Results are *partial* where a metric lacks events of long ago (docs/semantics.md: Life of a metric).
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
    metrics: TaskMetrics, names: Sequence[str], admitted: Admitted, n: int, least_ms: int
) -> list[Partial]:
    """The partial metrics of a batch; least_ms: the least time accepted before it.

    A warm metric is partial in a row where an event at or before its bound has been accepted by then and its
    window begins at or before that bound.
    """
    accepted = admitted.accepted[:n] != 0
    least_after = least_ms
    if admitted.count:
        least_after = min(least_ms, int(admitted.time_ms[:n][accepted].min()))
    found: list[Partial] = []
    for index, name in enumerate(names):
        metric = metrics.by_name[name]
        if not metric.warm or metric.after_ms == TIME_MIN or least_after > metric.after_ms:
            continue
        first = 0
        if least_ms > metric.after_ms:
            first = int(np.flatnonzero(accepted & (admitted.time_ms[:n] <= metric.after_ms))[0])
        behind = _rows_reaching_back(metric, admitted, n)
        if behind > first:
            found.append(Partial(index, metric.after_ms, first, behind))
    return found


def _rows_reaching_back(metric: LiveMetric, admitted: Admitted, n: int) -> int:
    """How many rows from the first have a window that begins at or before the bound: the clock only grows."""
    low, high = 0, n
    while low < high:
        middle = (low + high) // 2
        if metric.reaches_back(int(admitted.clock_ms[middle])):
            low = middle + 1
        else:
            high = middle
    return low


@dataclass(frozen=True, slots=True)
class Replies:
    """Answers to n consecutive event records. Arrays are the task's own and hold until its next call.

    first_offset: log position of the first record.  decoded: header columns of the records (status not 0: the
    record could not be read and has no answer).  accepted, late (railgun.task.admission.LATE_...), duplicate: uint8[n].
    out: uint64[metrics, stride, 2], nulls: uint8[metrics, stride], heap: results as the interpreter
    wrote them, of the metrics `names` of `types`; warming ones are null.  partials: which metrics lack events up to
    a bound, in which rows.  repeats: rows that get the reply of an earlier record, whatever the columns hold there.
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
    repeats: Mapping[int, Repeat] = field(default_factory=dict)

    @property
    def columns(self) -> list[MetricColumn]:
        """The metrics' results, a column each."""
        return [
            MetricColumn(name, type_, self.out[index, : self.n], self.nulls[index, : self.n], self.heap)
            for index, (name, type_) in enumerate(zip(self.names, self.types))
        ]

    def source(self, identity: TaskIdentity) -> ReplySource:
        """The task and its metrics, as reply records describe them."""
        metrics = tuple(
            _described(name, type_, name in self.warming) for name, type_ in zip(self.names, self.types)
        )
        return ReplySource(identity.stream, identity.partitioner, identity.partition, metrics)

    def metrics(self, row: int) -> dict[str, Value]:
        """One record's results by metric name."""
        return {column.name: column.value(row) for column in self.columns}

    def partial(self, row: int) -> dict[str, int]:
        """By name the time (ms) up to and including which events are missing from one record's results."""
        return {self.names[p.metric]: p.bound_ms for p in self.partials if p.first_row <= row < p.after_row}


class ReplyWriter:
    """Writes the reply records of one task."""

    def __init__(self, identity: TaskIdentity) -> None:
        self._identity = identity
        self._encoder: ReplyEncoder | None = None
        self._metrics: tuple[Sequence[str], Sequence[Type], tuple[str, ...]] | None = None
        self._whole: tuple[int, bytes] | None = None

    def records(self, replies: Replies) -> list[tuple[int, bytes]]:
        """(front-end, record) for every front-end that waits for some of them."""
        decoded = replies.decoded
        whole, self._whole = self._whole, None
        if whole is not None and whole[0] == replies.first_offset:
            destination = only_destination(decoded.reply_to, decoded.n)
            if destination is not None:
                return [(destination, whole[1])]
        if decoded.exceptions:
            # What stands there of who waits for an answer is of another record.
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
        """The record of some rows, int64[...] ascending, whoever waits for them."""
        record = self._ready(replies).encode_rows(_of_batch(replies), rows)
        if len(rows) == replies.n:
            # `records` of the same replies is this one, where one front-end waits for them all.
            self._whole = replies.first_offset, record
        return record

    def _ready(self, replies: Replies) -> ReplyEncoder:
        """The encoder of the metrics that they are of."""
        metrics = replies.names, replies.types, replies.warming
        if self._encoder is None or metrics != self._metrics:
            self._encoder, self._metrics = ReplyEncoder(replies.source(self._identity)), metrics
        return self._encoder


def _of_batch(replies: Replies) -> BatchReplies:
    flags = replies.late | (replies.duplicate * np.uint8(ReplyFlag.DUPLICATE))
    offsets = np.arange(replies.first_offset, replies.first_offset + replies.n)
    return BatchReplies(
        replies.decoded, flags, offsets, replies.out, replies.nulls, replies.heap, replies.partials
    )


def _described(name: str, type_: Type, warming: bool) -> ReplyMetric:
    shape = Shape.STRING if type_.kind is Kind.STRING else Shape.WIDE if is_wide(type_) else Shape.WORD
    return ReplyMetric(name, str(type_.kind), type_.precision, type_.scale, shape, warming)


def discard_replies(replies: Replies) -> None:
    """Takes replies that nobody waits for."""
