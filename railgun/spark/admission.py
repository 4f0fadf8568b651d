"""What each task accepts: duplicates, lateness and the clock, by the definition, in the order of the log.

The one part that Spark's functions cannot say: what an event becomes depends on what all before it became.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, LongType, StringType, StructField, StructType

from railgun.catalog.model import LatePolicy, StreamDefinition
from railgun.spark.run_source import EVENT_ID, EVENT_MS, NUMBER

TASK, CLOCK, ACCEPTED_MS = "task", "clock", "accepted"
LATE, DUPLICATE = "is_late", "is_duplicate"
_FIRST, _LAST = "first_n", "last_n"

_MIN = -(1 << 63)


@dataclass(frozen=True, slots=True)
class AdmissionRules:
    """A stream's settings."""

    lateness_ms: int
    discard: bool
    dedup_events: int

    @classmethod
    def of(cls, stream: StreamDefinition) -> "AdmissionRules":
        """Those of a stream."""
        return cls(stream.lateness_ms, stream.late_policy is LatePolicy.DISCARD, stream.dedup_events)


def admitted(events: DataFrame, rules: AdmissionRules) -> DataFrame:
    """The events of one partitioner's tasks, with what their task made of each.

    events: with TASK, NUMBER (its order), EVENT_ID and EVENT_MS; other columns are kept.  Added: CLOCK, the task's
    after the event; ACCEPTED_MS, the time it was accepted at, null where it was not; LATE: rewritten or discarded;
    DUPLICATE.  Memory in an executor: a batch, and an entry for each id within the horizon that comes again.
    """
    repeated = (
        events.groupBy(TASK, EVENT_ID)
        .agg(F.min(NUMBER).alias(_FIRST), F.max(NUMBER).alias(_LAST))
        .where(F.col(_FIRST) < F.col(_LAST))
    )
    kept = [name for name in events.columns if name not in (EVENT_ID, EVENT_MS)]
    ordered = (
        events.join(repeated, [TASK, EVENT_ID], "left")
        .select(EVENT_MS, _FIRST, _LAST, EVENT_ID, *kept)
        .repartition(TASK)
        .sortWithinPartitions(TASK, NUMBER)
    )
    added = [
        StructField(CLOCK, LongType()),
        StructField(ACCEPTED_MS, LongType()),
        StructField(LATE, StringType()),
        StructField(DUPLICATE, BooleanType()),
    ]
    fields = [field for field in ordered.schema if field.name not in (EVENT_MS, _FIRST, _LAST)]
    return ordered.mapInArrow(_admitting(rules), StructType(fields + added))


def _admitting(rules: AdmissionRules) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def admit(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task: Admitting | None = None
        number: int | None = None
        for batch in batches:
            tasks = batch.column(TASK).to_numpy()
            bounds = [0, *(np.flatnonzero(np.diff(tasks)) + 1).tolist(), len(tasks)]
            for begin, end in pairwise(bounds):
                if end == begin:
                    continue
                if task is None or number != int(tasks[begin]):
                    task, number = Admitting(rules), int(tasks[begin])
                yield task.admit(batch.slice(begin, end - begin))

    return admit


class Admitting:
    """One task, as far as its log was read."""

    def __init__(self, rules: AdmissionRules) -> None:
        self._rules = rules
        self._clock = _MIN
        self._accepted = 0
        # Which acceptance each id last was, told by the number of its first event: only of ids that come again.
        self._seen: dict[int, int] = {}

    def admit(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The next events of the task, in order."""
        times = batch.column(EVENT_MS).to_numpy()
        if batch.column(_FIRST).null_count == len(batch):
            clocks, accepted, late = self._unrepeated(times)
            duplicate: NDArray[np.bool_] = np.zeros(len(batch), np.bool_)
        else:
            clocks, accepted, late, duplicate = self._one_by_one(times, batch)
        word = "discarded" if self._rules.discard else "rewritten"
        is_accepted = ~duplicate & ~(late & self._rules.discard)
        names = [name for name in batch.schema.names if name not in (EVENT_MS, _FIRST, _LAST)]
        arrays = [batch.column(name) for name in names]
        arrays += [
            pa.array(clocks),
            pa.array(accepted, mask=~is_accepted),
            pa.array(np.where(late, word, ""), pa.string(), mask=~late),
            pa.array(duplicate),
        ]
        return pa.RecordBatch.from_arrays(arrays, names=[*names, CLOCK, ACCEPTED_MS, LATE, DUPLICATE])

    def _unrepeated(
        self, times: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
        """Events whose ids come once: late ones never move the clock, so it is the running maximum."""
        clocks = np.maximum.accumulate(np.concatenate([[self._clock], times]).astype(np.int64))
        before = clocks[:-1]
        # Before the first event, and where the difference would leave 64 bits, there is no floor.
        has_floor = before > _MIN + self._rules.lateness_ms
        floors = np.where(has_floor, before, 0) - self._rules.lateness_ms
        late = has_floor & (times < floors)
        self._clock = int(clocks[-1])
        self._accepted += len(times) - (int(late.sum()) if self._rules.discard else 0)
        return clocks[1:], np.where(late, floors, times), late

    def _one_by_one(
        self, times: NDArray[np.int64], batch: pa.RecordBatch
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_], NDArray[np.bool_]]:
        n, rules, seen = len(times), self._rules, self._seen
        clocks, accepted = np.empty(n, np.int64), np.empty(n, np.int64)
        late, duplicate = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
        firsts, lasts = batch.column(_FIRST).to_pylist(), batch.column(_LAST).to_pylist()
        numbers = batch.column(NUMBER).to_pylist()
        for row, time in enumerate(times.tolist()):
            first = firsts[row]
            known = None if first is None else seen.get(first)
            duplicate[row] = known is not None and known > self._accepted - rules.dedup_events
            if not duplicate[row]:
                floor = self._clock - rules.lateness_ms
                late[row] = self._clock > _MIN and time < floor
                at = max(time, floor) if late[row] else time
                if not (late[row] and rules.discard):
                    accepted[row] = at
                    self._clock = max(self._clock, at)
                    self._accepted += 1
                    if first is not None:
                        seen[first] = self._accepted
            clocks[row] = self._clock
            if first is not None and lasts[row] == numbers[row]:
                seen.pop(first, None)
        self._forget()
        return clocks, accepted, late, duplicate

    def _forget(self) -> None:
        """Let ids go that are beyond the horizon, now and then."""
        if len(self._seen) > 2 * self._rules.dedup_events:
            least = self._accepted - self._rules.dedup_events
            self._seen = {first: place for first, place in self._seen.items() if place > least}
