"""Made ids: UUIDs of version 7, in the order of their making, one by one and by columns."""

import uuid

import numpy as np
import pytest

from railgun.ingest.ids import IdMaker, PositionIds


def test_an_id_is_a_uuid_of_version_7_with_its_time() -> None:
    made = uuid.UUID(IdMaker().next(1_700_000_000_123))
    assert (made.version, made.variant) == (7, uuid.RFC_4122)
    assert made.int >> 80 == 1_700_000_000_123


@pytest.mark.parametrize("clock", [[5, 5, 5, 6], [9, 3, 1, 9], [0, 0]])
def test_ids_grow_whatever_the_clock_does(clock: list[int]) -> None:
    maker = IdMaker()
    made: list[str] = []
    for now_ms in clock:
        made.append(maker.next(now_ms))
        column = maker.column(now_ms, 300)
        made += [column.string(row) for row in range(300)]
    assert made == sorted(set(made))
    assert {(uuid.UUID(each).version, uuid.UUID(each).variant) for each in made} == {(7, uuid.RFC_4122)}


def test_two_makers_share_no_id() -> None:
    makers = IdMaker(), IdMaker()
    assert len({maker.next(1) for maker in makers for _ in range(100)}) == 200


def test_a_counter_that_runs_out_goes_on_in_the_next_millisecond() -> None:
    maker = IdMaker()
    first = maker.next(7)
    maker._counter = (1 << 62) - 3
    second = maker.column(7, 10)
    made = [first, *(second.string(row) for row in range(10))]
    assert made == sorted(set(made))
    assert uuid.UUID(made[-1]).int >> 80 == 8


def test_ids_of_positions_are_the_same_again_and_no_others() -> None:
    offsets = np.array([0, 5, (1 << 62) - 1], np.int64)
    made = [PositionIds(place, offsets) for place in ("topic 0", "topic 1")]
    texts = [[each.next(0, row) for row in range(3)] for each in made]
    columns = [each.column(0, 3) for each in made]
    assert [[column.string(row) for row in range(3)] for column in columns] == texts
    assert len({each for own in texts for each in own}) == 6
    assert {(uuid.UUID(each).version, uuid.UUID(each).variant) for each in texts[0]} == {(8, uuid.RFC_4122)}
