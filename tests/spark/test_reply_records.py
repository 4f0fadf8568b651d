"""Which records a recorded reply is held against, and which ids are not compared at a partitioner."""

from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from railgun.catalog.definitions import parse_definitions
from railgun.catalog.model import StreamDefinition
from railgun.spark.validation.reply_records import (
    FIRST_MS,
    IN_NO_LOG,
    IS_ID_IN_RANGE,
    IS_TIMED,
    LAST_MS,
    OF_MS,
    beside_records,
    is_mixed,
    more_than_replies,
    sent_records,
    sent_to,
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
    records = sent_records(dict(zip(stream.partitioners, logs)), stream, times)
    return beside_records(said, records, stream).orderBy(REPLY_NUMBER)


def told(found: DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in found.select(*columns).collect()]


def test_a_reply_is_to_a_record_of_its_time(spark: SparkSession) -> None:
    """And where nothing is of its time, to an event in no log if it says nothing at all."""
    card, shop = log(spark, ("a", 1, "x", None)), log(spark, ("a", 2, None, "y"))
    said = replies(spark, ("a", 1, 5), ("a", 2, None), ("a", 3, None), ("a", 4, 6), ("b", 1, None))
    assert told(beside(said, card, shop), IS_TIMED, OF_MS, IN_NO_LOG, sent_to(0), sent_to(1)) == [
        (True, 1, False, True, False), (True, 2, False, False, True), (False, None, True, False, False),
        (False, None, False, True, True), (False, None, True, False, False),
    ]  # fmt: skip
    ranged = beside(said, card, shop, times=TimeRange(2, 9))
    assert told(ranged, FIRST_MS, LAST_MS, IS_ID_IN_RANGE) == [(1, 2, True)] * 4 + [(None, None, None)]
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


def test_an_id_that_came_with_a_field_and_without_it_is_mixed_there(spark: SparkSession) -> None:
    """All of its replies are. One that came again with another value of the field is not, nor one that never had it."""
    both, other = ("a", 1, "x", "y"), ("b", 1, "x", "y")
    again, twice = ("b", 2, "z", "y"), ("d", 1, "x", None)
    shop = [both, ("a", 2, None, "y"), other, again, ("c", 1, None, "y"), ("d", 2, None, "y")]
    card, whole = [both, other, again, twice], [*shop, ("a", 3, None, None), twice]
    stream = replace(STREAM, partitioners=("card", "shop", "*"))
    said = replies(spark, *((id_, ms, 5) for id_ in "abcd" for ms in (1, 2, 4)), ("e", 1, 5))
    found = beside(said, *(log(spark, *each) for each in (card, shop, whole)), stream=stream)
    mixed = told(found, "reply_id", *(is_mixed(each) for each in range(3)))
    assert mixed == [
        *[("a", True, True, False)] * 3,
        *[("b", False, False, False)] * 3,
        *[("c", False, False, False)] * 3,
        *[("d", True, True, False)] * 3,
        ("e", False, False, False),
    ]


def test_events_without_a_reply_are_counted_by_id(spark: SparkSession) -> None:
    sent = log(spark, ("a", 1, "x", "y"), ("a", 2, "x", "y"), ("b", 1, "x", "y"), ("c", 1, "x", "y"))
    said = replies(spark, ("a", 1, 5), ("b", 1, 5), ("b", 1, 5))
    assert more_than_replies(sent, said) == 2
