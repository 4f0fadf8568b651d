"""Functions of the language in Spark SQL, for sessions with spark.sql.ansi.enabled=false.

Spark's own functions differ in corner cases: FLOOR of a double is a BIGINT; a double beyond 64 bits becomes the
greatest long; a string with spaces around a number is cast to that number; the root of a negative number is NaN. Each
operand appears once in the text.
"""

from railgun.language.typed import Operation
from railgun.language.types import Kind, Type
from railgun.language.zones import Zone
from railgun.wire.schema import STRING_LIMIT_BYTES

_NO_STRING = "CAST(NULL AS STRING)"
# More than the code points of any string; Spark counts them in 32 bits.
_PLACES = f"{STRING_LIMIT_BYTES + 1}L"
# 2**52: every double of this magnitude or more is a whole number.
_WHOLE_DOUBLES = "4503599627370496D"
_WHOLE = {
    Operation.ROUND: "WHEN r.x - r.t >= 0.5D THEN r.t + 1D WHEN r.x - r.t <= -0.5D THEN r.t - 1D",
    Operation.FLOOR: "WHEN r.x < r.t THEN r.t - 1D",
    Operation.CEIL: "WHEN r.x > r.t THEN r.t + 1D",
}
_WITHIN_64_BITS = (
    "r.x >= CAST('-9223372036854775808' AS DOUBLE) AND r.x < CAST('9223372036854775808' AS DOUBLE)"
)
# In hexadecimal, because a backslash is an escape in Spark's strings.
_WHOLE_NUMBER = "CAST(X'" + rb"\A-?[0-9]+\z".hex() + "' AS STRING)"

_DAY_MS = "86400000L"
_CYCLE_DAYS = "146097L"
# Spark counts days in 32 bits: times are moved by whole cycles of 400 years, in which leap years and weekdays repeat.
_DATE = "date_add(DATE'1970-01-01', CAST(pmod(r.d, " + _CYCLE_DAYS + ") AS INT))"
_CALENDAR = {
    Operation.HOUR: "r.ms DIV 3600000L",
    Operation.MINUTE: "r.ms DIV 60000L % 60L",
    Operation.DAY_OF_WEEK: "pmod(r.d + 3L, 7L) + 1L",
    Operation.DAY: f"CAST(day({_DATE}) AS BIGINT)",
    Operation.MONTH: f"CAST(month({_DATE}) AS BIGINT)",
    Operation.YEAR: f"year({_DATE}) + 400L * ((r.d - pmod(r.d, {_CYCLE_DAYS})) DIV {_CYCLE_DAYS})",
}

OF_STRINGS = frozenset({Operation.SUBSTR, Operation.LENGTH, Operation.TRIM, Operation.CONCATENATE})
OF_NUMBERS = frozenset({*_WHOLE, Operation.SQRT})
OF_TIMES = frozenset(_CALENDAR)


def bound(body: str, **operands: str) -> str:
    """SQL of a value whose operands are computed once. `body` refers to them as `r.<name>`."""
    fields = ", ".join(f"{text} AS {name}" for name, text in operands.items())
    return f"transform(array(struct({fields})), r -> {body})[0]"


def of_strings(operation: Operation, operands: list[str]) -> str:
    """SQL text of one of OF_STRINGS."""
    match operation:
        case Operation.SUBSTR if len(operands) == 2:
            part = f"substring(r.s, CAST(least(r.i, {_PLACES}) AS INT))"
            return bound(f"IF(r.i >= 1L, {part}, {_NO_STRING})", s=operands[0], i=operands[1])
        case Operation.SUBSTR:
            part = f"substring(r.s, CAST(least(r.i, {_PLACES}) AS INT), CAST(least(r.n, {_PLACES}) AS INT))"
            body = f"IF(r.i >= 1L AND r.n >= 0L, {part}, {_NO_STRING})"
            return bound(body, s=operands[0], i=operands[1], n=operands[2])
        case Operation.LENGTH:
            return f"CAST(char_length({operands[0]}) AS BIGINT)"
        case Operation.TRIM:
            return f"trim(BOTH ' ' FROM {operands[0]})"
        case _:
            fits = f"octet_length(r.a) + octet_length(r.b) <= {STRING_LIMIT_BYTES}"
            return bound(f"IF({fits}, concat(r.a, r.b), {_NO_STRING})", a=operands[0], b=operands[1])


def of_numbers(operation: Operation, type_: Type, operand: str) -> str:
    """SQL text of one of OF_NUMBERS, whose result has this type."""
    if operation is Operation.SQRT:
        return bound("IF(r.x >= 0D, sqrt(r.x), CAST(NULL AS DOUBLE))", x=operand)
    if type_.kind is Kind.DECIMAL:
        whole = operand if operation is Operation.ROUND else f"{operation}({operand})"
        return f"CAST({whole} AS DECIMAL({type_.precision},{type_.scale}))"
    whole = f"CASE WHEN abs(r.x) >= {_WHOLE_DOUBLES} THEN r.x {_WHOLE[operation]} ELSE r.t END"
    cut = f"transform(array({operand}), x -> struct(x AS x, CAST(CAST(x AS BIGINT) AS DOUBLE) AS t))"
    return f"transform({cut}, r -> {whole})[0]"


def of_times(operation: Operation, operand: str) -> str:
    """SQL text of one of OF_TIMES. DIV rounds toward zero, so that days before 1970 need a correction."""
    ms = f"pmod(t, {_DAY_MS})"
    day = f"t DIV {_DAY_MS} - IF(t % {_DAY_MS} < 0L, 1L, 0L)"
    parts = f"transform(array({operand}), t -> struct({day} AS d, {ms} AS ms))"
    return f"transform({parts}, r -> {_CALENDAR[operation]})[0]"


def in_zone(zone: Zone, operand: str) -> str:
    """SQL text of IN_ZONE, by the zone's own table, because the JVM has tables of another release."""
    before_s, changes = zone.offsets
    moments = _longs([1_000 * moment for moment, _ in changes])
    offsets = _longs([1_000 * before_s, *(1_000 * offset_s for _, offset_s in changes)])
    passed = f"size(filter({moments}, m -> m <= r.t))"
    return bound(f"IF(r.t IS NULL, NULL, try_add(r.t, element_at({offsets}, {passed} + 1)))", t=operand)


def _longs(numbers: list[int]) -> str:
    """SQL of an array of longs, which may be empty."""
    return (
        f"CAST(split('{','.join(map(str, numbers))}', ',') AS ARRAY<BIGINT>)"
        if numbers
        else "CAST(array() AS ARRAY<BIGINT>)"
    )


def cast(of: Type, to: Type, operand: str) -> str:
    """SQL text of `CAST(operand AS to)`. The operand of a cast to decimal is a decimal already."""
    match of.kind, to.kind:
        case _, Kind.DECIMAL:
            return f"try_cast({operand} AS DECIMAL({to.precision},{to.scale}))"
        case Kind.DOUBLE, Kind.LONG:
            return bound(f"IF({_WITHIN_64_BITS}, CAST(r.x AS BIGINT), CAST(NULL AS BIGINT))", x=operand)
        case Kind.DECIMAL, Kind.LONG:
            return f"CAST({operand} AS BIGINT)"
        case Kind.STRING, Kind.LONG:
            number = "try_cast(r.s AS BIGINT)"
            return bound(f"IF(r.s RLIKE {_WHOLE_NUMBER}, {number}, CAST(NULL AS BIGINT))", s=operand)
        case Kind.LONG, Kind.STRING:
            return f"CAST({operand} AS STRING)"
        case _:
            # A timestamp is its milliseconds.
            return operand
