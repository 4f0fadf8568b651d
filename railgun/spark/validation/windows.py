"""Computes the content of the window of every event with running aggregates, without quadratic work or subtraction.

U = T - delay is the window's head. Time is divided into blocks of the window's size w: [k w, (k + 1) w). The window
(U - w, U] consists of the part of U's block up to U, the *prefix*, and the end of the block before, the *suffix*. Each
is a running aggregate over one block, forwards for the prefix and backwards for the suffix. A tumbling window is a
prefix alone; an infinite window is the prefix of a single endless block.

Event a sees event b iff b is at or before a in the log, and b's time is at most U(a). The clock of the log only grows.
So both conditions together are: (c, o) of b is at most (U, n) of a, where n is the number in the log, c = max(time,
U(b)), and o = n(b), or -1 if b's time is after U(b), so that the clock alone decides. Events in a suffix were seen
before their block ended, except for *stragglers*: events that arrived after the head had left their block. They are
joined by group and block.

With EXCLUDE CURRENT an event enters the prefix by a row of its own, which follows the row that queries.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from railgun.language.ast import Window, WindowKind
from railgun.language.types import Type
from railgun.spark.validation import states
from railgun.spark.validation.admission import ACCEPTED_MS, CLOCK
from railgun.spark.validation.run_source import NUMBER
from railgun.spark.validation.translate import quoted

HEAD, BLOCK, ORDER_TIME, ORDER_NUMBER = "head", "block", "order_time", "order_number"
EVENT_BLOCK, SEEN_BLOCK = "event_block", "seen_block"
_KIND, _TAIL, _IS_QUERY = "kind", "tail", "is_query"
# Kinds of rows: one that queries, and those by which an event enters a prefix or a suffix.
_QUERY, _PREFIX, _SUFFIX = 0, 1, 2
_LEAST = "CAST('-9223372036854775808' AS BIGINT)"
_PLACE = f"{ACCEPTED_MS} AS t, {NUMBER} AS n"


@dataclass(frozen=True, slots=True)
class Value:
    """A column of values, null for events that do not count, and the states to compute from it."""

    column: str
    type: Type
    states: tuple[str, ...]


def block_of(time: str, window: Window) -> str:
    """SQL of the number of the block that contains a time."""
    if window.size_ms is None:
        return "0L"
    size = f"{window.size_ms}L"
    return f"(CASE WHEN {time} >= 0 THEN {time} DIV {size} ELSE -((-({time} + 1)) DIV {size}) - 1 END)"


def placed(events: DataFrame, window: Window) -> DataFrame:
    """Return the events with the columns HEAD, EVENT_BLOCK, ORDER_TIME, ORDER_NUMBER and SEEN_BLOCK.

    EVENT_BLOCK is the block of an event's time. The last three say from where on the event is seen: (c, o) as above,
    and the block of c. They are null if the event was not accepted.
    """
    delayed = f"coalesce(try_subtract({CLOCK}, {window.delay_ms}L), {_LEAST})"
    return (
        events.selectExpr("*", f"{delayed if window.delay_ms else CLOCK} AS {HEAD}")
        .selectExpr(
            "*",
            f"{block_of(ACCEPTED_MS, window)} AS {EVENT_BLOCK}",
            f"CASE WHEN {ACCEPTED_MS} IS NOT NULL THEN greatest({ACCEPTED_MS}, {HEAD}) END AS {ORDER_TIME}",
            f"CASE WHEN {ACCEPTED_MS} > {HEAD} THEN -1L ELSE {NUMBER} END AS {ORDER_NUMBER}",
        )
        .selectExpr("*", f"{block_of(ORDER_TIME, window)} AS {SEEN_BLOCK}")
    )


def is_straggler(window: Window) -> str:
    """SQL over the rows of `placed`: whether the head had left the event's block, and the event can still be seen."""
    return (
        f"({ACCEPTED_MS} IS NOT NULL AND {SEEN_BLOCK} = {EVENT_BLOCK} + 1)" if _has_tail(window) else "false"
    )


def with_states(
    events: DataFrame,
    group: Sequence[str],
    window: Window,
    values: Sequence[Value],
    carried: Sequence[str],
    *,
    excludes_current: bool,
    stragglers: bool,
) -> DataFrame:
    """Return a row for each event: `carried`, and for each value the columns `<column>_<state>` over its window.

    events: with NUMBER, CLOCK, ACCEPTED_MS, and the columns of the group and of values.
    stragglers: whether there are any.
    """
    at = placed(events, window)
    enters_apart = bool(window.delay_ms) or excludes_current
    rows = _rows(at, group, window, values, carried, enters_apart=enters_apart)
    order = f"{ORDER_TIME}, {ORDER_NUMBER}, {_IS_QUERY}" + (" DESC" if excludes_current else "")
    parts = [_running(rows, group, values, "prefix", order)]
    if _has_tail(window):
        parts.append(_running(parts[0], group, values, "suffix", f"{_TAIL} DESC, {_IS_QUERY} DESC"))
    answered = parts[-1].where(F.col(_KIND) == _QUERY)
    names = ["prefix", "suffix"][: len(parts)]
    if stragglers and _has_tail(window):
        seen = f"late_number {'<' if excludes_current else '<='} {NUMBER}"
        answered = _with_stragglers(answered, at, group, window, values, seen)
        names.append("late")
    return answered.selectExpr(*carried, *_merged(values, names))


def _has_tail(window: Window) -> bool:
    return window.kind is WindowKind.SLIDING


def _rows(
    at: DataFrame,
    group: Sequence[str],
    window: Window,
    values: Sequence[Value],
    carried: Sequence[str],
    *,
    enters_apart: bool,
) -> DataFrame:
    """Return the rows that query, and the rows by which events enter a prefix and a suffix.

    enters_apart: whether an event enters the prefix by a row of its own, and not by the row that queries.
    """
    kinds = [_QUERY] + [_PREFIX] * enters_apart + [_SUFFIX] * _has_tail(window)
    counts = " OR ".join(f"{value.column} IS NOT NULL" for value in values)
    adds = (
        f"({_KIND} = {_QUERY} OR ({ACCEPTED_MS} IS NOT NULL AND {SEEN_BLOCK} = {EVENT_BLOCK} AND ({counts})))"
    )
    own = (
        "false"
        if enters_apart
        else f"({ACCEPTED_MS} IS NOT NULL AND {EVENT_BLOCK} = {block_of(HEAD, window)})"
    )
    in_prefix = f"({_KIND} = {_PREFIX} OR ({_KIND} = {_QUERY} AND {own}))"
    is_query = f"{_KIND} = {_QUERY}"
    size = 0 if window.size_ms is None else window.size_ms
    tail = f"coalesce(try_subtract({HEAD}, {size}L), {_LEAST})"
    return (
        at.selectExpr("*", f"explode(array({', '.join(map(str, kinds))})) AS {_KIND}")
        .where(adds)
        .selectExpr(
            *group,
            NUMBER,
            ACCEPTED_MS,
            HEAD,
            _KIND,
            f"CASE {_KIND} WHEN {_QUERY} THEN {block_of(HEAD, window)} WHEN {_PREFIX} THEN {EVENT_BLOCK} "
            f"ELSE {EVENT_BLOCK} + 1 END AS {BLOCK}",
            f"CASE WHEN {is_query} THEN {HEAD} ELSE {ORDER_TIME} END AS {ORDER_TIME}",
            f"CASE WHEN {is_query} THEN {NUMBER} ELSE {ORDER_NUMBER} END AS {ORDER_NUMBER}",
            f"CASE WHEN {is_query} THEN {tail} ELSE {ACCEPTED_MS} END AS {_TAIL}",
            f"CASE WHEN {is_query} THEN 1 ELSE 0 END AS {_IS_QUERY}",
            *(
                f"CASE WHEN {in_prefix} THEN {value.column} END AS {value.column}_in_prefix"
                for value in values
            ),
            *(
                f"CASE WHEN {_KIND} = {_SUFFIX} THEN {value.column} END AS {value.column}_in_suffix"
                for value in values
            ),
            *(
                f"CASE WHEN {is_query} THEN {quoted(name)} END AS {quoted(name)}"
                for name in carried
                if name != NUMBER
            ),
        )
    )


def _running(
    rows: DataFrame, group: Sequence[str], values: Sequence[Value], part: str, order: str
) -> DataFrame:
    """Return the rows with the states over all rows of their block up to and including the row itself."""
    frame = f"OVER (PARTITION BY {', '.join([*group, BLOCK])} ORDER BY {order} ROWS BETWEEN UNBOUNDED PRECEDING AND "
    now, before = f"{frame}CURRENT ROW)", f"{frame}1 PRECEDING)"
    made, losers, seconds = [], [], []
    for value in values:
        column = f"{value.column}_in_{part}"
        for state in value.states:
            name = _name(value, state, part)
            if state != states.SECOND:
                made.append(f"{states.kept(state, column, _PLACE, value.type)} {now} AS {name}")
                continue
            # The loser of a row is the earlier of its value and the latest one before it. The second latest value is
            # the latest of all losers.
            placed_value = f"struct({_PLACE}, {column} AS v)"
            latest = f"{states.kept(states.LAST, column, _PLACE, value.type)} {before}"
            made.append(f"{latest} AS {name}_before")
            lost = f"{name}_before IS NOT NULL AND {column} IS NOT NULL"
            losers.append(f"CASE WHEN {lost} THEN least({name}_before, {placed_value}) END AS {name}_loser")
            seconds.append(f"max({name}_loser) {now} AS {name}")
    running = rows.selectExpr("*", *made)
    return running.selectExpr("*", *losers).selectExpr("*", *seconds) if losers else running


def _with_stragglers(
    answered: DataFrame,
    at: DataFrame,
    group: Sequence[str],
    window: Window,
    values: Sequence[Value],
    seen_at_once: str,
) -> DataFrame:
    """Return the queries with the states over the stragglers that each of them sees.

    seen_at_once: SQL of whether a query sees a straggler that arrived while the head was where it is at the query.
    """
    late = at.where(is_straggler(window)).selectExpr(
        *(f"{name} AS late_{place}" for place, name in enumerate(group)),
        f"{SEEN_BLOCK} AS late_block",
        f"{ORDER_TIME} AS late_order",
        f"{NUMBER} AS late_number",
        f"{ACCEPTED_MS} AS late_time",
        *(value.column for value in values),
    )
    queries = answered.selectExpr(NUMBER, *group, BLOCK, HEAD, _TAIL)
    alike = F.col(BLOCK) == F.col("late_block")
    for place, name in enumerate(group):
        alike = alike & F.col(name).eqNullSafe(F.col(f"late_{place}"))
    seen = F.expr(
        f"(late_order < {HEAD} OR (late_order = {HEAD} AND {seen_at_once})) AND late_time > {_TAIL}"
    )
    where = "late_time AS t, late_number AS n"
    made = []
    for value in values:
        for state in value.states:
            name = _name(value, state, "late")
            if state == states.SECOND:
                placed_value = f"struct({where}, {value.column} AS v)"
                all_of = f"collect_list(CASE WHEN {value.column} IS NOT NULL THEN {placed_value} END)"
                made.append(F.expr(f"get(sort_array({all_of}, false), 1)").alias(name))
            else:
                made.append(F.expr(states.kept(state, value.column, where, value.type)).alias(name))
    joined = queries.join(late, alike & seen).groupBy(NUMBER).agg(*made)
    return answered.join(joined, NUMBER, "left")


def _merged(values: Sequence[Value], parts: Sequence[str]) -> list[str]:
    """SQL of the states over whole windows, merged from their parts: prefix, suffix, late."""
    made: list[str] = []
    for value in values:
        for state in value.states:
            if state == states.MEAN:
                continue
            columns = [_name(value, state, part) for part in parts]
            if state == states.SECOND:
                columns += [_name(value, states.LAST, part) for part in parts]
            counts = [_name(value, states.COUNT, part) for part in parts]
            variances = [
                (_name(value, states.MEAN, part), _name(value, states.VARIANCE, part)) for part in parts
            ]
            made.append(f"{states.merged(state, columns, counts, variances)} AS {value.column}_{state}")
    return made


def _name(value: Value, state: str, part: str) -> str:
    """Return the column of a state over one part of the window."""
    return f"{value.column}_{state}_{part}"
