"""Translates typed expressions, from which the engine's programs are compiled, to Spark SQL text.

The SQL is for sessions with spark.sql.ansi.enabled=false. Every operand appears once in the text, so that nesting does
not multiply it. Times are BIGINT milliseconds. LOWER and UPPER use the language's own tables, which map each code point
by itself (Unicode 14.0).
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from importlib import resources
from math import ceil, floor

from railgun.language.typed import Apply, Constant, Field, InZone, Operation, TypedExpression
from railgun.language.types import DECIMAL_DIGITS, Kind, Type
from railgun.spark.errors import SparkSideError
from railgun.spark.validation.function_text import (
    OF_NUMBERS,
    OF_STRINGS,
    OF_TIMES,
    cast,
    in_zone,
    of_numbers,
    of_strings,
    of_times,
)
from railgun.wire.schema import STRING_LIMIT_BYTES

_SEPARATOR = "\x01"


def mapped_case(operand: str, *, upper: bool) -> str:
    """SQL text of LOWER and UPPER. Spark's functions serve for ASCII alone, because they have another Unicode version,
    and rules that depend on the context.
    """
    function = "upper" if upper else "lower"
    looked_up = f"transform(split(s, ''), c -> coalesce(element_at({_table(function)}, c), c))"
    mapped = f"IF(octet_length(s) = char_length(s), {function}(s), array_join({looked_up}, ''))"
    fitting = f"IF(octet_length(s) <= {STRING_LIMIT_BYTES}, s, CAST(NULL AS STRING))"
    return f"transform(transform(array({operand}), s -> {mapped}), s -> {fitting})[0]"


@cache
def _table(direction: str) -> str:
    """SQL text of a map from characters to their mappings."""
    keys: list[str] = []
    values: list[str] = []
    text = resources.files("railgun.language").joinpath("casemap.txt").read_text("utf-8")
    for line in text.splitlines():
        if line.startswith(direction):
            _, code_point, *mapped = line.split()
            keys.append(chr(int(code_point, 16)))
            values.append("".join(chr(int(point, 16)) for point in mapped))
    return f"map_from_arrays({_listed(keys)}, {_listed(values)})"


def _listed(texts: list[str]) -> str:
    joined = _SEPARATOR.join(texts).encode().hex()
    return f"split(CAST(X'{joined}' AS STRING), '{_SEPARATOR}')"


FIELD_PREFIX = "f_"
"""The prefix of fields' columns, so that no field has the name of another column."""

_WIDE = 38
_LONG_DIGITS = 19
_LONG_MIN = -(1 << 63)
_TRY = {
    Operation.ADD: "try_add",
    Operation.SUBTRACT: "try_subtract",
    Operation.MULTIPLY: "try_multiply",
    Operation.REMAINDER: "try_mod",
}
_INFINITY = "CAST('Infinity' AS DOUBLE)"
_COMPARISONS = (
    Operation.EQUAL,
    Operation.UNEQUAL,
    Operation.LESS,
    Operation.LESS_EQUAL,
    Operation.GREATER,
    Operation.GREATER_EQUAL,
)
_MIRRORED = {
    Operation.LESS: Operation.GREATER,
    Operation.LESS_EQUAL: Operation.GREATER_EQUAL,
    Operation.GREATER: Operation.LESS,
    Operation.GREATER_EQUAL: Operation.LESS_EQUAL,
}
_NAMES = {
    Kind.STRING: "STRING",
    Kind.LONG: "BIGINT",
    Kind.DOUBLE: "DOUBLE",
    Kind.BOOLEAN: "BOOLEAN",
    Kind.TIMESTAMP: "BIGINT",
    Kind.NULL: "BOOLEAN",
}


class InexpressibleError(SparkSideError):
    """Spark has no equal expression. The report lists the metric as not checked."""


def quoted(name: str) -> str:
    """Return a column's name in SQL."""
    return f"`{name}`"


def type_name(type_: Type) -> str:
    """Return the SQL name of a type of fields and expressions."""
    if type_.kind is Kind.DECIMAL:
        return f"DECIMAL({type_.precision},{type_.scale})"
    return _NAMES[type_.kind]


def text_literal(text: str) -> str:
    """Return the SQL literal of any string."""
    return f"CAST(X'{text.encode().hex()}' AS STRING)" if text else "''"


@dataclass(frozen=True, slots=True)
class _Bound(TypedExpression):
    """An operand whose value already has a name in the SQL text."""

    name: str


def sql_of(expression: TypedExpression) -> str:
    """Return the SQL text of an expression, with equal values on every event. Raises InexpressibleError."""
    match expression:
        case Field(name=name):
            return quoted(FIELD_PREFIX + name)
        case Constant():
            return _constant(expression)
        case _Bound(name=name):
            return name
        case Apply(operation=operation, arguments=arguments):
            return _apply(expression.type, operation, arguments)
        case _:
            raise TypeError(f"no typed expression: {expression!r}")


def _constant(constant: Constant) -> str:
    value, type_ = constant.value, constant.type
    if value is None:
        return f"CAST(NULL AS {type_name(type_)})"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return text_literal(value)
    if isinstance(value, float):
        return f"CAST('{value!r}' AS DOUBLE)"
    if type_.kind is Kind.DECIMAL:
        return _decimal_literal(value, type_.precision, type_.scale)
    return f"CAST('{value}' AS BIGINT)"


def _decimal_literal(unscaled: int, precision: int, scale: int) -> str:
    return f"CAST('{unscaled}E-{scale}' AS DECIMAL({precision},{scale}))"


def _apply(type_: Type, operation: Operation, arguments: tuple[TypedExpression, ...]) -> str:
    if operation in _COMPARISONS:
        return _comparison(operation, *arguments)
    if operation in (Operation.AND, Operation.OR):
        return "(" + f" {operation} ".join(map(sql_of, arguments)) + ")"
    if operation is Operation.IN:
        return _in(arguments[0], arguments[1:])
    if operation is Operation.CASE:
        return _case(type_, arguments)
    if operation in (Operation.COALESCE, Operation.GREATEST, Operation.LEAST):
        return f"{operation}({', '.join(_as(type_, each) for each in arguments)})"
    if operation is Operation.NULLIF:
        return _nullif(type_, *arguments)
    if operation is Operation.CAST:
        of = arguments[0]
        return cast(of.type, type_, _exact(of) if type_.kind is Kind.DECIMAL else sql_of(of))
    if isinstance(arguments[-1], InZone):
        return in_zone(arguments[-1].zone, sql_of(arguments[0]))
    if operation in OF_STRINGS:
        return of_strings(operation, [sql_of(each) for each in arguments])
    if operation in OF_TIMES:
        return of_times(operation, sql_of(arguments[0]))
    if operation in OF_NUMBERS:
        return of_numbers(operation, type_, sql_of(arguments[0]))
    if len(arguments) == 2 and operation is not Operation.LIKE:
        return _arithmetic(type_, operation, *arguments)
    operand = sql_of(arguments[0])
    match operation:
        case Operation.NOT:
            return f"(NOT {operand})"
        case Operation.IS_NULL:
            return f"({operand} IS NULL)"
        case Operation.LIKE:
            return f"({operand} LIKE {text_literal(_pattern(arguments[1]))})"
        case Operation.TO_DOUBLE:
            return f"CAST({operand} AS DOUBLE)"
        case Operation.LOWER | Operation.UPPER:
            return mapped_case(operand, upper=operation is Operation.UPPER)
        case Operation.NEGATE:
            return f"try_subtract(0L, {operand})" if type_.kind is Kind.LONG else f"(- {operand})"
        case Operation.ABS:
            # Without ANSI mode abs(-2^63) is -2^63, which has to be null.
            return (
                f"nullif(abs({operand}), CAST('{_LONG_MIN}' AS BIGINT))"
                if type_.kind is Kind.LONG
                else f"abs({operand})"
            )
        case _:
            raise InexpressibleError(f"{operation} has no counterpart in Spark")


def _arithmetic(type_: Type, operation: Operation, left: TypedExpression, right: TypedExpression) -> str:
    if operation is Operation.DIVIDE:
        return _finite(f"try_divide({sql_of(left)}, {sql_of(right)})")
    if type_.kind is Kind.DOUBLE:
        a, b = sql_of(left), sql_of(right)
        return _finite(f"try_mod({a}, {b})" if operation is Operation.REMAINDER else f"({a} {operation} {b})")
    if type_.kind is not Kind.DECIMAL:
        return f"{_TRY[operation]}({sql_of(left)}, {sql_of(right)})"
    made = f"{_TRY[operation]}({_exact(left)}, {_exact(right)})"
    return f"try_cast({made} AS DECIMAL({DECIMAL_DIGITS},{type_.scale}))"


def _finite(value: str) -> str:
    """SQL of a double that is null where it is infinite. Operands are finite, so that it is never NaN."""
    return f"nullif(nullif({value}, {_INFINITY}), -{_INFINITY})"


def _exact(operand: TypedExpression) -> str:
    """SQL of a long or decimal as a decimal."""
    return (
        f"CAST({sql_of(operand)} AS DECIMAL({_LONG_DIGITS},0))"
        if operand.type.kind is Kind.LONG
        else sql_of(operand)
    )


def _as(type_: Type, value: TypedExpression) -> str:
    """SQL of a branch, cast to the common type, because the decimals of branches may differ in precision."""
    return f"CAST({sql_of(value)} AS {type_name(type_)})" if type_.kind is Kind.DECIMAL else sql_of(value)


def _case(type_: Type, parts: tuple[TypedExpression, ...]) -> str:
    branches = [
        f"WHEN {sql_of(condition)} THEN {_as(type_, value)}"
        for condition, value in zip(parts[:-1:2], parts[1:-1:2])
    ]
    return f"(CASE {' '.join(branches)} ELSE {_as(type_, parts[-1])} END)"


def _nullif(type_: Type, value: TypedExpression, other: TypedExpression) -> str:
    """SQL of NULLIF. Operands get names unless they are literals, since a comparison depends on the literal's value."""
    a = value if isinstance(value, Constant) else _Bound(value.type, "q.a")
    b = other if isinstance(other, Constant) else _Bound(other.type, "q.b")
    equal = _comparison(Operation.EQUAL, a, b)
    chosen = f"CASE WHEN {equal} THEN CAST(NULL AS {type_name(type_)}) ELSE q.a END"
    return f"transform(array(struct({sql_of(value)} AS a, {sql_of(other)} AS b)), q -> {chosen})[0]"


def _in(operand: TypedExpression, items: tuple[TypedExpression, ...]) -> str:
    kinds = {item.type.kind for item in items if item.type.kind is not Kind.NULL}
    is_null = [item for item in items if isinstance(item, Constant) and item.value is None]
    others = [item for item in items if item not in is_null]
    if kinds <= {operand.type.kind}:
        listed = [sql_of(item) for item in others] + ["NULL"] * bool(is_null)
        return f"({sql_of(operand)} IN ({', '.join(listed)}))"
    tests = [_comparison(Operation.EQUAL, operand, item) for item in others]
    return "(" + " OR ".join(tests + ["CAST(NULL AS BOOLEAN)"] * bool(is_null)) + ")"


def _pattern(constant: TypedExpression) -> str:
    """Return a LIKE pattern for Spark, which accepts a backslash only before characters that need one."""
    assert isinstance(constant, Constant)
    made, escaped = "", False
    for character in str(constant.value):
        if not escaped and character == "\\":
            escaped = True
            continue
        made += "\\" + character if escaped and character in "%_\\" else character
        escaped = False
    return made


# --- comparisons


def _comparison(operation: Operation, left: TypedExpression, right: TypedExpression) -> str:
    kinds = (left.type.kind, right.type.kind)
    if Kind.DOUBLE not in kinds or kinds[0] is kinds[1]:
        if Kind.DECIMAL in kinds:
            return f"({_exact(left)} {operation} {_exact(right)})"
        return f"({sql_of(left)} {operation} {sql_of(right)})"
    if kinds[0] is Kind.DOUBLE:
        left, right, operation = right, left, _MIRRORED.get(operation, operation)
    if isinstance(right, Constant) and isinstance(right.value, float):
        return _against_double(operation, left, right.value)
    if left.type.kind is Kind.LONG:
        return _long_with_double(operation, sql_of(left), sql_of(right))
    raise InexpressibleError(
        "Spark compares a decimal with a double by rounding the decimal, not by exact values"
    )


def _against_double(operation: Operation, exact: TypedExpression, value: float) -> str:
    """SQL that compares a long or decimal with a constant double, by the whole numbers of last digits next to it."""
    scale = exact.type.scale
    bound = Fraction(value) * 10**scale
    low, high = floor(bound), ceil(bound)
    limit, operator = {
        Operation.LESS: (high, "<"),
        Operation.GREATER_EQUAL: (high, ">="),
        Operation.GREATER: (low, ">"),
        Operation.LESS_EQUAL: (low, "<="),
    }.get(operation, (low, str(operation)))
    operand = _exact(exact)
    if operation in (Operation.EQUAL, Operation.UNEQUAL) and low != high:
        return _unless_null(operand, operation is Operation.UNEQUAL)
    if abs(limit) >= 10**_WIDE:
        is_below = limit > 0
        outcome = {"<": is_below, "<=": is_below, ">": not is_below, ">=": not is_below, "<>": True}
        return _unless_null(operand, outcome.get(operator, False))
    return f"({operand} {operator} {_decimal_literal(limit, _WIDE, scale)})"


def _unless_null(operand: str, outcome: bool) -> str:
    return f"(CASE WHEN {operand} IS NOT NULL THEN {'true' if outcome else 'false'} END)"


def _long_with_double(operation: Operation, a: str, b: str) -> str:
    """SQL that compares a long and a double by exact values. The long is rounded first, which keeps the order; if both
    are then equal, the double is compared as a whole number.
    """
    sign = (
        "CASE WHEN CAST(r.a AS DOUBLE) < r.b THEN -1 WHEN CAST(r.a AS DOUBLE) > r.b THEN 1 "
        "WHEN r.a IS NULL THEN NULL WHEN r.b >= CAST('9223372036854775808' AS DOUBLE) THEN -1 "
        "WHEN r.a < CAST(r.b AS BIGINT) THEN -1 WHEN r.a > CAST(r.b AS BIGINT) THEN 1 "
        "WHEN r.a IS NOT NULL AND r.b IS NOT NULL THEN 0 END"
    )
    return f"(transform(array(struct({a} AS a, {b} AS b)), r -> {sign})[0] {operation} 0)"
