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
    Limits,
    Partition,
    Standing,
    late_before_ms,
    limits,
)

Record = tuple[int, int | None]
"""The offset and the event time of a record."""


@pytest.mark.parametrize(
    ("standings", "others_ms", "slowest_ms"),
    [
        ([], math.inf, math.inf),
        ([Standing(5, False, 0.0), Standing(None, False, 0.0)], math.inf, math.inf),
        ([Standing(500, True, 0.0), Standing(700, True, 0.0), Standing(490, False, 0.0)], 510, 710),
        ([Standing(700, True, 0.0), Standing(500, True, 0.0), Standing(600, True, 0.0)], 510, 610),
        ([Standing(500, True, 0.0), Standing(None, True, 0.0)], -math.inf, 510),
        ([Standing(None, True, 0.0), Standing(None, True, 0.0)], -math.inf, -math.inf),
        ([Standing(500, True, -SILENT_S - 1), Standing(700, True, 0.0)], 710, math.inf),
        ([Standing(None, True, -SILENT_S - 1)], math.inf, math.inf),
        ([Standing(2**62, True, 0.0)], 2**62 + 10, math.inf),
    ],
)
def test_the_slowest_that_is_behind_sets_the_limit_of_the_others(
    standings: list[Standing], others_ms: float, slowest_ms: float
) -> None:
    found = limits(dict(enumerate(standings)), 20, 0.0)
    assert (found.others_ms, found.slowest_ms) == (others_ms, slowest_ms)
    assert found.of(found.slowest) == slowest_ms
    assert found.of(len(standings)) == others_ms


@pytest.mark.parametrize(
    ("standings", "late_ms"),
    [
        ([], -math.inf),
        ([Standing(500, True, 0.0), Standing(None, False, 0.0)], -math.inf),
        ([Standing(900, True, 0.0), Standing(500, False, 0.0), Standing(400, False, 0.0)], 480),
    ],
)
def test_what_is_late_already(standings: list[Standing], late_ms: float) -> None:
    assert late_before_ms(standings, 20) == late_ms


def test_nobody_waits_for_a_partition_whose_events_are_late_already() -> None:
    """A topic with years of history that is added to a live stream, say."""
    partition = partition_of(7)
    partition.add(chunk(50, 60), 0.0)
    partition.look(nothing(), 0.0, 50)
    assert partition.standing(0.0).is_behind
    partition.look(nothing(), 0.0, 51)
    assert not partition.standing(0.0).is_behind
    assert taken(partition, 60)
    partition.look(nothing(waits=True), 0.0, 51)
    assert partition.standing(0.0).is_behind, "it has caught up"


def chunk(*times: int | None, first: int = 0) -> Chunk[Record, str]:
    records: list[Record] = list(enumerate(times, first))
    return Chunk(records, times, "whole", 10 * len(times))


def nothing(*, waits: bool = False) -> Acknowledged:
    return Acknowledged(-1, None, waits)


def taken(
    partition: Partition[Record, str], limit: float, lead_ms: int = 0
) -> list[tuple[list[int | None], str | None]]:
    return [([time for _, time in records], made) for records, made in partition.take(limit, lead_ms)]


def test_records_are_taken_in_order_up_to_the_limit() -> None:
    partition: Partition[Record, str] = Partition(0.0)
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


def test_what_was_read_together_is_not_taken_in_parts_if_all_of_it_can_go_at_once() -> None:
    partition: Partition[Record, str] = Partition(0.0)
    partition.add(chunk(3, None, 8, 4), 0.0)
    assert taken(partition, 7, 5) == []
    assert taken(partition, 7, 4) == [([3, None], None)]
    partition.add(chunk(9, 10), 0.0)
    assert taken(partition, 9, 5) == [([8, 4], None)]
    assert taken(partition, 10, 5) == [([9, 10], "whole")]
    assert partition.published_ms == 10


def test_records_without_a_time_wait_for_nobody() -> None:
    partition: Partition[Record, str] = Partition(0.0)
    partition.add(chunk(None, None), 0.0)
    assert taken(partition, -math.inf) == [([None, None], "whole")]


def partition_of(end: int, begin: int = 0) -> Partition[Record, str]:
    found: Partition[Record, str] = Partition(0.0, end=end)
    found.start(begin, 0.0)
    return found


def test_what_is_on_its_way_counts_here_and_once_it_is_settled_elsewhere() -> None:
    partition = partition_of(100)
    partition.look(nothing(), 0.0)
    assert partition.standing(0.0) == partition.standing_here(0.0) == Standing(None, True, 0.0)
    partition.add(chunk(50, 60, 70, first=0), 0.0)
    partition.look(nothing(), 0.0)
    assert (partition.standing(0.0).time_ms, partition.standing_here(0.0).time_ms) == (50, 50)
    assert taken(partition, 60) == [([50, 60], None)]
    partition.look(nothing(waits=True), 0.0)
    assert (partition.standing(0.0).time_ms, partition.standing_here(0.0).time_ms) == (50, 70)
    partition.look(Acknowledged(2, 60, False), 0.0)
    assert partition.standing(0.0).time_ms == 70, "nothing is on its way, so the next one is how far it is"
    assert taken(partition, 70) == [([70], None)]
    partition.look(Acknowledged(2, 60, True), 0.0)
    assert (partition.standing(0.0).time_ms, partition.standing_here(0.0).time_ms) == (70, 70)


def test_a_partition_is_behind_until_it_reaches_the_end_that_it_had() -> None:
    """Also where there is always more on its way, and waits."""
    partition = partition_of(7, begin=5)
    partition.look(nothing(), 0.0)
    assert partition.standing(0.0).is_behind
    partition.add(chunk(1, 2, 3, 4, first=5), 0.0)
    partition.look(Acknowledged(6, 1, True), 0.0)
    assert partition.standing(0.0).is_behind
    partition.look(Acknowledged(7, 2, True), 0.0)
    assert partition.standing(0.0) == Standing(2, False, 0.0)


def test_a_partition_without_records_is_at_its_end() -> None:
    empty = partition_of(5, begin=5)
    empty.look(nothing(), 0.0)
    assert not empty.standing(0.0).is_behind


def test_a_partition_whose_position_is_not_known_is_waited_for() -> None:
    """Another front-end's transaction over it is open, say. It is not at its end, whatever that is."""
    partition: Partition[Record, str] = Partition(0.0, end=0)
    partition.look(nothing(), 2 * NOTHING_COMES_S)
    assert partition.standing(2 * NOTHING_COMES_S).is_behind
    assert not partition.standing(SILENT_S + 1).is_behind
    partition.start(0, SILENT_S + 2)
    partition.look(nothing(), SILENT_S + 2)
    assert partition.is_at_end


def test_a_partition_of_which_nothing_comes_holds_up_nobody_until_its_next_record() -> None:
    """Its leader is away, or the rest of it are marks of transactions."""
    partition, now_s = partition_of(7), NOTHING_COMES_S
    assert partition.standing(now_s).is_behind
    assert not partition.standing(now_s + 0.1).is_behind
    partition.add(chunk(1), 2 * now_s)
    assert partition.standing(8 * now_s).is_behind, "it has a record that waits for others"
    assert taken(partition, math.inf)
    partition.look(nothing(waits=True), 9 * now_s)
    assert partition.standing(10 * now_s).is_behind, "one is on its way"
    partition.look(Acknowledged(1, 1, False), 9.5 * now_s)
    assert partition.standing(10 * now_s).is_behind
    assert not partition.standing(10.5 * now_s).is_behind
    partition.add(chunk(2), 11 * now_s)
    assert partition.standing(11 * now_s).is_behind


def test_a_time_in_which_nothing_is_read_is_left_out() -> None:
    """Units are away for a minute, say: no partition has come to its end by that."""
    partition, now_s = partition_of(7), 2 * NOTHING_COMES_S
    assert not partition.standing(now_s).is_behind
    partition.rested(1.5 * NOTHING_COMES_S)
    assert partition.standing(now_s).is_behind


class Reader:
    """Reads one partition in parts of random sizes, publishes, and has it settled some steps later."""

    def __init__(self, times: Sequence[int | None], chosen: random.Random) -> None:
        self.partition = partition_of(len(times))
        self._left: list[Record] = list(enumerate(times))
        self._end, self._chosen = len(times), chosen
        self._under_way: list[Record] = []
        self.published: list[Record] = []
        self._settled = Acknowledged(-1, None, False)

    def read(self) -> None:
        part, self._left = self._left[: (n := self._chosen.randrange(9))], self._left[n:]
        if part:
            self.partition.add(Chunk(part, [time for _, time in part], "whole", 1), 0.0)

    def settle(self, late_ms: float) -> None:
        for offset, time in self._under_way[: self._chosen.randrange(9)]:
            self._under_way.pop(0)
            before = self._settled.time_ms
            latest = before if time is None else time if before is None else max(before, time)
            self._settled = Acknowledged(offset + 1, latest, False)
        settled = self._settled._replace(is_waiting=bool(self._under_way))
        self.partition.look(settled, 0.0, late_ms)

    def publish(self, here: int, limits: Limits[int]) -> list[Record]:
        taken = self.partition.take(limits.of(here), limits.lead_ms)
        new = [record for records, _ in taken for record in records]
        self.published += new
        self._under_way += new
        return new


@pytest.mark.parametrize("seed", range(40))
def test_no_event_of_a_backlog_is_late(seed: int) -> None:
    """Each partition is in order but for a disorder of its own; they differ in length, pace and gaps. Some are read by
    one front-end, others by another one.
    """
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
    while not all(each.partition.is_at_end for each in readers):
        steps += 1
        assert steps < 100_000, "some wait for each other"
        here = chosen.randrange(len(readers))
        each = readers[here]
        each.read()
        each.settle(late_before_ms((other.partition.standing(0.0) for other in readers), 2 * slack))
        standings = {
            there: other.partition.standing_here(0.0)
            if (there - here) % 2 == 0
            else other.partition.standing(0.0)
            for there, other in enumerate(readers)
        }
        for _, at in each.publish(here, limits(standings, 2 * slack, 0.0)):
            if at is not None:
                assert at >= clock - 2 * slack, "late"
                clock = max(clock, at)
    for each in readers:
        assert [offset for offset, _ in each.published] == list(range(each._end))
