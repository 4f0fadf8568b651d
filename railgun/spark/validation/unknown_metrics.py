"""Metrics that recorded replies name, as results, warming or partial, and that there never were."""

from collections.abc import Callable

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from railgun.spark.validation.reply_source import REPLY_ID, REPLY_NUMBER, UNKNOWN
from railgun.spark.validation.report import EXAMPLES, Example, MetricCheck

_NAME = "(other metrics)"


def unknown_metrics(replies: DataFrame, place: Callable[[int], str]) -> MetricCheck:
    """Replies that name a metric which there never was. place: where the reply of a number is."""
    counted, wrong = replies.agg(F.count("*"), F.count(UNKNOWN)).collect()[0]
    first = replies.where(f"{UNKNOWN} IS NOT NULL").orderBy(REPLY_NUMBER).limit(EXAMPLES * bool(wrong))
    examples = [
        Example(
            number,
            id_,
            "nothing: there never was such a metric",
            ", ".join(f"{name} = {value}" for name, value in unknown.items()),
            place(number),
        )
        for number, id_, unknown in first.select(REPLY_NUMBER, REPLY_ID, UNKNOWN).collect()
    ]
    return MetricCheck(_NAME, counted, wrong, examples=tuple(examples))
