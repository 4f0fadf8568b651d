"""Which records of its id a recorded reply can be to.

An id may come again with other fields, and each time some of its replies may not have been recorded. A reply shows its
event's own time, so it is to a record of that time; and an event without a partitioner's field is in other logs alone,
or in none.
"""

from collections.abc import Mapping
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as Over
from pyspark.sql import functions as F

from railgun.catalog.model import ALL, StreamDefinition
from railgun.spark.validation.redelivery import INPUT_COLUMNS
from railgun.spark.validation.reply_source import (
    DUPLICATE_AT,
    LATE_AT,
    PARTIAL,
    REPLY_ID,
    REPLY_MS,
    REPLY_NUMBER,
    UNFIT,
    UNKNOWN,
    WARMING,
)
from railgun.spark.validation.run_source import EVENT_ID, EVENT_MS, field_column
from railgun.spark.validation.task_log_source import CONTROL
from railgun.spark.validation.time_range import TimeRange

OWN_MS = "own_ms"
"""Of events: their own time, beside what admission makes of them."""
FIRST_MS, LAST_MS, IS_ID_ASKED = "first_ms", "last_ms", "is_id_asked"
"""Of replies: the least and the greatest time of the records of their id, and is one of these in the range; null of an
id in no log."""
IS_TIMED, OF_MS, IN_NO_LOG = "is_timed", "of_ms", "in_no_log"
"""Of replies: is there a record of the id and the time; that time, where it says which records the reply can be to
(null: any of its id); and is it to an event that was sent to no partitioner, though its id may be in logs."""

_SENT_ID, _SENT_MS, _FIELDS = "sent_id", "sent_at_ms", "fields_there"
_FROM_INPUT, _LOG, _REPLIES, _PLACE = "sent_from_input", "log_place", "replies_of_slot", "place_in_slot"


def here(place: int) -> str:
    """The column of replies: how many records of the partitioner at a place they can be to."""
    return f"here_{place}"


def elsewhere(place: int) -> str:
    """The same, of events that were sent without that partitioner's field.

    Such an event is in the logs of its other fields, in all of them unless it was cut off on its way: it is counted
    in the one that has most.
    """
    return f"elsewhere_{place}"


def id_elsewhere(place: int) -> str:
    """As `elsewhere`, of all times of the id."""
    return f"id_elsewhere_{place}"


def beside_records(replies: DataFrame, records: DataFrame, stream: StreamDefinition) -> DataFrame:
    """Replies with all the columns above. records: of `sent_records`."""
    places = range(len(stream.partitioners))
    of_id = records.where(f"{_SENT_MS} IS NULL").drop(_SENT_MS, _FROM_INPUT)
    of_id = of_id.withColumnsRenamed({here(each): f"id_{here(each)}" for each in places})
    of_id = of_id.withColumnsRenamed({elsewhere(each): id_elsewhere(each) for each in places})
    of_id = of_id.withColumnRenamed(_SENT_ID, f"id_{_SENT_ID}")
    of_time = records.where(f"{_SENT_MS} IS NOT NULL").drop(FIRST_MS, LAST_MS, IS_ID_ASKED)
    at_time = (F.col(REPLY_ID) == F.col(_SENT_ID)) & (F.col(REPLY_MS) == F.col(_SENT_MS))
    found = replies.join(of_time, at_time, "left")
    found = found.join(of_id, F.col(REPLY_ID) == F.col(f"id_{_SENT_ID}"), "left")
    # A record of input that is delivered again is stamped again where the stream has no time field, and gets the reply
    # of the first time.
    is_told = f"({_SENT_MS} IS NOT NULL AND {'true' if stream.time is not None else f'NOT {_FROM_INPUT}'})"
    # All events are in the log of `*`. Without it, nothing but a reply tells of an event without any such field.
    nowhere = "false" if ALL in stream.partitioners else f"({_SENT_MS} IS NULL AND {_says_nothing(replies)})"
    figures = []
    for each in places:
        for name, of_all in ((here(each), f"id_{here(each)}"), (elsewhere(each), id_elsewhere(each))):
            of_slot = f"CASE WHEN {nowhere} THEN 0L WHEN {is_told} THEN {name} ELSE {of_all} END"
            figures.append(f"coalesce({of_slot}, 0L) AS {name}")
        figures.append(f"coalesce({id_elsewhere(each)}, 0L) AS {id_elsewhere(each)}")
    return found.selectExpr(
        *replies.columns,
        FIRST_MS,
        LAST_MS,
        IS_ID_ASKED,
        f"{_SENT_MS} IS NOT NULL AS {IS_TIMED}",
        f"CASE WHEN {is_told} THEN {_SENT_MS} END AS {OF_MS}",
        f"{nowhere} AS {IN_NO_LOG}",
        *figures,
    )


def sent_records(logs: Mapping[str, DataFrame], times: TimeRange) -> DataFrame:
    """By id and time, and (time null) by id, how many records there are, here and elsewhere of each partitioner.

    logs: by partitioner, in the stream's order.
    """
    is_null = ["false" if name == ALL else f"{field_column(name)} IS NULL" for name in logs]
    sent = reduce(
        DataFrame.unionAll,
        [
            log.where(f"{CONTROL} IS NULL").selectExpr(
                f"{EVENT_ID} AS {_SENT_ID}",
                f"{EVENT_MS} AS {_SENT_MS}",
                f"{INPUT_COLUMNS[0]} >= 0 AS {_FROM_INPUT}",
                f"{place} AS {_LOG}",
                f"array({', '.join(is_null)}) AS {_FIELDS}",
            )
            for place, log in enumerate(logs.values())
        ],
    )
    places = range(len(logs))
    alike = sent.groupBy(_SENT_ID, _SENT_MS, _FIELDS).agg(
        F.max(_FROM_INPUT).alias(_FROM_INPUT),
        *(F.count_if(F.col(_LOG) == each).alias(here(each)) for each in places),
    )
    most = "greatest(0L, " + ", ".join(map(here, places)) + ")"
    figures = [F.sum(here(each)).alias(here(each)) for each in places]
    figures += [
        F.sum(F.expr(f"CASE WHEN {_FIELDS}[{each}] THEN {most} ELSE 0L END")).alias(elsewhere(each))
        for each in places
    ]
    by_slot = alike.rollup(_SENT_ID, _SENT_MS).agg(
        F.max(_FROM_INPUT).alias(_FROM_INPUT),
        F.min(_SENT_MS).alias(FIRST_MS),
        F.max(_SENT_MS).alias(LAST_MS),
        F.max(F.expr(times.holds(_SENT_MS))).alias(IS_ID_ASKED),
        *figures,
    )
    return by_slot.where(f"{_SENT_ID} IS NOT NULL")


def _says_nothing(replies: DataFrame) -> str:
    """SQL: are a reply's metrics all null, and nothing is said of any?"""
    results = [f"{name} IS NULL" for name in replies.columns if name.startswith("r_")]
    marks = (UNFIT, WARMING, PARTIAL, LATE_AT, DUPLICATE_AT, UNKNOWN)
    return " AND ".join([*results, *(f"coalesce(size({name}), 0) <= 0" for name in marks)])


def can_be_to(replies: DataFrame, events: DataFrame) -> Column:
    """The condition of a join. events: with OWN_MS."""
    of_ms = replies[OF_MS]
    return (replies[REPLY_ID] == events[EVENT_ID]) & (of_ms.isNull() | (of_ms == events[OWN_MS]))


def to_records_here(replies: DataFrame, place: int, says_nothing: str) -> DataFrame:
    """Replies without those to events that were not sent to the partitioner at a place.

    replies: all of their ids.  says_nothing: SQL over replies: as one to an event that was not sent here must be. There
    are as many of them as such events are known, or as there are more replies than records here.
    """
    alike = Over.partitionBy(REPLY_ID, OF_MS)
    silent_first = alike.orderBy(F.expr(says_nothing).desc(), REPLY_NUMBER)
    ranked = replies.withColumns(
        {_REPLIES: F.count("*").over(alike), _PLACE: F.row_number().over(silent_first)}
    )
    others = f"greatest({elsewhere(place)}, {_REPLIES} - {here(place)})"
    own = ranked.where(f"{here(place)} > 0 AND NOT ({says_nothing} AND {_PLACE} <= {others})")
    return own.drop(_REPLIES, _PLACE)


def more_than_replies(events: DataFrame, replies: DataFrame) -> int:
    """Of each id, how many more events there are than replies; in all."""
    sent = events.groupBy(EVENT_ID).agg(F.count("*").alias(_PLACE))
    answered = replies.groupBy(REPLY_ID).agg(F.count("*").alias(_REPLIES))
    beside = sent.join(answered, sent[EVENT_ID] == answered[REPLY_ID], "left")
    missing = f"greatest({_PLACE} - coalesce({_REPLIES}, 0), 0)"
    return int(beside.agg(F.coalesce(F.sum(F.expr(missing)), F.lit(0))).collect()[0][0])
