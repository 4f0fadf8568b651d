"""The types of expressions: turns parsed syntax into a tree whose every node knows its type."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from tests.oracle import syntax
from tests.oracle.errors import DefinitionRefused, QueryRefused
from tests.oracle.exact import normalised
from tests.oracle.types import (
    BOOLEAN,
    DECIMAL_DIGITS,
    DOUBLE,
    LONG,
    LONG_MAX,
    LONG_MIN,
    NULL,
    STRING,
    TIMESTAMP,
    Type,
    Value,
    decimal,
    parse_type,
)
from tests.oracle.zones import zone_names

_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")


@dataclass(frozen=True)
class Typed:
    """An operation on typed arguments; `value` is a literal's value, a field's name, or a pattern.

    `operation`: literal, field, neg, + - * / %, = <> < <= > >=, and, or, not, in, like, is_null, case
    (condition, branch, ..., otherwise), coalesce, abs, lower, upper, to_double, ||, cast (`value`: how many digits
    a decimal may have), parts of times (`value`: in which zone), greatest, least, nullif (the value, whether the two
    are equal), and functions by name.
    """

    type: Type
    operation: str
    arguments: tuple["Typed", ...] = ()
    value: Value = None


def infer(node: syntax.Expression, fields: Mapping[str, Type]) -> Typed:
    """The typed tree of an expression over these fields; raises QueryRefused where the types do not fit."""
    if isinstance(node, syntax.Literal):
        return _literal(node)
    if isinstance(node, syntax.Field):
        return _field(node, fields)
    if isinstance(node, syntax.Binary):
        return _binary(node, fields)
    if isinstance(node, syntax.Case):
        return _case(node, fields)
    if isinstance(node, syntax.In):
        members = tuple(_comparison("=", node.operand, member, fields) for member in node.members)
        return Typed(BOOLEAN, "in", members)
    if isinstance(node, syntax.Call):
        return _call(node, fields)
    operand = infer(node.operand, fields)
    if isinstance(node, syntax.Cast):
        return _cast(operand, node.type)
    if isinstance(node, syntax.Like):
        return Typed(BOOLEAN, "like", (_of_kind(operand, "LIKE", "string"),), _checked_pattern(node.pattern))
    if isinstance(node, syntax.IsNull):
        return Typed(BOOLEAN, "is_null", (operand,))
    if isinstance(node, syntax.Not):
        return Typed(BOOLEAN, "not", (_of_kind(operand, "NOT", "boolean"),))
    return Typed(operand.type, "neg", (_of_kind(operand, "minus", "long", "double", "decimal"),))


def _of_kind(typed: Typed, where: str, *kinds: str) -> Typed:
    if typed.type.kind not in kinds:
        raise QueryRefused(f"{where} takes {' or '.join(kinds)}, not {typed.type}")
    return typed


def _field(node: syntax.Field, fields: Mapping[str, Type]) -> Typed:
    if node.name not in fields:
        raise QueryRefused(f"no field {node.name!r}")
    declared = fields[node.name]
    return Typed(decimal(declared.scale) if declared.kind == "decimal" else declared, "field", (), node.name)


def _checked_pattern(pattern: str) -> str:
    escapes = len(pattern) - len(pattern.rstrip("\\"))
    if escapes % 2 == 1:
        raise QueryRefused("a pattern ends in an escape of nothing")
    return pattern


# --- literals


def _literal(node: syntax.Literal) -> Typed:
    """A literal by itself: a number with a point is a double."""
    if node.kind == "null":
        return Typed(NULL, "literal")
    if node.kind == "string":
        return Typed(STRING, "literal", (), node.text)
    if node.kind == "boolean":
        return Typed(BOOLEAN, "literal", (), node.text == "true")
    if node.kind == "integer":
        if not LONG_MIN <= int(node.text) <= LONG_MAX:
            raise QueryRefused(f"{node.text} is beyond 64 bits")
        return Typed(LONG, "literal", (), int(node.text))
    # Python's reader rounds once too, and does not write out what a great exponent means.
    value = normalised(float(node.text))
    if value is None:
        raise QueryRefused(f"{node.text} is beyond the doubles")
    return Typed(DOUBLE, "literal", (), value)


def _is_point(node: syntax.Expression) -> bool:
    return isinstance(node, syntax.Literal) and node.kind == "point"


def _decimal_literal(node: syntax.Expression) -> Typed:
    assert isinstance(node, syntax.Literal)
    whole, fraction = node.text.removeprefix("-").split(".")
    if len(fraction) > DECIMAL_DIGITS or len((whole + fraction).lstrip("0")) > DECIMAL_DIGITS:
        raise QueryRefused(f"{node.text} has more than {DECIMAL_DIGITS} digits")
    return Typed(decimal(len(fraction)), "literal", (), Fraction(node.text))


def _pair(
    left: syntax.Expression, right: syntax.Expression, fields: Mapping[str, Type]
) -> tuple[Typed, Typed]:
    """Both operands; a literal with a point is decimal where the other one is."""
    a, b = infer(left, fields), infer(right, fields)
    if _is_point(left) and b.type.kind == "decimal":
        a = _decimal_literal(left)
    elif _is_point(right) and a.type.kind == "decimal":
        b = _decimal_literal(right)
    return a, b


def _to_double(typed: Typed) -> Typed:
    return typed if typed.type == DOUBLE else Typed(DOUBLE, "to_double", (typed,))


# --- operators


def _binary(node: syntax.Binary, fields: Mapping[str, Type]) -> Typed:
    if node.operator in _COMPARISONS:
        return _comparison(node.operator, node.left, node.right, fields)
    if node.operator in ("and", "or"):
        both = infer(node.left, fields), infer(node.right, fields)
        return Typed(BOOLEAN, node.operator, tuple(_of_kind(x, node.operator, "boolean") for x in both))
    if node.operator == "||":
        both = infer(node.left, fields), infer(node.right, fields)
        return Typed(STRING, "||", tuple(_of_kind(x, "||", "string") for x in both))
    return _arithmetic(node.operator, *_pair(node.left, node.right, fields))


def _comparison(
    operator: str, left: syntax.Expression, right: syntax.Expression, fields: Mapping[str, Type]
) -> Typed:
    a, b = _pair(left, right, fields)
    alike = a.type.kind == b.type.kind or (a.type.numeric and b.type.numeric)
    if not (alike or NULL in (a.type, b.type)):
        raise QueryRefused(f"{a.type} does not compare with {b.type}")
    return Typed(BOOLEAN, operator, (a, b))


def _arithmetic(operator: str, a: Typed, b: Typed) -> Typed:
    if (
        a.type == TIMESTAMP
        and operator in "+-"
        and (b.type == LONG or (b.type, operator) == (TIMESTAMP, "-"))
    ):
        return Typed(TIMESTAMP if b.type == LONG else LONG, operator, (a, b))
    if not (a.type.numeric and b.type.numeric):
        raise QueryRefused(f"no {a.type} {operator} {b.type}")
    if operator == "/" or DOUBLE in (a.type, b.type):
        return Typed(DOUBLE, operator, (_to_double(a), _to_double(b)))
    if a.type == LONG and b.type == LONG:
        return Typed(LONG, operator, (a, b))
    scale = a.type.scale + b.type.scale if operator == "*" else max(a.type.scale, b.type.scale)
    if scale > DECIMAL_DIGITS:
        raise QueryRefused(f"{a.type} {operator} {b.type} would have {scale} digits after the point")
    return Typed(decimal(scale), operator, (a, b))


# --- branches and functions


def _case(node: syntax.Case, fields: Mapping[str, Type]) -> Typed:
    conditions = [_of_kind(infer(c, fields), "WHEN", "boolean") for c, _ in node.branches]
    results = _one_type([result for _, result in node.branches] + [node.otherwise], fields)
    pairs = [part for pair in zip(conditions, results[:-1], strict=True) for part in pair]
    return Typed(_common(results), "case", (*pairs, results[-1]))


def _call(node: syntax.Call, fields: Mapping[str, Type]) -> Typed:
    if node.function in ("coalesce", "greatest", "least"):
        results = _one_type(list(node.arguments), fields)
        return Typed(_common(results), node.function, tuple(results))
    if node.function == "nullif":
        left, right = node.arguments
        value, _ = _pair(left, right, fields)
        if value.type == NULL:
            raise QueryRefused("NULLIF of NULL")
        return Typed(value.type, "nullif", (value, _comparison("=", left, right, fields)))
    operand = infer(node.arguments[0], fields)
    if node.function in ("round", "floor", "ceil"):
        return _whole(node, _of_kind(operand, node.function, "long", "double", "decimal"))
    if node.function == "sqrt":
        return Typed(DOUBLE, "sqrt", (_to_double(_of_kind(operand, "SQRT", "long", "double", "decimal")),))
    if node.function == "substr":
        places = [_of_kind(infer(place, fields), "SUBSTR", "long") for place in node.arguments[1:]]
        return Typed(STRING, "substr", (_of_kind(operand, "SUBSTR", "string"), *places))
    if node.function in ("hour", "minute", "day_of_week", "day", "month", "year"):
        if node.zone not in zone_names():
            raise QueryRefused(f"no time zone {node.zone!r}")
        return Typed(LONG, node.function, (_of_kind(operand, node.function, "timestamp"),), node.zone)
    if node.function == "length":
        return Typed(LONG, "length", (_of_kind(operand, "LENGTH", "string"),))
    if node.function == "abs":
        return Typed(operand.type, "abs", (_of_kind(operand, "ABS", "long", "double", "decimal"),))
    return Typed(STRING, node.function, (_of_kind(operand, node.function, "string"),))


def _whole(node: syntax.Call, operand: Typed) -> Typed:
    """ROUND, FLOOR, CEIL."""
    scale = 0
    if len(node.arguments) == 2:
        digits = node.arguments[1]
        if operand.type.kind != "decimal" or not isinstance(digits, syntax.Literal):
            raise QueryRefused("digits are a literal beside a decimal")
        if digits.kind != "integer" or not 0 <= int(digits.text) <= operand.type.scale:
            raise QueryRefused(f"{operand.type} cannot be rounded to {digits.text} digits")
        scale = int(digits.text)
    kept = operand.type if operand.type.kind != "decimal" else decimal(scale)
    return Typed(kept, node.function, (operand,))


_CASTS = {
    ("long", "double"),
    ("decimal", "double"),
    ("double", "long"),
    ("decimal", "long"),
    ("long", "decimal"),
    ("decimal", "decimal"),
    ("long", "timestamp"),
    ("timestamp", "long"),
    ("long", "string"),
    ("string", "long"),
}


def _cast(operand: Typed, text: str) -> Typed:
    try:
        to = parse_type(text)
    except DefinitionRefused as refused:
        raise QueryRefused(str(refused)) from refused
    if (operand.type.kind, to.kind) not in _CASTS:
        raise QueryRefused(f"no {to} is made of a {operand.type}")
    if to == DOUBLE:
        return _to_double(operand)
    made = decimal(to.scale) if to.kind == "decimal" else to
    return Typed(made, "cast", (operand,), to.precision)


def _common(results: Sequence[Typed]) -> Type:
    types = [r.type for r in results if r.type != NULL]
    if not types:
        raise QueryRefused("nothing but NULL has no type")
    return types[0]


def _one_type(nodes: list[syntax.Expression], fields: Mapping[str, Type]) -> list[Typed]:
    """Branches brought to one type: long widens to double, a literal with a point to the decimals' scale."""
    results = [infer(node, fields) for node in nodes]
    decimals = {r.type.scale for r in results if r.type.kind == "decimal"}
    if len(decimals) == 1:
        scale = decimals.pop()
        results = [_at_scale(n, scale) if _is_point(n) else r for n, r in zip(nodes, results, strict=True)]
    if {r.type.kind for r in results} - {"null"} == {"long", "double"}:
        results = [r if r.type == NULL else _to_double(r) for r in results]
    if len({r.type for r in results} - {NULL}) > 1:
        raise QueryRefused(f"branches of several types: {', '.join(str(r.type) for r in results)}")
    return results


def _at_scale(node: syntax.Expression, scale: int) -> Typed:
    literal = _decimal_literal(node)
    assert isinstance(literal.value, Fraction)
    unscaled = literal.value * 10**scale
    if unscaled.denominator != 1 or abs(unscaled) >= 10**DECIMAL_DIGITS:
        raise QueryRefused(f"{literal.value} has no place at scale {scale}")
    return Typed(decimal(scale), "literal", (), literal.value)
