"""Which records a recorded reply can be to, where its id came again and not all of its replies were recorded."""

from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from railgun.catalog.definitions import parse_definitions
from railgun.catalog.model import StreamDefinition
from railgun.spark.validation.belonging import (
    FIRST_MS,
    IN_NO_LOG,
    IS_ID_ASKED,
    IS_TIMED,
    LAST_MS,
    OF_MS,
    beside_records,
    elsewhere,
    here,
    id_elsewhere,
    more_than_replies,
    sent_records,
    to_records_here,
)
from railgun.spark.validation.reply_source import REPLY_NUMBER
from railgun.spark.validation.time_range import ALL_TIMES, TimeRange

pytestmark = pytest.mark.spark

DEFINED = parse_definitions(
    """
[streams.s]
time = "ts"
id = "id"
partitioners = ["card", "shop"]
[streams.s.fields]
id = "string"
ts = "timestamp"
card = "string"
shop = "string"
"""
)
STREAM = DEFINED.streams["s"]
LOG = "id string, t bigint, f_card string, f_shop string, input_partition bigint, control string"
REPLY = (
    "reply_n bigint, reply_id string, reply_t bigint, r_1 bigint, unfit map<string,string>, warming array<string>, "
    "partial map<string,bigint>, late_at map<string,string>, duplicate_at array<string>, unknown map<string,string>"
)


def log(spark: SparkSession, *events: tuple[str, int, str | None, str | None], source: int = -1) -> DataFrame:
    return spark.createDataFrame([(*each, source, None) for each in events], LOG)


def replies(spark: SparkSession, *said: tuple[str, int, int | None], warming: Any = None) -> DataFrame:
    """Replies of an id, a time and a result."""
    rows = [
        (at, id_, time, value, None, warming, None, None, None, None)
        for at, (id_, time, value) in enumerate(said)
    ]
    return spark.createDataFrame(rows, REPLY)


def beside(
    said: DataFrame, *logs: DataFrame, stream: StreamDefinition = STREAM, times: TimeRange = ALL_TIMES
) -> DataFrame:
    records = sent_records(dict(zip(stream.partitioners, logs)), times)
    return beside_records(said, records, stream).orderBy(REPLY_NUMBER)


def told(found: DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in found.select(*columns).collect()]


def test_a_reply_is_to_a_record_of_its_time(spark: SparkSession) -> None:
    """And where nothing is of its time, to an event in no log if it says nothing at all."""
    card, shop = log(spark, ("a", 1, "x", None)), log(spark, ("a", 2, None, "y"))
    said = replies(spark, ("a", 1, 5), ("a", 2, None), ("a", 3, None), ("a", 4, 6), ("b", 1, None))
    assert told(beside(said, card, shop), IS_TIMED, OF_MS, IN_NO_LOG, here(0), here(1)) == [
        (True, 1, False, 1, 0), (True, 2, False, 0, 1), (False, None, True, 0, 0), (False, None, False, 1, 1),
        (False, None, True, 0, 0),
    ]  # fmt: skip
    ranged = beside(said, card, shop, times=TimeRange(2, 9))
    assert told(ranged, FIRST_MS, LAST_MS, IS_ID_ASKED) == [(1, 2, True)] * 4 + [(None, None, None)]
    marked = beside(replies(spark, ("a", 3, None), warming=["n"]), card, shop)
    assert told(marked, IN_NO_LOG) == [(False,)]
    whole = replace(STREAM, partitioners=("card", "*"))
    assert not beside(said, card, shop, stream=whole).where(IN_NO_LOG).count()


def test_a_record_of_input_may_be_stamped_twice(spark: SparkSession) -> None:
    """Where a stream has no time field, the reply of the first time may come with the second one's stamp."""
    unstamped = replace(STREAM, time=None)
    said, nothing = replies(spark, ("a", 1, 5)), log(spark)
    for source, of_ms in ((3, None), (-1, 1)):
        found = beside(said, log(spark, ("a", 1, "x", None), source=source), nothing, stream=unstamped)
        assert told(found, IS_TIMED, OF_MS) == [(True, of_ms)]


def test_events_that_were_sent_elsewhere_are_counted_once(spark: SparkSession) -> None:
    card = log(spark, ("a", 1, "x", "y"))
    shop = log(spark, ("a", 1, "x", "y"), ("a", 2, None, "y"), ("a", 2, None, "z"), ("b", 1, "x", "y"))
    whole = log(spark, ("a", 1, "x", "y"), ("a", 2, None, "y"), ("a", 3, None, None), ("b", 1, "x", "y"))
    stream = replace(STREAM, partitioners=("card", "shop", "*"))
    said = replies(spark, ("a", 1, 5), ("a", 2, None), ("a", 3, None), ("a", 4, None), ("b", 1, 5))
    found = beside(said, card, shop, whole, stream=stream)
    assert told(found, *(of(each) for each in range(3) for of in (here, elsewhere, id_elsewhere))) == [
        (1, 0, 3, 1, 0, 1, 1, 0, 0),
        (0, 2, 3, 2, 0, 1, 1, 0, 0),
        (0, 1, 3, 0, 1, 1, 1, 0, 0),
        (1, 3, 3, 3, 1, 1, 3, 0, 0),
        (0, 0, 0, 1, 0, 0, 1, 0, 0),
    ]


@pytest.mark.parametrize("time", ["ts", None])
def test_which_replies_are_held_against_the_records_here(spark: SparkSession, time: str | None) -> None:
    """Ids that came with a card, and without one: told by their times, or (time is None) by what they say.

    No more replies may be silent than there are such events, whether the other ones were recorded or not.
    """
    cases = {
        (("2", None),): ([], []),
        (("1", None),): ([0], []),
        (("2", 5),): ([], [0]),
        (("1", None), ("2", None)): ([0], [1]),
        (("1", 5), ("2", None)): ([0], [0]),
        (("1", None), ("2", 5)): ([0], [1]),
        # Of a time that no record has.
        (("9", 5),): ([0], [0]),
    }
    ids = [f"i{number}" for number in range(len(cases))]
    card = log(spark, *((id_, 1, "x", "y") for id_ in ids), source=0)
    shop = log(spark, *((id_, 2, None, "y") for id_ in ids), source=0)
    said = [(id_, int(ms), value) for id_, case in zip(ids, cases) for ms, value in case]
    found = beside(replies(spark, *said), card, shop, stream=replace(STREAM, time=time))
    own = to_records_here(found.where(f"NOT {IN_NO_LOG}"), 0, "r_1 IS NULL")
    numbers = {row[REPLY_NUMBER] for row in own.collect()}
    at, got = 0, []
    for case in cases:
        got.append([each for each in range(len(case)) if at + each in numbers])
        at += len(case)
    assert got == [by_time if time else by_text for by_time, by_text in cases.values()]


def test_events_without_a_reply_are_counted_by_id(spark: SparkSession) -> None:
    sent = log(spark, ("a", 1, "x", "y"), ("a", 2, "x", "y"), ("b", 1, "x", "y"), ("c", 1, "x", "y"))
    said = replies(spark, ("a", 1, 5), ("b", 1, 5), ("b", 1, 5))
    assert more_than_replies(sent, said) == 2
