"""The lives of metrics as control records tell them: told twice, dropped, added again, and what cannot be followed."""

import json
from typing import Any

import pytest

from railgun.catalog.changes import (
    AddHistory,
    AddMetric,
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
from railgun.spark.lives import Span, told
from railgun.spark.task_log_source import number_of, place_of_number

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
FIRST = (PutStream(1, STREAM, 1), AddMetric(2, METRIC))


def records(*changes: tuple[int, int, Change | Warm]) -> list[tuple[int, int, str]]:
    return [
        (task, number_of(task, offset), json.dumps(change_to_json(change)))
        for task, offset, change in changes
    ]


def test_numbers_say_where_records_are() -> None:
    assert [place_of_number(number_of(*each)) for each in ((0, 0), (7, 5), (3, (1 << 40) - 1))] == [
        (0, 0), (7, 5), (3, (1 << 40) - 1),
    ]  # fmt: skip


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
    found = told(reversed(records(*own)), "card")
    assert found.leading == {0: 3, 1: 2}
    assert found.lives[2].spans == {0: Span(1, 9, 20), 1: Span(number_of(1, 1))}
    assert found.lives[4].spans == {0: Span(21, None, 40)}
    assert [each.number for each in found.settings[1]] == [number_of(1, 0)]
    assert told(records(*own), "*").lives == {}


def test_what_cannot_be_followed_is_said() -> None:
    for kind in (AddHistory, Deepen):
        history = kind(3, "s", "ab12", 1_000)
        with pytest.raises(PlaceError, match="has history"):
            told(records(*((0, offset, each) for offset, each in enumerate((*FIRST, history)))), "card")
    with pytest.raises(RecordError, match="partition 1 offset 7: a control record"):
        told([(1, number_of(1, 7), json.dumps({"kind": "new"}))], "card")
