"""All that one partitioner's tasks answered: lateness, duplicates, and the metrics at home there, checked."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import Window as Over
from pyspark.sql import functions as F

from railgun.language.ast import Window
from railgun.language.types import Type
from railgun.spark.sessions import kept
from railgun.spark.validation.admission import CLOCK
from railgun.spark.validation.checking import Pass, answered, counted, judged, reached, sampled, wrong_values
from railgun.spark.validation.report import EXAMPLES, Example, MetricCheck, shown
from railgun.spark.validation.run_source import EVENT_ID, NUMBER
from railgun.spark.validation.windows import is_straggler, placed

SURE, UNSURE = "is_sure", "is_unsure"
"""Of events: whether their one reply is beside them; whether it is one of those of their id."""

_LOOKED_AT = f"coalesce({SURE} OR {UNSURE}, false)"
_WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Said:
    """What replies say beside results. name: in the report.  own, recorded: SQL of what it should be, and is."""

    name: str
    own: str
    recorded: str


@dataclass(frozen=True, slots=True)
class Uncertain:
    """All replies to events whose ids come again: which belongs to which is not written anywhere.

    Each is held against all events of its id, and is right where it is to one of them; where to none, what is wrong
    is counted as of the event that it is nearest to.
    replies: with the columns that events have beside them, and `number`, a reply's own.  id: the column of the id.
    """

    replies: DataFrame
    number: str
    id: str

    def paired(self, frame: DataFrame) -> DataFrame:
        """The unsure events of a frame beside each reply to their id."""
        replied = [name for name in self.replies.columns if name in frame.columns]
        events = frame.where(UNSURE).drop(*replied)
        return events.join(self.replies, events[EVENT_ID] == self.replies[self.id])


def check_partitioner(
    events: DataFrame,
    passes: Sequence[Pass],
    types: Mapping[str, Type],
    said: Sequence[Said],
    sample: float | None,
    *,
    has_sure: bool = False,
    uncertain: Uncertain | None = None,
) -> list[MetricCheck]:
    """Compute and compare. events: admitted, beside their replies.  has_sure: SURE and UNSURE tell which of them are
    looked at; else all are."""
    context = [SURE, UNSURE] * has_sure
    clocks = _clocks(events.where(_LOOKED_AT)) if has_sure else None
    late = _with_stragglers(events, list(dict.fromkeys(one.window for one in passes if not one.is_distinct)))
    sure = events.where(SURE) if has_sure else events
    checks = [_compared(sure, each) for each in said]
    with ExitStack() as stack:
        pairs: list[DataFrame] = []
        for one in passes:
            some = sampled(events, one, sample)
            if has_sure:
                # A few replies of a long log, or a range of it: the rest of the log is in none of their windows.
                some = some.where(
                    _LOOKED_AT if clocks is None else f"{_LOOKED_AT} OR ({reached(one, clocks)})"
                )
            carried = list(dict.fromkeys((NUMBER, EVENT_ID, *context, *one.carried)))
            made = answered(some, one, types, carried, stragglers=late.get(one.window, False))
            if uncertain is not None:
                made = stack.enter_context(kept(made))
                paired = judged(uncertain.paired(made), one).withColumn(_WRONG, F.expr(wrong_values(one)))
                pairs.append(stack.enter_context(kept(paired)))
            checks += counted(judged(made.where(SURE) if has_sure else made, one), one)
        if uncertain is not None:
            checks = _with_pairs(checks, uncertain.paired(events), said, passes, pairs, uncertain.number)
    return checks


def _with_pairs(
    checks: Sequence[MetricCheck],
    events: DataFrame,
    said: Sequence[Said],
    passes: Sequence[Pass],
    pairs: Sequence[DataFrame],
    number: str,
) -> list[MetricCheck]:
    """Add what the uncertain replies come to, each held against the event that it is nearest to."""
    wrongly_said = " + ".join(f"CAST(NOT ({each.own} <=> {each.recorded}) AS INT)" for each in said) or "0"
    scores = events.select(number, NUMBER, F.expr(wrongly_said).alias(_WRONG))
    for each in pairs:
        scores = scores.unionAll(each.select(number, NUMBER, _WRONG))
    nearest = Over.partitionBy(number).orderBy(_WRONG, NUMBER)
    chosen = (
        scores.groupBy(number, NUMBER)
        .agg(F.sum(_WRONG).alias(_WRONG))
        .withColumn("rank", F.row_number().over(nearest))
        .where("rank = 1")
        .select(number, NUMBER)
    )
    with kept(chosen) as best:
        found = [_compared(events.join(best, [number, NUMBER], "left_semi"), each) for each in said]
        for one, each in zip(passes, pairs):
            found += counted(each.join(best, [number, NUMBER], "left_semi"), one)
    return [check.plus(more) for check, more in zip(checks, found)]


def _clocks(events: DataFrame) -> tuple[int, int] | None:
    """The least and the greatest clock of events; None where there are none."""
    first, last = events.agg(F.min(CLOCK), F.max(CLOCK)).collect()[0]
    return None if first is None else (first, last)


def _with_stragglers(events: DataFrame, windows: Sequence[Window]) -> dict[Window, bool]:
    """By window, whether any event came after the head had left its block."""
    found: DataFrame | None = None
    for place, window in enumerate(windows):
        one = placed(events, window).where(is_straggler(window)).limit(1).select(F.lit(place).alias("place"))
        found = one if found is None else found.union(one)
    seen = set() if found is None else {row["place"] for row in found.collect()}
    return {window: place in seen for place, window in enumerate(windows)}


def _compared(events: DataFrame, said: Said) -> MetricCheck:
    """What the replies say of lateness or duplicates."""
    is_wrong = F.expr(f"NOT ({said.own} <=> {said.recorded})")
    compared, mismatches = events.agg(F.count("*"), F.count(F.when(is_wrong, True))).collect()[0]
    examples: tuple[Example, ...] = ()
    if mismatches:
        first = events.where(is_wrong).orderBy(NUMBER).limit(EXAMPLES)
        rows = first.selectExpr(
            NUMBER, EVENT_ID, f"{said.own} AS own", f"{said.recorded} AS recorded"
        ).collect()
        examples = tuple(
            Example(row[NUMBER], row[EVENT_ID], shown(row["own"]), shown(row["recorded"])) for row in rows
        )
    return MetricCheck(said.name, compared, mismatches, examples=examples)


@dataclass(frozen=True, slots=True)
class Unsent:
    """Replies to what was not sent to a partitioner, which must say nothing of it.

    number, id: their columns.  place: where the reply of a number is; None where the number is its row.
    """

    replies: DataFrame
    partitioner: str
    number: str = NUMBER
    id: str = EVENT_ID
    place: Callable[[int], str] | None = None

    def checks(self, recorded: Mapping[str, str], scales: Mapping[str, int]) -> dict[str, MetricCheck]:
        """By name. recorded: SQL of what they say, null for nothing.  scales: of wide decimals, by name."""
        figures = [
            F.count("*").alias("rows"),
            *(F.count(F.expr(sql)).alias(name) for name, sql in recorded.items()),
        ]
        row = self.replies.agg(*figures).collect()[0]
        return {
            name: MetricCheck(
                name,
                row["rows"],
                row[name],
                examples=self._examples(sql, scales.get(name, 0)) if row[name] else (),
            )
            for name, sql in recorded.items()
        }

    def _examples(self, recorded: str, scale: int) -> tuple[Example, ...]:
        said = self.replies.where(f"{recorded} IS NOT NULL").orderBy(self.number).limit(EXAMPLES)
        due = f"null: its event was not sent to partitioner {self.partitioner}"
        return tuple(
            Example(number, id_, due, shown(value, scale), None if self.place is None else self.place(number))
            for number, id_, value in said.selectExpr(self.number, self.id, recorded).collect()
        )


def joined(check: MetricCheck, unsent: Mapping[str, MetricCheck]) -> MetricCheck:
    """A check with what had to be null."""
    more = unsent.get(check.name)
    return check if more is None else check.plus(more)
