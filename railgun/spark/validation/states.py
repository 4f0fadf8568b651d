"""Aggregates as states that Spark's functions accumulate and merge. No value is ever removed from a state."""

from collections.abc import Sequence
from dataclasses import dataclass

from railgun.language.ast import Aggregator
from railgun.language.types import Kind, Type

# The names of states: how many values; their exact sum as a whole number; for doubles, the sums of the values and of
# their magnitudes; mean and population variance; the least, greatest, first, last and second to last value.
COUNT, WHOLE, SUM, ABS_SUM, MEAN, VARIANCE = "n", "i", "s", "a", "mean", "var"
LEAST, GREATEST, FIRST, LAST, SECOND = "lo", "hi", "first", "last", "second"

# The largest relative error of one rounding of a double, and more than the absolute error of an underflow.
_ROUNDING = "CAST('1.1102230246251565E-16' AS DOUBLE)"
_UNDERFLOW = "CAST('1E-321' AS DOUBLE)"
# Values are widened to this many digits before they are summed. Spark's sum then has ten more.
_DIGITS_OF_SUMS = 26
_VARIANCES = (Aggregator.VAR_POP, Aggregator.VAR_SAMP, Aggregator.STDDEV_POP, Aggregator.STDDEV_SAMP)
_SAMPLES = (Aggregator.VAR_SAMP, Aggregator.STDDEV_SAMP)
_DEVIATIONS = (Aggregator.STDDEV_POP, Aggregator.STDDEV_SAMP)


@dataclass(frozen=True, slots=True)
class Expected:
    """The expected result of a metric, as SQL over merged states.

    value: SQL of the result.  tolerance: SQL of the allowed difference of a double; None if there must be none.
    of_square: whether `value` is that of the square of the recorded result.
    """

    value: str
    tolerance: str | None = None
    of_square: bool = False


def states_of(aggregator: Aggregator, argument: Type | None) -> tuple[str, ...]:
    """Return the states from which an aggregate is computed. count_distinct has none, since `distinct` computes it."""
    if aggregator in (Aggregator.SUM, Aggregator.AVG):
        return (
            (COUNT, SUM, ABS_SUM) if argument is not None and argument.kind is Kind.DOUBLE else (COUNT, WHOLE)
        )
    if aggregator in _VARIANCES:
        return (COUNT, MEAN, VARIANCE)
    return {
        Aggregator.COUNT: (COUNT,),
        Aggregator.MIN: (LEAST,),
        Aggregator.MAX: (GREATEST,),
        Aggregator.FIRST: (FIRST,),
        Aggregator.LAST: (LAST,),
        Aggregator.PREV: (LAST, SECOND),
    }[aggregator]


def kept(state: str, value: str, place: str, type_: Type) -> str:
    """SQL of the aggregate function that computes a state from the non-null values of a column.

    state: any but SECOND.  place: SQL of a struct of accepted time and number.
    """
    placed = f"(CASE WHEN {value} IS NOT NULL THEN struct({place}, {value} AS v) END)"
    whole = f"CAST({value} * {10**type_.scale}BD AS DECIMAL({_DIGITS_OF_SUMS},0))"
    return {
        COUNT: f"count({value})",
        WHOLE: f"sum({whole})",
        SUM: f"sum({value})",
        ABS_SUM: f"sum(abs({value}))",
        MEAN: f"avg(CAST({value} AS DOUBLE))",
        VARIANCE: f"var_pop(CAST({value} AS DOUBLE))",
        LEAST: f"min({value})",
        GREATEST: f"max({value})",
        FIRST: f"min({placed})",
        LAST: f"max({placed})",
    }[state]


def merged(
    state: str, parts: Sequence[str], counts: Sequence[str], variances: Sequence[tuple[str, str]]
) -> str:
    """SQL of a state of several parts, merged from the states of the parts, which hold different rows.

    parts: the state's columns.  counts, variances: for VARIANCE, the columns of COUNT and of (MEAN, VARIANCE)
    of each part.
    """
    if state in (COUNT, WHOLE, SUM, ABS_SUM):
        zero = "0" if state in (COUNT, WHOLE) else "0D"
        return "(" + " + ".join(f"coalesce({part}, {zero})" for part in parts) + ")"
    if state in (LEAST, FIRST):
        return parts[0] if len(parts) == 1 else f"least({', '.join(parts)})"
    if state in (GREATEST, LAST):
        return parts[0] if len(parts) == 1 else f"greatest({', '.join(parts)})"
    if state == SECOND:
        return f"get(sort_array(filter(array({', '.join(parts)}), x -> x IS NOT NULL), false), 1)"
    structs = ", ".join(
        f"struct(CAST(coalesce({n}, 0) AS DOUBLE) AS n, coalesce({mean}, 0D) AS mean, coalesce({var} * {n}, 0D) AS m2)"
        for n, (mean, var) in zip(counts, variances)
    )
    joined = (
        "struct(x.n + y.n AS n, x.mean + (y.mean - x.mean) * (y.n / (x.n + y.n)) AS mean, "
        "x.m2 + y.m2 + (y.mean - x.mean) * (y.mean - x.mean) * (x.n * (y.n / (x.n + y.n))) AS m2)"
    )
    chosen = f"CASE WHEN y.n = 0D THEN x WHEN x.n = 0D THEN y ELSE {joined} END"
    return f"aggregate(array({structs}), struct(0D AS n, 0D AS mean, 0D AS m2), (x, y) -> {chosen})"


def expected(aggregator: Aggregator, argument: Type | None, column: str) -> Expected:
    """Return the expected result, from the merged states in the columns `<column>_<state>`."""
    count = f"{column}_{COUNT}"
    if aggregator is Aggregator.COUNT:
        return Expected(count)
    if aggregator in (Aggregator.SUM, Aggregator.AVG):
        assert argument is not None
        made = _of_sum(aggregator, argument, column, count)
        return Expected(f"CASE WHEN {count} > 0 THEN {made.value} END", made.tolerance)
    if aggregator in _VARIANCES:
        return _of_variance(aggregator, f"{column}_{VARIANCE}")
    state = {
        Aggregator.MIN: LEAST,
        Aggregator.MAX: GREATEST,
        Aggregator.FIRST: FIRST,
        Aggregator.LAST: LAST,
        Aggregator.PREV: SECOND,
    }[aggregator]
    return Expected(f"{column}_{state}" + (".v" if state in (FIRST, LAST, SECOND) else ""))


def _of_sum(aggregator: Aggregator, argument: Type, column: str, count: str) -> Expected:
    """Return the sum or the average. A double has a tolerance, which bounds the errors of rounding."""
    if argument.kind is Kind.DOUBLE:
        bound = f"(2D * ({count} + 4) * {_ROUNDING} * {column}_{ABS_SUM})"
        if aggregator is Aggregator.SUM:
            return Expected(f"{column}_{SUM}", bound)
        average = f"({column}_{SUM} / {count})"
        return Expected(average, f"({bound} / {count} + 4D * {_ROUNDING} * abs({average}))")
    whole = f"{column}_{WHOLE}"
    if aggregator is Aggregator.SUM:
        return Expected(f"CAST({whole} AS DECIMAL(38,0))")
    if argument.kind is Kind.LONG:
        average = f"(CAST({whole} AS DOUBLE) / {count})"
        return Expected(average, f"(2D * {_ROUNDING} * abs({average}))")
    # Four more digits, rounded half away from zero, in whole numbers: Spark's division would round twice.
    scaled = f"(CAST({whole} AS DECIMAL(33,0)) * 10000BD)"
    divisor = f"CAST({count} AS DECIMAL(20,0))"
    rest = f"({scaled} % {divisor})"
    away = f"CASE WHEN 2BD * abs({rest}) >= {divisor} THEN sign({whole}) ELSE 0D END"
    quotient = f"CAST(({scaled} - {rest}) / {divisor} AS DECIMAL(37,0))"
    return Expected(f"CAST({quotient} + CAST({away} AS DECIMAL(1,0)) AS DECIMAL(38,0))")


def _of_variance(aggregator: Aggregator, state: str) -> Expected:
    """Return the variance, from n, the mean and m2, the sum of squared differences from the mean. The tolerance is the
    error bound of the updating formulas.
    """
    least, divisor = (2, f"({state}.n - 1D)") if aggregator in _SAMPLES else (1, f"{state}.n")
    squares = f"({state}.m2 + {state}.n * {state}.mean * {state}.mean)"
    step = f"(8D * ({state}.n + 4D) * {_ROUNDING})"
    bound = f"({step} * sqrt({state}.m2) * sqrt({squares}) + {step} * {step} * {squares} + {state}.n * {_UNDERFLOW})"
    value = f"({state}.m2 / {divisor})"
    tolerance = f"({bound} / {divisor} + 16D * {_ROUNDING} * {value})"
    return Expected(f"CASE WHEN {state}.n >= {least} THEN {value} END", tolerance, aggregator in _DEVIATIONS)
