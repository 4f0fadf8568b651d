"""Checks of recorded replies that need no recomputation.

A reply to an event that was not sent to a partitioner says nothing of it; its `time` is that of a record of its event;
and each metric that it names, as a result, warming or partial, has existed.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from railgun.spark.validation.reply_records import FIRST_MS, IN_NO_LOG, IS_ID_ASKED, IS_TIMED, LAST_MS
from railgun.spark.validation.reply_source import REPLY_ID, REPLY_MS, REPLY_NUMBER, UNKNOWN
from railgun.spark.validation.report import EXAMPLES, Example, MetricCheck, shown
from railgun.spark.validation.run_source import EVENT_ID, NUMBER

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


_NO_TEXT = "CAST(NULL AS STRING)"


@dataclass(frozen=True, slots=True)
class Spoken:
    """What a reply says of a metric, of lateness or of duplicates. name: in the report.

    value: SQL, null for nothing.  otherwise: SQL of a text: what it says where `value` is null all the same, null for
    nothing.  scale: of wide decimals.
    """

    name: str
    value: str
    otherwise: str = _NO_TEXT
    scale: int = 0

    @property
    def is_said(self) -> str:
        """SQL: is there anything?"""
        return f"({self.value} IS NOT NULL OR {self.otherwise} IS NOT NULL)"


@dataclass(frozen=True, slots=True)
class Unsent:
    """The replies. number, id: their columns.  place: where the reply of a number is; None where the number is its
    row."""

    replies: DataFrame
    partitioner: str
    number: str = NUMBER
    id: str = EVENT_ID
    place: Callable[[int], str] | None = None

    def checks(self, spoken: Iterable[Spoken]) -> dict[str, MetricCheck]:
        """By name, how many say something."""
        listed = list(spoken)
        figures = [F.count(F.when(F.expr(each.is_said), True)) for each in listed]
        rows, *wrong = self.replies.agg(F.count("*"), *figures).collect()[0]
        return {
            each.name: MetricCheck(each.name, rows, count, examples=self._examples(each) if count else ())
            for each, count in zip(listed, wrong)
        }

    def _examples(self, spoken: Spoken) -> tuple[Example, ...]:
        wrong = self.replies.where(spoken.is_said).orderBy(self.number).limit(EXAMPLES)
        due = f"null: its event was not sent to partitioner {self.partitioner}"
        rows = wrong.selectExpr(self.number, self.id, spoken.value, spoken.otherwise).collect()
        return tuple(
            Example(
                number,
                id_,
                due,
                otherwise if value is None else shown(value, spoken.scale),
                None if self.place is None else self.place(number),
            )
            for number, id_, value, otherwise in rows
        )


def joined(check: MetricCheck, unsent: Mapping[str, MetricCheck]) -> MetricCheck:
    """A check with what had to be null."""
    more = unsent.get(check.name)
    return check if more is None else check.plus(more)
