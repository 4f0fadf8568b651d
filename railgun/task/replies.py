"""What a task answers: columns of results for a run of consecutive records."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from railgun.plan.outputs import MetricColumn, Value
from railgun.wire.decode import Decoded
from railgun.wire.reply import Partial


@dataclass(frozen=True, slots=True)
class Replies:
    """Answers to n consecutive event records. Arrays are the task's own and hold until its next call.

    first_offset: log position of the first record.  decoded: header columns of the records (status not 0: the
    record could not be read and has no answer).  accepted, late (railgun.task.admission.LATE_...), duplicate: uint8[n].
    columns: the metrics' results, warming ones all null.  warming: their names.  partials: which metrics lack events
    up to a bound, in which rows; `Partial.metric` indexes `columns`.
    """

    first_offset: int
    n: int
    decoded: Decoded
    accepted: npt.NDArray[np.uint8]
    late: npt.NDArray[np.uint8]
    duplicate: npt.NDArray[np.uint8]
    columns: Sequence[MetricColumn]
    warming: tuple[str, ...]
    partials: Sequence[Partial]

    def metrics(self, row: int) -> dict[str, Value]:
        """One record's results by metric name."""
        return {column.name: column.value(row) for column in self.columns}

    def partial(self, row: int) -> dict[str, int]:
        """By name the time (ms) up to and including which events are missing from one record's results."""
        return {
            self.columns[p.metric].name: p.bound_ms for p in self.partials if p.first_row <= row < p.after_row
        }

    def as_dict(self, row: int) -> dict[str, Any]:
        """One record's answer as plain data, for tests and tools."""
        return {
            "metrics": self.metrics(row),
            "late": int(self.late[row]),
            "duplicate": bool(self.duplicate[row]),
            "warming": self.warming,
            "partial": self.partial(row),
        }
