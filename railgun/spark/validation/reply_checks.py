"""Checks of recorded replies that need no recomputation.

They check three rules. A reply to an event that was not sent to a partitioner has no values of that partitioner. Its
`time` is that of a record of its event. Every metric that it names, as a result, warming or partial, has existed.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from railgun.spark.validation.reply_records import FIRST_MS, IN_NO_LOG, IS_ID_IN_RANGE, IS_TIMED, LAST_MS
from railgun.spark.validation.reply_source import REPLY_ID, REPLY_MS, REPLY_NUMBER, UNKNOWN
from railgun.spark.validation.report import EXAMPLES, Example, MetricCheck, shown
from railgun.spark.validation.run_source import EVENT_ID, NUMBER

_NAME = "(other metrics)"


def unknown_metrics(replies: DataFrame, place: Callable[[int], str]) -> MetricCheck:
    """Check for replies that name metrics which never existed. place: gives the place of a reply by its number."""
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
    """Compare the times of replies with the logs of all partitioners.

    replies: of `beside_records`.  place: gives the place of a reply by its number.
    For an id that came more than once, the time of any of its records is right. A reply to an event that is in no log
    is not compared.
    """
    beside = replies.where(f"NOT {IN_NO_LOG} AND {IS_ID_IN_RANGE}")
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
class MustBeNull:
    """A value that is null in replies to events not sent to a partitioner: a metric, lateness, or a duplicate.

    name: in the report.
    value: SQL of the recorded value.
    otherwise: SQL of a text that says what else the reply has where `value` is null; null where it has nothing.
    scale: of wide decimals.
    """

    name: str
    value: str
    otherwise: str = _NO_TEXT
    scale: int = 0

    @property
    def is_set(self) -> str:
        """SQL: whether the reply has a value, or `otherwise`."""
        return f"({self.value} IS NOT NULL OR {self.otherwise} IS NOT NULL)"


@dataclass(frozen=True, slots=True)
class Unsent:
    """The replies to events that were not sent to a partitioner.

    number, id: their columns.
    place: gives the place of a reply by its number; None where the number is that of its row.
    """

    replies: DataFrame
    partitioner: str
    number: str = NUMBER
    id: str = EVENT_ID
    place: Callable[[int], str] | None = None

    def checks(self, must_be_null: Iterable[MustBeNull]) -> dict[str, MetricCheck]:
        """Return, by name, the check that the values are null."""
        listed = list(must_be_null)
        figures = [F.count(F.when(F.expr(each.is_set), True)) for each in listed]
        rows, *wrong = self.replies.agg(F.count("*"), *figures).collect()[0]
        return {
            each.name: MetricCheck(each.name, rows, count, examples=self._examples(each) if count else ())
            for each, count in zip(listed, wrong)
        }

    def _examples(self, must_be_null: MustBeNull) -> tuple[Example, ...]:
        wrong = self.replies.where(must_be_null.is_set).orderBy(self.number).limit(EXAMPLES)
        due = f"null: its event was not sent to partitioner {self.partitioner}"
        rows = wrong.selectExpr(self.number, self.id, must_be_null.value, must_be_null.otherwise).collect()
        return tuple(
            Example(
                number,
                id_,
                due,
                otherwise if value is None else shown(value, must_be_null.scale),
                None if self.place is None else self.place(number),
            )
            for number, id_, value, otherwise in rows
        )


def joined(check: MetricCheck, unsent: Mapping[str, MetricCheck]) -> MetricCheck:
    """Return a check together with that of its name in `unsent`."""
    more = unsent.get(check.name)
    return check if more is None else check.plus(more)
