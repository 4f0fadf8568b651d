"""Checks what one partitioner's tasks answered: lateness, duplicates, and the metrics at home there."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import Window as Over
from pyspark.sql import functions as F

from railgun.language.ast import Window
from railgun.language.types import Type
from railgun.spark.sessions import kept, kept_alone
from railgun.spark.validation.admission import CLOCK
from railgun.spark.validation.checking import Pass, answered, counted, judged, reached, sampled, wrong_values
from railgun.spark.validation.reply_records import OWN_MS, can_be_to
from railgun.spark.validation.report import EXAMPLES, Example, MetricCheck, shown
from railgun.spark.validation.run_source import EVENT_ID, NUMBER
from railgun.spark.validation.windows import is_straggler, placed

SURE, UNSURE = "is_sure", "is_unsure"
"""Columns of events. SURE: the event's only reply is joined to it. UNSURE: its reply is one of several to its id."""

_LOOKED_AT = f"coalesce({SURE} OR {UNSURE}, false)"
_WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Claim:
    """A value in replies that is not a metric. name: in the report.  own, recorded: SQL of both values of it."""

    name: str
    own: str
    recorded: str


@dataclass(frozen=True, slots=True)
class Uncertain:
    """All replies to events whose ids come again. Nothing says which reply belongs to which event.

    Each reply is compared with all events of its id that it can belong to, and is right if it is right for one of them.
    If there is none, the mismatches are those with the event that has the fewest.
    replies: with the columns that events are compared with, those that `can_be_to` needs, and the reply's `number`.
    """

    replies: DataFrame
    number: str

    def paired(self, frame: DataFrame) -> DataFrame:
        """Return the UNSURE events of a frame, joined with each reply to their id."""
        replied = [name for name in self.replies.columns if name in frame.columns]
        events = frame.where(UNSURE).drop(*replied)
        return events.join(self.replies, can_be_to(self.replies, events))


def check_partitioner(
    events: DataFrame,
    passes: Sequence[Pass],
    types: Mapping[str, Type],
    claims: Sequence[Claim],
    sample: float | None,
    *,
    has_sure: bool = False,
    uncertain: Uncertain | None = None,
) -> list[MetricCheck]:
    """Compute results and compare them. events: admitted, joined with their replies; with `uncertain`, also OWN_MS.

    types: of the columns of values that the passes read.  sample: the share of entities to compare; None compares all.
    has_sure: whether the columns SURE and UNSURE say which events are compared. Without them, all are.
    """
    context = [SURE, UNSURE] * has_sure + [OWN_MS] * (uncertain is not None)
    clocks = _clocks(events.where(_LOOKED_AT)) if has_sure else None
    late = _with_stragglers(events, list(dict.fromkeys(one.window for one in passes if not one.is_distinct)))
    sure = events.where(SURE) if has_sure else events
    checks = _compared(sure, claims)
    with ExitStack() as stack:
        pairs: list[DataFrame] = []
        for one in passes:
            some = sampled(events, one, sample)
            if has_sure:
                # For a few replies of a long log, most of the log is in none of their windows.
                some = some.where(
                    _LOOKED_AT if clocks is None else f"{_LOOKED_AT} OR ({reached(one, clocks)})"
                )
            carried = list(dict.fromkeys((NUMBER, EVENT_ID, *context, *one.carried)))
            made = answered(some, one, types, carried, stragglers=late.get(one.window, False))
            if uncertain is not None:
                made = stack.enter_context(kept(made))
                paired = judged(uncertain.paired(made), one).withColumn(_WRONG, F.expr(wrong_values(one)))
                pairs.append(stack.enter_context(kept_alone(paired)))
            checks += counted(judged(made.where(SURE) if has_sure else made, one), one)
        if uncertain is not None:
            checks = _with_pairs(checks, uncertain.paired(events), claims, passes, pairs, uncertain.number)
    return checks


def _with_pairs(
    checks: Sequence[MetricCheck],
    events: DataFrame,
    claims: Sequence[Claim],
    passes: Sequence[Pass],
    pairs: Sequence[DataFrame],
    number: str,
) -> list[MetricCheck]:
    """Add the checks of the uncertain replies, each compared with the event that gives the fewest mismatches."""
    wrongly_said = " + ".join(f"CAST(NOT ({each.own} <=> {each.recorded}) AS INT)" for each in claims) or "0"
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
    with kept_alone(chosen) as best:
        found = _compared(events.join(best, [number, NUMBER], "left_semi"), claims)
        for one, each in zip(passes, pairs):
            found += counted(each.join(best, [number, NUMBER], "left_semi"), one)
    return [check.plus(more) for check, more in zip(checks, found)]


def _clocks(events: DataFrame) -> tuple[int, int] | None:
    """Return the least and the greatest clock of events; None if there are no events."""
    first, last = events.agg(F.min(CLOCK), F.max(CLOCK)).collect()[0]
    return None if first is None else (first, last)


def _with_stragglers(events: DataFrame, windows: Sequence[Window]) -> dict[Window, bool]:
    """Return, by window, whether any event arrived after the window's head had left the event's block."""
    found: DataFrame | None = None
    for place, window in enumerate(windows):
        one = placed(events, window).where(is_straggler(window)).limit(1).select(F.lit(place).alias("place"))
        found = one if found is None else found.union(one)
    seen = set() if found is None else {row["place"] for row in found.collect()}
    return {window: place in seen for place, window in enumerate(windows)}


def _compared(events: DataFrame, claims: Sequence[Claim]) -> list[MetricCheck]:
    """Return the checks of lateness and duplicates."""
    wrong = [F.expr(f"NOT ({each.own} <=> {each.recorded})") for each in claims]
    compared, *mismatches = events.agg(
        F.count("*"), *(F.count(F.when(is_wrong, True)) for is_wrong in wrong)
    ).collect()[0]
    return [
        MetricCheck(
            each.name, compared, count, examples=_examples(events.where(is_wrong), each) if count else ()
        )
        for each, is_wrong, count in zip(claims, wrong, mismatches)
    ]


def _examples(wrong: DataFrame, claim: Claim) -> tuple[Example, ...]:
    """Return the first events whose replies are wrong."""
    rows = (
        wrong.orderBy(NUMBER)
        .limit(EXAMPLES)
        .selectExpr(NUMBER, EVENT_ID, f"{claim.own} AS own", f"{claim.recorded} AS recorded")
        .collect()
    )
    return tuple(
        Example(row[NUMBER], row[EVENT_ID], shown(row["own"]), shown(row["recorded"])) for row in rows
    )
