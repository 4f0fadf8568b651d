"""Replies to events that were not sent to a partitioner: they must say nothing of it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from railgun.spark.validation.report import EXAMPLES, Example, MetricCheck, shown
from railgun.spark.validation.run_source import EVENT_ID, NUMBER

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
        said = self.replies.where(spoken.is_said).orderBy(self.number).limit(EXAMPLES)
        due = f"null: its event was not sent to partitioner {self.partitioner}"
        rows = said.selectExpr(self.number, self.id, spoken.value, spoken.otherwise).collect()
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
