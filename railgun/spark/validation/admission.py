"""Computes a second time, without the engine's code, which events each task had to accept, and at which times.

That is a task's admission: its duplicates, late events and clock, by the rules of docs/semantics.md, in the order of
its log. Validation computes all results from it, and compares them with the engine's. Spark's functions cannot express
this part, because the admission of an event depends on that of all events before it. So Python does it in executors.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, LongType, StringType, StructField, StructType

from railgun.catalog.model import LatePolicy, StreamDefinition
from railgun.spark.validation.redelivery import INPUT_COLUMNS, InputPositions
from railgun.spark.validation.run_source import EVENT_ID, EVENT_MS, NUMBER

TASK, CLOCK, ACCEPTED_MS = "task", "clock", "accepted"
LATE, DUPLICATE, REDELIVERED, ANSWERED = "is_late", "is_duplicate", "is_redelivered", "is_answered"
_FIRST, _LAST = "first_n", "last_n"

_MIN = -(1 << 63)


@dataclass(frozen=True, slots=True)
class Lateness:
    """The lateness in force from the record with this number on.

    discard: whether late events are discarded, not rewritten to the floor.
    floor_ms: the floor is at least this from that record on. Events before the floor are late.
    """

    number: int
    lateness_ms: int
    discard: bool
    floor_ms: int = _MIN

    @classmethod
    def of(cls, number: int, stream: StreamDefinition) -> "Lateness":
        """Return the lateness of a stream's definition."""
        return cls(number, stream.lateness_ms, stream.late_policy is LatePolicy.DISCARD)


@dataclass(frozen=True, slots=True)
class AdmissionRules:
    """A stream's settings for admission.

    first: the lateness at the beginning of each log.
    dedup_events: how many accepted events back a task knows an id again.
    changes: by task, the later settings of lateness in order.
    """

    first: Lateness
    dedup_events: int
    changes: Mapping[int, Sequence[Lateness]] = field(default_factory=dict)

    @classmethod
    def of(cls, stream: StreamDefinition) -> "AdmissionRules":
        """Return the rules of a stream that never changed."""
        return cls(Lateness.of(-1, stream), stream.dedup_events)


def admitted(events: DataFrame, rules: AdmissionRules, tasks: int) -> DataFrame:
    """Return the events of one partitioner's tasks, with the outcome of their admission.

    events: with TASK, NUMBER (the order in the task), EVENT_ID and EVENT_MS, and INPUT_COLUMNS if they may come from an
    input topic. Other columns are kept.
    tasks: the number of tasks.

    These columns are added: CLOCK, the task's clock after the event; ACCEPTED_MS, the time at which the event was
    accepted, null if it was not; LATE, "rewritten" or "discarded"; DUPLICATE. With INPUT_COLUMNS also REDELIVERED, for
    a record of an input topic that was read before, whose reply is the first one; and ANSWERED, for one whose position
    in the input topic was committed before.

    An executor holds a batch, and an entry for each id within the horizon that comes again.
    """
    repeated = (
        events.groupBy(TASK, EVENT_ID)
        .agg(F.min(NUMBER).alias(_FIRST), F.max(NUMBER).alias(_LAST))
        .where(F.col(_FIRST) < F.col(_LAST))
    )
    kept = [name for name in events.columns if name not in (EVENT_ID, EVENT_MS)]
    columns = [EVENT_MS, _FIRST, _LAST, EVENT_ID, *kept]
    if repeated.isEmpty():
        never = {_FIRST: F.lit(None).cast(LongType()), _LAST: F.lit(None).cast(LongType())}
        alone = events.withColumns(never).select(*columns)
        # Events that one process reads anyway are not shuffled.
        divided = alone.coalesce(1) if tasks == 1 else alone.repartition(TASK)
    else:
        divided = events.join(repeated, [TASK, EVENT_ID], "left").select(*columns).repartition(TASK)
    ordered = divided.sortWithinPartitions(TASK, NUMBER)
    added = [
        StructField(CLOCK, LongType()),
        StructField(ACCEPTED_MS, LongType()),
        StructField(LATE, StringType()),
        StructField(DUPLICATE, BooleanType()),
    ]
    if INPUT_COLUMNS[0] in kept:
        added += [StructField(REDELIVERED, BooleanType()), StructField(ANSWERED, BooleanType())]
    fields = [each for each in ordered.schema if each.name not in _CONSUMED]
    made = ordered.mapInArrow(_admitting(rules), StructType(fields + added))
    # All cores continue with the result: a single partition would stay a single one in all windows computed from it.
    return made.repartition(NUMBER) if tasks == 1 else made


_CONSUMED = (EVENT_MS, _FIRST, _LAST, *INPUT_COLUMNS)


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
                    number = int(tasks[begin])
                    task = Admitting(rules, number)
                yield from task.admit(batch.slice(begin, end - begin))

    return admit


@dataclass(slots=True)
class _Outcome:
    """Arrays with a value per event: clock after it, accepted time, whether it is late, duplicate, redelivered."""

    clocks: NDArray[np.int64]
    accepted: NDArray[np.int64]
    late: NDArray[np.bool_]
    duplicate: NDArray[np.bool_]
    redelivered: NDArray[np.bool_]


class Admitting:
    """The admission of one task, up to where its log was read."""

    def __init__(self, rules: AdmissionRules, task: int = 0) -> None:
        self._dedup_events = rules.dedup_events
        self._in_force, self._to_come = rules.first, list(rules.changes.get(task, ()))
        self._clock = _MIN
        # The greatest floor of an earlier lateness.
        self._floor = _MIN
        self._accepted = 0
        # By the number of an id's first event, the count of its last acceptance. Only for ids that come again.
        self._seen: dict[int, int] = {}
        self._inputs = InputPositions()

    def admit(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Admit the next events of the task, in order. Yields them with the outcome."""
        numbers = batch.column(NUMBER).to_numpy()
        while len(batch):
            while self._to_come and self._to_come[0].number <= numbers[0]:
                self._change(self._to_come.pop(0))
            end = int(np.searchsorted(numbers, self._to_come[0].number)) if self._to_come else len(batch)
            yield self._admit(batch.slice(0, end))
            batch, numbers = batch.slice(end), numbers[end:]

    def _change(self, change: Lateness) -> None:
        """Apply a changed setting at its record. The floor is computed again there, and never lowered."""
        if self._clock > _MIN:
            before, now = self._in_force.lateness_ms, change.lateness_ms
            self._floor = max(self._floor, self._clock - before, self._clock - now)
        self._floor = max(self._floor, change.floor_ms)
        self._in_force = change

    def _admit(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        times = batch.column(EVENT_MS).to_numpy()
        answered = self._inputs.answered(batch)
        if batch.column(_FIRST).null_count == len(batch) and not answered.any():
            found = self._unrepeated(times)
        else:
            found = self._one_by_one(times, answered, batch)
        discard = self._in_force.discard
        is_accepted = ~found.duplicate & ~found.redelivered & ~(found.late & discard)
        names = [name for name in batch.schema.names if name not in _CONSUMED]
        word = "discarded" if discard else "rewritten"
        added = {
            CLOCK: pa.array(found.clocks),
            ACCEPTED_MS: pa.array(found.accepted, mask=~is_accepted),
            LATE: pa.array(np.where(found.late, word, ""), pa.string(), mask=~found.late),
            DUPLICATE: pa.array(found.duplicate),
        }
        if INPUT_COLUMNS[0] in batch.schema.names:
            added |= {REDELIVERED: pa.array(found.redelivered), ANSWERED: pa.array(answered)}
        arrays = [batch.column(name) for name in names] + list(added.values())
        return pa.RecordBatch.from_arrays(arrays, names=[*names, *added])

    def _unrepeated(self, times: NDArray[np.int64]) -> _Outcome:
        """Admit events whose ids come once. Late ones never move the clock, so the clock is the running maximum."""
        clocks = np.maximum.accumulate(np.concatenate([[self._clock], times]).astype(np.int64))
        before, lateness_ms = clocks[:-1], self._in_force.lateness_ms
        # There is no floor before the first event, and where the difference would not fit into 64 bits.
        has_floor = before > _MIN + lateness_ms
        floors = np.maximum(np.where(has_floor, before - lateness_ms * has_floor, _MIN), self._floor)
        late = times < floors
        self._clock = int(clocks[-1])
        self._accepted += len(times) - (int(late.sum()) if self._in_force.discard else 0)
        no = np.zeros(len(times), np.bool_)
        return _Outcome(clocks[1:], np.where(late, floors, times), late, no, no)

    def _one_by_one(
        self, times: NDArray[np.int64], answered: NDArray[np.bool_], batch: pa.RecordBatch
    ) -> _Outcome:
        n, seen, discard = len(times), self._seen, self._in_force.discard
        found = _Outcome(
            np.empty(n, np.int64), np.empty(n, np.int64), *(np.zeros(n, np.bool_) for _ in range(3))
        )
        firsts, lasts = batch.column(_FIRST).to_pylist(), batch.column(_LAST).to_pylist()
        numbers, positions = batch.column(NUMBER).to_pylist(), self._inputs.positions(batch)
        for row, time in enumerate(times.tolist()):
            first = firsts[row]
            known = None if first is None else seen.get(first)
            if first is not None and not answered[row]:
                found.redelivered[row] = self._inputs.meet(positions[row])
            found.duplicate[row] = answered[row] or (
                known is not None and known > self._accepted - self._dedup_events
            )
            if found.redelivered[row]:
                found.duplicate[row] = False
            elif not found.duplicate[row]:
                floor = self._floor
                if self._clock > _MIN:
                    floor = max(floor, self._clock - self._in_force.lateness_ms)
                found.late[row] = time < floor
                if not (found.late[row] and discard):
                    found.accepted[row] = at = max(time, floor)
                    self._clock = max(self._clock, at)
                    self._accepted += 1
                    if first is not None:
                        seen[first] = self._accepted
            found.clocks[row] = self._clock
            if first is not None and lasts[row] == numbers[row]:
                seen.pop(first, None)
        self._forget()
        return found

    def _forget(self) -> None:
        """Remove ids beyond the horizon, from time to time."""
        if len(self._seen) > 2 * self._dedup_events:
            least = self._accepted - self._dedup_events
            self._seen = {first: place for first, place in self._seen.items() if place > least}
