"""The `time` that recorded replies show: that of a record of their event."""

from collections.abc import Callable

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from railgun.spark.validation.reply_records import FIRST_MS, IN_NO_LOG, IS_ID_ASKED, IS_TIMED, LAST_MS
from railgun.spark.validation.reply_source import REPLY_ID, REPLY_MS, REPLY_NUMBER
from railgun.spark.validation.report import EXAMPLES, Example, MetricCheck


def check_times(replies: DataFrame, place: Callable[[int], str]) -> MetricCheck:
    """Compare with the logs of all partitioners. replies: of `beside_records`.  place: where a reply of a number is.

    Of an id that came more than once it may be the time of any of its records. A reply to what is in no log has
    nothing to be compared with.
    """
    beside = replies.where(f"NOT {IN_NO_LOG} AND {IS_ID_ASKED}")
    compared, wrong = beside.agg(F.count("*"), F.count(F.when(~F.col(IS_TIMED), True))).collect()[0]
    first = beside.where(f"NOT {IS_TIMED}").orderBy(REPLY_NUMBER).limit(EXAMPLES * bool(wrong)).collect()
    examples = [
        Example(
            row[REPLY_NUMBER],
            row[REPLY_ID],
            str(row[FIRST_MS])
            if row[FIRST_MS] == row[LAST_MS]
            else f"of a record, {row[FIRST_MS]} to {row[LAST_MS]}",
            str(row[REPLY_MS]),
            place(row[REPLY_NUMBER]),
        )
        for row in first
    ]
    return MetricCheck("time", compared, wrong, examples=tuple(examples))
