"""Admission apart from the engine: clocks, lateness, duplicates and partitions as the oracle has them."""

import random

import pyarrow as pa
import pytest

from railgun.spark.admission import (
    ACCEPTED_MS,
    CLOCK,
    DUPLICATE,
    LATE,
    AdmissionRules,
    Admitting,
    Lateness,
)
from railgun.spark.partitioning import partition_numbers
from railgun.spark.run_source import EVENT_MS, NUMBER
from tests.oracle.definitions import Stream
from tests.oracle.murmur2 import partition
from tests.oracle.records import EventRecord
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
