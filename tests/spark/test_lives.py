"""The lives of metrics as control records tell them: told twice, dropped, added again, and what cannot be followed."""

import json
from dataclasses import replace
from typing import Any

import pytest

from railgun.catalog.changes import (
    AddHistory,
    AddMetric,
    BeginDeepening,
    Change,
    Deepen,
    DropMetric,
    DropStream,
    PutStream,
    Warm,
    change_to_json,
)
from railgun.catalog.definitions import parse_definitions
from railgun.spark.errors import PlaceError, RecordError
from railgun.spark.validation import worlds
from railgun.spark.validation.lifetimes import Span, follow_controls
from railgun.spark.validation.task_log_source import FIRST_OFFSET, number_of, place_of_number
from railgun.spark.validation.worlds import Cutover, both, cutovers, floors, known_setting, told_behind

DEFINED = parse_definitions(
    """
[streams.s]
partitioners = ["card"]
partitions = 2
[streams.s.fields]
card = "string"
[[metrics]]
sql = "SELECT count(*) AS n FROM s GROUP BY card OVER SLIDING 1 HOUR"
"""
)
STREAM, METRIC = DEFINED.streams["s"], DEFINED.metrics[0]
SHORTER = replace(STREAM, lateness_ms=1_000)
FIRST = (PutStream(1, STREAM, 1), AddMetric(2, METRIC))


def records(*changes: tuple[int, int, Change | Warm]) -> list[tuple[int, int, str]]:
    return [
        (task, number_of(task, offset), json.dumps(change_to_json(change)))
        for task, offset, change in changes
    ]


def test_numbers_say_where_records_are() -> None:
    places = [(0, FIRST_OFFSET), (0, -1), (0, 0), (3, (1 << 40) - 1), (7, FIRST_OFFSET), (7, 5)]
    numbers = [number_of(*each) for each in places]
    assert [place_of_number(each) for each in numbers] == places
    assert numbers == sorted(numbers)
    assert numbers[0] == 0


def test_a_metric_that_goes_and_comes_again_has_two_lives() -> None:
    own: list[tuple[int, int, Any]] = [
        (task, offset, each) for task in (0, 1) for offset, each in enumerate(FIRST)
    ]
    own += [
        (0, 2, FIRST[1]),
        (0, 9, Warm("s", "n", 2)),
        (0, 12, Warm("s", "n", 2)),
        (0, 20, DropMetric(3, "s", "n", 2)),
    ]
    own += [(0, 21, AddMetric(4, METRIC)), (0, 30, Warm("s", "n", 2)), (0, 40, DropStream(5, "s"))]
    found = follow_controls(reversed(records(*own)), "card")
    assert found.leading == {0: 3, 1: 2}
    at = [number_of(0, offset) for offset in range(41)]
    assert found.lives[2].spans == {0: Span(at[1], at[9], at[20]), 1: Span(number_of(1, 1))}
    assert found.lives[4].spans == {0: Span(at[21], None, at[40])}
    assert [each.number for each in found.settings[1]] == [number_of(1, 0)]
    assert follow_controls(records(*own), "*").lives == {}


def test_a_task_behind_history_knows_from_the_beginning_what_its_history_was_made_for() -> None:
    own = records(
        (1, 0, FIRST[0]),
        (1, 4, FIRST[1]),
        (1, 6, PutStream(4, SHORTER, 1)),
        (1, 9, AddHistory(6, "s", "ab12", 1_000, 3)),
    )
    here = follow_controls(own, "card")
    found = cutovers(here, own, {})
    assert found == {1: Cutover(number_of(1, 9), number_of(1, 0), 1_000, 3, False)}
    behind = told_behind(own, "card", 2, found)
    assert [place_of_number(each.number) for each in behind.settings[3]] == [(3, FIRST_OFFSET), (3, 6)]
    assert behind.lives[2].spans == {3: Span(number_of(3, FIRST_OFFSET + 4))}
    assert known_setting(behind, found, 2).stream == STREAM
    lives = both(here, behind).lives
    assert lives[2].spans.keys() == {1, 3}


def test_a_deepened_task_knows_what_was_in_force_where_it_began() -> None:
    begun = BeginDeepening(3, "s", "ab12")
    own = records(
        (0, 0, FIRST[0]), (0, 4, FIRST[1]), (0, 6, begun), (0, 7, PutStream(4, SHORTER, 1)),
        (0, 9, Deepen(5, "s", "ab12", 1_000)),
    )  # fmt: skip
    assert cutovers(follow_controls(own, "card"), own, {}) == {
        0: Cutover(number_of(0, 9), number_of(0, 7), 1_000, 3, True)
    }
    # Of an embedded engine the task's folder says where it began.
    unsaid = [each for each in own if each[1] != number_of(0, 6)]
    with pytest.raises(PlaceError, match="does not say from which record on"):
        cutovers(follow_controls(unsaid, "card"), unsaid, {})
    assert cutovers(follow_controls(unsaid, "card"), unsaid, {0: 7})[0].known_place == 2
    assert cutovers(follow_controls(unsaid, "card"), unsaid, {0: 8})[0].known_place == 4


def test_what_changes_right_where_a_deepening_began_is_in_force_behind_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = records(
        (0, 0, FIRST[0]), (0, 6, BeginDeepening(3, "s", "ab12")), (0, 7, PutStream(4, SHORTER, 1)),
        (0, 9, Deepen(5, "s", "ab12", 1_000)),
    )  # fmt: skip
    here = follow_controls(own, "card")
    found = cutovers(here, own, {})
    monkeypatch.setattr(worlds, "clocks_at", lambda _, points: dict.fromkeys(points, 50_000))
    no_events: Any = None
    *_, floor, last = floors(no_events, here, told_behind(own, "card", 1, found), found, 1)[1]
    assert (floor.number, floor.floor_ms) == (last.number, 50_000 - STREAM.lateness_ms)
    assert (floor.lateness_ms, last.lateness_ms) == (STREAM.lateness_ms, SHORTER.lateness_ms)


def test_what_cannot_be_followed_is_said() -> None:
    twice = records(
        *((0, at, each) for at, each in enumerate(FIRST)),
        (0, 2, AddHistory(3, "s", "ab12", 1_000)),
        (0, 3, Deepen(4, "s", "cd34", 1_000)),
    )
    assert follow_controls(twice, "card").pasts[0][0].known_place == 2
    with pytest.raises(PlaceError, match="was given history 2 times"):
        cutovers(follow_controls(twice, "card"), twice, {})
    with pytest.raises(RecordError, match="partition 1 offset 7: a control record"):
        follow_controls([(1, number_of(1, 7), json.dumps({"kind": "new"}))], "card")
