"""Partitions of a backlog are read by event time: none far ahead of the slowest, and all to their end."""

import math
import random
from collections.abc import Sequence

import pytest

from frontend.topics.alignment import (
    NOTHING_COMES_S,
    SILENT_S,
    Acknowledged,
    Chunk,
    Partition,
    Standing,
    limit_ms,
)

Record = tuple[int, int | None]
"""The offset and the event time of a record."""


@pytest.mark.parametrize(
    ("standings", "limit"),
    [
        ([], math.inf),
        ([Standing(5, False, 0.0), Standing(None, False, 0.0)], math.inf),
        ([Standing(500, True, 0.0), Standing(700, True, 0.0), Standing(3, False, 0.0)], 510),
        ([Standing(500, True, 0.0), Standing(None, True, 0.0)], -math.inf),
        ([Standing(500, True, -SILENT_S - 1), Standing(700, True, 0.0)], 710),
        ([Standing(None, True, -SILENT_S - 1)], math.inf),
        ([Standing(2**62, True, 0.0)], 2**62 + 10),
    ],
)
def test_the_slowest_that_is_behind_sets_the_limit(standings: list[Standing], limit: float) -> None:
    assert limit_ms(standings, 10, 0.0) == limit


def chunk(*times: int | None, first: int = 0) -> Chunk[Record, str]:
    records: list[Record] = list(enumerate(times, first))
    return Chunk(records, times, "whole", 10 * len(times))


def nothing(*, waits: bool = False) -> Acknowledged:
    return Acknowledged(-1, None, waits)


def taken(partition: Partition[Record, str], limit: float) -> list[tuple[list[int | None], str | None]]:
    return [([time for _, time in records], made) for records, made in partition.take(limit)]


def test_records_are_taken_in_order_up_to_the_limit() -> None:
    partition: Partition[Record, str] = Partition(0, 0.0)
    partition.add(chunk(1, 3, 2), 0.0)
    partition.add(chunk(4, None, 9, 5), 0.0)
    assert partition.size_bytes == 70
    assert taken(partition, 0) == []
    assert taken(partition, 3) == [([1, 3, 2], "whole")]
    assert taken(partition, 8) == [([4, None], None)]
    # What has a later time keeps those behind it back.
    assert partition.size_bytes == 20
    assert taken(partition, 8) == []
    assert taken(partition, math.inf) == [([9, 5], None)]
    assert (partition.size_bytes, taken(partition, math.inf)) == (0, [])


def test_records_without_a_time_wait_for_nobody() -> None:
    partition: Partition[Record, str] = Partition(0, 0.0)
    partition.add(chunk(None, None), 0.0)
    assert taken(partition, -math.inf) == [([None, None], "whole")]


def test_what_is_on_its_way_counts_once_it_is_settled() -> None:
    partition: Partition[Record, str] = Partition(0, 0.0)
    partition.look(nothing(), 100, 0.0)
    assert partition.standing(0.0) == Standing(None, True, 0.0)
    partition.add(chunk(50, 60, 70, first=0), 0.0)
    partition.look(nothing(), 100, 0.0)
    assert partition.time_ms == 50
    assert taken(partition, 60) == [([50, 60], None)]
    partition.look(nothing(waits=True), 100, 0.0)
    assert partition.time_ms == 50
    partition.look(Acknowledged(2, 60, False), 100, 0.0)
    assert partition.time_ms == 70, "nothing is on its way, so the next one is how far it is"
    assert taken(partition, 70) == [([70], None)]
    partition.look(Acknowledged(2, 60, True), 100, 0.0)
    assert partition.time_ms == 70


def test_a_partition_is_behind_until_it_reaches_the_end_that_it_had() -> None:
    partition: Partition[Record, str] = Partition(5, 0.0)
    partition.look(nothing(), -1, 0.0)
    partition.look(nothing(), 7, 0.0)
    partition.look(nothing(), 9, 0.0)
    assert (partition.is_behind, partition.end) == (True, 7)
    partition.add(chunk(1, 2, first=5), 0.0)
    assert taken(partition, math.inf)
    partition.look(nothing(waits=True), 9, 0.0)
    assert partition.is_behind
    partition.look(Acknowledged(7, 2, False), 9, 0.0)
    assert not partition.is_behind


def test_a_partition_without_records_is_at_its_end() -> None:
    empty: Partition[Record, str] = Partition(5, 0.0)
    empty.look(nothing(), 5, 0.0)
    assert not empty.is_behind


def test_a_partition_of_which_nothing_comes_holds_up_nobody() -> None:
    """Its leader is away, or the rest of it are marks of transactions."""
    partition: Partition[Record, str] = Partition(0, 0.0)
    partition.look(nothing(), 7, NOTHING_COMES_S)
    assert partition.is_behind
    partition.add(chunk(1), NOTHING_COMES_S)
    partition.look(nothing(), 7, 5 * NOTHING_COMES_S)
    assert partition.is_behind, "it has a record that waits for others"
    assert taken(partition, math.inf)
    partition.look(nothing(waits=True), 7, 9 * NOTHING_COMES_S)
    assert partition.is_behind, "one is on its way"
    partition.look(Acknowledged(1, 1, False), 7, 9.5 * NOTHING_COMES_S)
    assert partition.is_behind
    partition.look(Acknowledged(1, 1, False), 7, 10.5 * NOTHING_COMES_S)
    assert not partition.is_behind


class Reader:
    """Reads one partition in parts of random sizes, publishes, and has it settled some steps later."""

    def __init__(self, times: Sequence[int | None], chosen: random.Random) -> None:
        self.partition: Partition[Record, str] = Partition(0, 0.0)
        self._left: list[Record] = list(enumerate(times))
        self._end, self._chosen = len(times), chosen
        self._under_way: list[Record] = []
        self.published: list[Record] = []
        self._settled = Acknowledged(-1, None, False)

    def read(self) -> None:
        part, self._left = self._left[: (n := self._chosen.randrange(9))], self._left[n:]
        if part:
            self.partition.add(Chunk(part, [time for _, time in part], "whole", 1), 0.0)

    def settle(self) -> None:
        for offset, time in self._under_way[: self._chosen.randrange(9)]:
            self._under_way.pop(0)
            before = self._settled.time_ms
            latest = before if time is None else time if before is None else max(before, time)
            self._settled = Acknowledged(offset + 1, latest, False)
        self.partition.look(self._settled._replace(is_waiting=bool(self._under_way)), self._end, 0.0)

    def publish(self, limit: float) -> list[Record]:
        new = [record for records, _ in self.partition.take(limit) for record in records]
        self.published += new
        self._under_way += new
        return new


@pytest.mark.parametrize("seed", range(40))
def test_no_event_of_a_backlog_is_late(seed: int) -> None:
    """Each partition is in order but for a disorder of its own; they differ in length, pace and gaps."""
    chosen = random.Random(seed)
    slack = chosen.choice((0, 1, 50, 1_000))
    readers = []
    for _ in range(chosen.randrange(1, 7)):
        time, times = chosen.randrange(10_000), []
        for _ in range(chosen.randrange(120)):
            time += chosen.choice((0, 1, 5, chosen.randrange(2_000)))
            times.append(None if chosen.random() < 0.1 else time - chosen.randrange(slack + 1))
        readers.append(Reader(times, chosen))
    clock = -math.inf
    steps = 0
    while any(each.partition.is_behind for each in readers):
        steps += 1
        assert steps < 100_000, "some wait for each other"
        each = chosen.choice(readers)
        each.read()
        each.settle()
        limit = limit_ms((other.partition.standing(0.0) for other in readers), slack, 0.0)
        for _, at in each.publish(limit):
            if at is not None:
                assert at >= clock - 2 * slack, "late"
                clock = max(clock, at)
    for each in readers:
        assert [offset for offset, _ in each.published] == list(range(each._end))
