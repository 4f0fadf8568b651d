"""Admission apart from the engine: clocks, lateness, duplicates and partitions as the oracle has them."""

import random

import pyarrow as pa
import pytest

from railgun.spark.validation.admission import (
    ACCEPTED_MS,
    CLOCK,
    DUPLICATE,
    LATE,
    REDELIVERED,
    AdmissionRules,
    Admitting,
    Lateness,
)
from railgun.spark.validation.run_source import EVENT_MS, NUMBER, partition_numbers
from tests.oracle.definitions import Stream
from tests.oracle.murmur2 import partition
from tests.oracle.records import EventRecord, Position, SetLateness
from tests.oracle.task import Task

EXTREMES = (-(1 << 63) + 1, (1 << 63) - 1)


def logged(ids: list[int], times: list[int]) -> pa.Table:
    """The events with what the join over ids adds: the first and last number of those that come again."""
    firsts: dict[int, int] = {}
    lasts: dict[int, int] = {}
    for number, each in enumerate(ids):
        firsts.setdefault(each, number)
        lasts[each] = number
    again = [firsts[each] < lasts[each] for each in ids]
    return pa.table(
        {
            EVENT_MS: pa.array(times, pa.int64()),
            "first_n": pa.array([firsts[i] if a else None for i, a in zip(ids, again)], pa.int64()),
            "last_n": pa.array([lasts[i] if a else None for i, a in zip(ids, again)], pa.int64()),
            NUMBER: pa.array(range(len(ids)), pa.int64()),
        }
    )


@pytest.mark.parametrize("seed", range(40))
def test_a_task_admits_as_the_oracle_does(seed: int) -> None:
    source = random.Random(seed)
    n, lateness = 120, source.choice((0, 3, 20, 1000))
    policy, dedup = source.choice(("rewrite", "discard")), source.choice((1, 2, 5, 1_000_000))
    ids = [source.randrange(source.choice((5, 40, 10**9))) for _ in range(n)]
    times = [number * 2 + source.randrange(-30, 30) for number in range(n)]
    if seed % 5 == 0:
        times[source.randrange(n)] = source.choice(EXTREMES)
    task = Task(Stream("s", {}, lateness_ms=lateness, late_policy=policy, dedup_events=dedup))
    admitting = Admitting(AdmissionRules(Lateness(-1, lateness, policy == "discard"), dedup))
    table, got = logged(ids, times), []
    while len(got) < n:
        cut = table.slice(len(got), source.randrange(1, 50)).combine_chunks().to_batches()[0]
        got += [row for batch in admitting.admit(cut) for row in batch.to_pylist()]
    for number, (each, time, row) in enumerate(zip(ids, times, got)):
        before = len(task.accepted)
        reply = task.apply(EventRecord(each, time, {}))
        assert reply is not None
        accepted = task.accepted[-1].time if len(task.accepted) > before else None
        assert (row[CLOCK], row[ACCEPTED_MS], row[LATE], row[DUPLICATE]) == (
            task.clock,
            accepted,
            reply.late,
            reply.duplicate,
        ), f"event {number}"


@pytest.mark.parametrize("seed", range(40))
def test_settings_change_and_records_of_input_come_again(seed: int) -> None:
    source = random.Random(seed)
    n, dedup = 150, source.choice((1, 3, 1_000))
    task = Task(Stream("s", {}, lateness_ms=10, late_policy="rewrite", dedup_events=dedup))
    changes = {number: source.choice((0, 5, 60)) for number in range(n) if source.random() < 0.06}
    positions = [source.randrange(max(1, number - 9), number + 2) for number in range(n)]
    committed = [max(0, number - source.randrange(4, 15)) for number in range(n)]
    ids, times = positions, [2 * each + each % 7 - 3 for each in positions]
    inputs = {
        "input_partition": [each % 2 if each % 5 else -1 for each in positions],
        "input_offset": positions,
        "input_committed": committed,
    }
    table = logged(ids, times)
    for name, values in inputs.items():
        table = table.append_column(name, pa.array(values, pa.int64()))
    rows = [number for number in range(n) if number not in changes]
    later = [Lateness(number, lateness, False) for number, lateness in changes.items()]
    admitting = Admitting(AdmissionRules(Lateness(-1, 10, False), dedup, {0: later}))
    chosen, got = table.take(rows), list[dict[str, object]]()
    while len(got) < len(rows):
        cut = chosen.slice(len(got), source.randrange(1, 50)).combine_chunks().to_batches()[0]
        got += [row for batch in admitting.admit(cut) for row in batch.to_pylist()]
    found = dict(zip(rows, got))
    for number, (each, time) in enumerate(zip(ids, times)):
        if number in changes:
            task.apply(SetLateness(changes[number]))
            continue
        before, partition = len(task.accepted), inputs["input_partition"][number]
        position = None if partition < 0 else Position(partition, each, committed[number])
        known = position is not None and (partition, each) in task.answered
        reply = task.apply(EventRecord(each, time, {}, position=position))
        assert reply is not None
        accepted = task.accepted[-1].time if len(task.accepted) > before else None
        row = found[number]
        assert (row[CLOCK], row[ACCEPTED_MS]) == (task.clock, accepted), f"record {number}"
        if not row[REDELIVERED]:
            assert (row[LATE], row[DUPLICATE]) == (reply.late, reply.duplicate), f"record {number}"
        assert row[REDELIVERED] == (known and not reply.duplicate) or reply.duplicate, f"record {number}"


def test_ids_beyond_the_horizon_are_forgotten() -> None:
    admitting = Admitting(AdmissionRules(Lateness(-1, 0, False), 10))
    ids = [number // 2 for number in range(2_000)]
    source = random.Random(1)
    source.shuffle(ids)
    for batch in logged(ids, list(range(2_000))).to_batches(max_chunksize=50):
        list(admitting.admit(batch))
        assert len(admitting._seen) <= 2 * 10 + 50


@pytest.mark.parametrize("partitions", [1, 2, 7, 100])
def test_partitions_are_kafkas(partitions: int) -> None:
    texts = [None, "", "a", "ab", "abc", "abcd", "žluťoučký", "\U0001f600" * 3, "x" * 1001]
    longs = [None, 0, -1, 7, (1 << 63) - 1, -(1 << 63)]
    for values, type_ in ((texts, pa.string()), (longs, pa.int64())):
        got = partition_numbers(pa.array(values, type_), partitions).to_pylist()
        assert got == [None if value is None else partition(value, partitions) for value in values]


def test_a_floor_that_was_there_before_stays() -> None:
    """What an event is behind a deepening: late as before, though by the lateness in force it would not be."""
    change = Lateness(2, 100, False, floor_ms=45)
    admitting = Admitting(AdmissionRules(Lateness(-1, 100, False), 10, {0: [change]}))
    (*_, batch) = admitting.admit(logged([1, 2, 3, 4], [50, 20, 20, 46]).to_batches()[0])
    assert batch.column(ACCEPTED_MS).to_pylist() == [45, 46]
    assert batch.column(LATE).to_pylist() == ["rewritten", None]
