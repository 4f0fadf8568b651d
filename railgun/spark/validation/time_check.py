"""The `time` that recorded replies show: that of a record of their event."""

from collections.abc import Callable, Iterable
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from railgun.spark.validation.reply_source import REPLY_ID, REPLY_MS, REPLY_NUMBER
from railgun.spark.validation.report import EXAMPLES, Example, MetricCheck
from railgun.spark.validation.run_source import EVENT_ID, EVENT_MS
from railgun.spark.validation.task_log_source import CONTROL
from railgun.spark.validation.time_range import TimeRange

_FIRST, _LAST, _ASKED = "first_t", "last_t", "is_asked"


def check_times(
    replies: DataFrame, logs: Iterable[DataFrame], times: TimeRange, place: Callable[[int], str]
) -> MetricCheck:
    """Compare with the logs of all partitioners. place: where a reply of a number is.

    Of an id that came more than once it may be the time of any of its records. A reply to what is in no log has
    nothing to be compared with.
    """
    sent = reduce(DataFrame.unionAll, [_sent(log) for log in logs])
    of_id = sent.groupBy(EVENT_ID).agg(
        F.min(EVENT_MS).alias(_FIRST),
        F.max(EVENT_MS).alias(_LAST),
        F.max(F.expr(times.holds(EVENT_MS))).alias(_ASKED),
    )
    shown = replies.select(REPLY_NUMBER, REPLY_ID, REPLY_MS)
    beside = shown.join(of_id.where(_ASKED), F.col(REPLY_ID) == F.col(EVENT_ID)).drop(EVENT_ID)
    is_other = f"{REPLY_MS} NOT IN ({_FIRST}, {_LAST})"
    compared, others = beside.agg(F.count("*"), F.count(F.when(F.expr(is_other), True))).collect()[0]
    if not others:
        return MetricCheck("time", compared)
    alike = (F.col(REPLY_ID) == F.col(EVENT_ID)) & (F.col(REPLY_MS) == F.col(EVENT_MS))
    wrong = beside.where(is_other).join(sent, alike, "left_anti")
    first = wrong.orderBy(REPLY_NUMBER).limit(EXAMPLES).collect()
    examples = [
        Example(
            row[REPLY_NUMBER],
            row[REPLY_ID],
            str(row[_FIRST]) if row[_FIRST] == row[_LAST] else f"of a record, {row[_FIRST]} to {row[_LAST]}",
            str(row[REPLY_MS]),
            place(row[REPLY_NUMBER]),
        )
        for row in first
    ]
    return MetricCheck("time", compared, wrong.count(), examples=tuple(examples))


def _sent(log: DataFrame) -> DataFrame:
    return log.where(f"{CONTROL} IS NULL").select(EVENT_ID, EVENT_MS)
