"""What a task answers: columns of results for a run of consecutive records."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from railgun.language.types import Kind, Type
from railgun.plan.outputs import MetricColumn, Value, is_wide
from railgun.task.identity import TaskIdentity
from railgun.wire.decode import Decoded
from railgun.wire.reply import Partial, ReplyEncoder, ReplyMetric, ReplySource, Shape


@dataclass(frozen=True, slots=True)
class Replies:
    """Answers to n consecutive event records. Arrays are the task's own and hold until its next call.

    first_offset: log position of the first record.  decoded: header columns of the records (status not 0: the
    record could not be read and has no answer).  accepted, late (railgun.task.admission.LATE_...), duplicate: uint8[n].
    out: uint64[metrics, stride, 2], nulls: uint8[metrics, stride], heap: results as the interpreter
    wrote them, of the metrics `names` of `types`; warming ones are null.  partials: which metrics lack events up to
    a bound, in which rows.
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

    def encode(self, encoder: ReplyEncoder) -> list[tuple[int, bytes]]:
        """(destination, record) for every front-end that waits for some of them."""
        flags = self.late | (self.duplicate * np.uint8(4))
        offsets = np.arange(self.first_offset, self.first_offset + self.n)
        return encoder.encode(
            self.decoded, flags, offsets, self.out, self.nulls, self.heap, partials=self.partials
        )


def _described(name: str, type_: Type, warming: bool) -> ReplyMetric:
    shape = Shape.STRING if type_.kind is Kind.STRING else Shape.WIDE if is_wide(type_) else Shape.WORD
    return ReplyMetric(name, str(type_.kind), type_.precision, type_.scale, shape, warming)
