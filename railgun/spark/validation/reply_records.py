"""Joins recorded replies with the log records that they can belong to: those of the reply's id and time.

An id may come again with other fields. An event without a partitioner's field is only in the logs of other
partitioners, or in no log. If an id came both with a partitioner's field and without it, nothing says to which of these
events a reply belongs. Such a reply is not compared at that partitioner.
"""

from collections.abc import Mapping
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from railgun.catalog.model import ALL, StreamDefinition
from railgun.spark.validation.redelivery import INPUT_COLUMNS
from railgun.spark.validation.reply_source import (
    DUPLICATE_AT,
    LATE_AT,
    PARTIAL,
    REPLY_ID,
    REPLY_MS,
    UNFIT,
    UNKNOWN,
    WARMING,
)
from railgun.spark.validation.run_source import EVENT_ID, EVENT_MS, field_column, sql_of_partitioner
from railgun.spark.validation.task_log_source import CONTROL
from railgun.spark.validation.time_range import TimeRange

OWN_MS = "own_ms"
"""Column of events: their own time, which admission does not change."""
FIRST_MS, LAST_MS, IS_ID_IN_RANGE = "first_ms", "last_ms", "is_id_in_range"
"""Columns of replies: the least and the greatest time of the records of their id, and whether one of these times is in
the range. Null for an id in no log."""
IS_TIMED, OF_MS, IN_NO_LOG = "is_timed", "of_ms", "in_no_log"
"""Columns of replies. IS_TIMED: whether there is a record of the id and the time. OF_MS: the time of the records that
the reply can belong to; null for any records of its id. IN_NO_LOG: whether its event was sent to no partitioner, even
if other events of its id were."""

_SENT_ID, _SENT_MS, _FROM_INPUT = "sent_id", "sent_at_ms", "sent_from_input"
_OF_ID = "id_"


def sent_to(place: int) -> str:
    """Return the column of replies that says whether the log of a partitioner has records that the reply can belong to.

    place: of the partitioner in the stream's list.
    """
    return f"sent_to_{place}"


def is_mixed(place: int) -> str:
    """Return the column of replies that says whether their id came both with a partitioner's field and without it."""
    return f"is_mixed_{place}"


def _lacks(place: int) -> str:
    return f"lacks_{place}"


def beside_records(replies: DataFrame, records: DataFrame, stream: StreamDefinition) -> DataFrame:
    """Replies with the columns that are described above. records: of `sent_records`."""
    places = range(len(stream.partitioners))
    of_id = records.where(f"{_SENT_MS} IS NULL").drop(_SENT_MS, _FROM_INPUT)
    own = [_SENT_ID, *map(sent_to, places), *map(_lacks, places)]
    of_id = of_id.withColumnsRenamed({name: _OF_ID + name for name in own})
    of_time = records.where(f"{_SENT_MS} IS NOT NULL").drop(
        FIRST_MS, LAST_MS, IS_ID_IN_RANGE, *map(_lacks, places)
    )
    at_time = (F.col(REPLY_ID) == F.col(_SENT_ID)) & (F.col(REPLY_MS) == F.col(_SENT_MS))
    found = replies.join(of_time, at_time, "left")
    found = found.join(of_id, F.col(REPLY_ID) == F.col(_OF_ID + _SENT_ID), "left")
    # In a stream without a time field, a redelivered record of an input topic gets a new time, but its first reply.
    is_told = f"({_SENT_MS} IS NOT NULL AND {'true' if stream.time is not None else f'NOT {_FROM_INPUT}'})"
    # All events are in the log of `*`. Without it, nothing but a reply tells of an event without any such field.
    nowhere = "false" if ALL in stream.partitioners else f"({_SENT_MS} IS NULL AND {_says_nothing(replies)})"
    figures = []
    for each in places:
        of_all, lacks = _OF_ID + sent_to(each), _OF_ID + _lacks(each)
        can_be = f"CASE WHEN {nowhere} THEN false WHEN {is_told} THEN {sent_to(each)} ELSE {of_all} END"
        figures.append(f"coalesce({can_be}, false) AS {sent_to(each)}")
        figures.append(f"coalesce({of_all} AND {lacks}, false) AS {is_mixed(each)}")
    return found.selectExpr(
        *replies.columns,
        FIRST_MS,
        LAST_MS,
        IS_ID_IN_RANGE,
        f"{_SENT_MS} IS NOT NULL AS {IS_TIMED}",
        f"CASE WHEN {is_told} THEN {_SENT_MS} END AS {OF_MS}",
        f"{nowhere} AS {IN_NO_LOG}",
        *figures,
    )


def sent_records(logs: Mapping[str, DataFrame], stream: StreamDefinition, times: TimeRange) -> DataFrame:
    """Return which partitioners have records, and whether these lack fields, by id and time, and by id (time null).

    logs: by partitioner, in the stream's order.  Raises InexpressibleError for a partitioner that Spark cannot compute.
    """
    computed = {each.name: sql_of_partitioner(each) for each in stream.computed if each.name in logs}
    is_null = [
        "false" if name == ALL else f"{computed.get(name, field_column(name))} IS NULL" for name in logs
    ]
    sent = reduce(
        DataFrame.unionAll,
        [
            log.where(f"{CONTROL} IS NULL").selectExpr(
                f"{EVENT_ID} AS {_SENT_ID}",
                f"{EVENT_MS} AS {_SENT_MS}",
                f"{INPUT_COLUMNS[0]} >= 0 AS {_FROM_INPUT}",
                *(f"{each == place} AS {sent_to(each)}" for each in range(len(logs))),
                *(f"{null} AS {_lacks(each)}" for each, null in enumerate(is_null)),
            )
            for place, log in enumerate(logs.values())
        ],
    )
    flags = [_FROM_INPUT, *(of(each) for of in (sent_to, _lacks) for each in range(len(logs)))]
    found = sent.rollup(_SENT_ID, _SENT_MS).agg(
        F.min(_SENT_MS).alias(FIRST_MS),
        F.max(_SENT_MS).alias(LAST_MS),
        F.max(F.expr(times.holds(_SENT_MS))).alias(IS_ID_IN_RANGE),
        *(F.max(name).alias(name) for name in flags),
    )
    return found.where(f"{_SENT_ID} IS NOT NULL")


def _says_nothing(replies: DataFrame) -> str:
    """SQL: whether all metrics of a reply are null, and none is listed in it."""
    results = [f"{name} IS NULL" for name in replies.columns if name.startswith("r_")]
    marks = (UNFIT, WARMING, PARTIAL, LATE_AT, DUPLICATE_AT, UNKNOWN)
    return " AND ".join([*results, *(f"coalesce(size({name}), 0) <= 0" for name in marks)])


def can_be_to(replies: DataFrame, events: DataFrame) -> Column:
    """Return the condition of a join of replies with the events that they can belong to. events: with OWN_MS."""
    of_ms = replies[OF_MS]
    return (replies[REPLY_ID] == events[EVENT_ID]) & (of_ms.isNull() | (of_ms == events[OWN_MS]))


def more_than_replies(events: DataFrame, replies: DataFrame) -> int:
    """Return the number of events in excess of replies, summed over all ids."""
    sent = events.groupBy(EVENT_ID).agg(F.count("*").alias("events"))
    answered = replies.groupBy(REPLY_ID).agg(F.count("*").alias("replies"))
    beside = sent.join(answered, sent[EVENT_ID] == answered[REPLY_ID], "left")
    missing = "greatest(events - coalesce(replies, 0), 0)"
    return int(beside.agg(F.coalesce(F.sum(F.expr(missing)), F.lit(0))).collect()[0][0])
