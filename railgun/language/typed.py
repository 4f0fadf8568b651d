"""Typed expressions: the tree of a checked expression, in which every conversion is explicit.

Equal trees have equal values on every event. So metrics with equal trees share state, and programs are compiled from
these trees.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from railgun.language.types import Type
from railgun.language.zones import Zone

# long, timestamp: int; decimal: its scaled integer; double: float, never −0.0; boolean: bool; string: str.
ConstantValue = int | float | bool | str | None


class Operation(StrEnum):
    """The operation of an Apply. The result is null if an operand is null, except as noted.

    Arithmetic takes operands of one kind, that of its result, except decimals (long or decimal of any
    scale) and timestamps. Comparisons take any two numbers, or two of one kind.
    """

    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"
    REMAINDER = "%"
    CONCATENATE = "||"  # two strings
    NEGATE = "negate"
    ABS = "abs"
    EQUAL = "="
    UNEQUAL = "<>"
    LESS = "<"
    LESS_EQUAL = "<="
    GREATER = ">"
    GREATER_EQUAL = ">="
    AND = "and"  # two operands or more, three-valued
    OR = "or"  # two operands or more, three-valued
    NOT = "not"
    IS_NULL = "is_null"  # never null
    IN = "in"  # the operand, then the items; three-valued
    LIKE = "like"  # the operand, then the pattern: a constant string
    CASE = "case"  # condition, value, condition, value, ..., otherwise
    COALESCE = "coalesce"  # the first that is not null
    LOWER = "lower"
    UPPER = "upper"
    TO_DOUBLE = "to_double"  # a long or decimal, rounded to nearest, ties to even
    GREATEST = "greatest"  # two operands or more of one type; nulls are skipped
    LEAST = "least"  # likewise
    NULLIF = "nullif"  # the first operand; null if the two are equal, or if the first is null
    ROUND = (
        "round"  # of a double to a whole one, of a decimal to the scale of the result; half away from zero
    )
    FLOOR = "floor"  # likewise, of a decimal to scale 0
    CEIL = "ceil"
    SQRT = "sqrt"  # of a double; null of a negative one
    CAST = "cast"  # to the type of the result; TO_DOUBLE converts to double
    SUBSTR = "substr"  # the string, from which code point (the first is 1), perhaps how many
    LENGTH = "length"  # in code points
    TRIM = "trim"  # without the spaces (U+0020) at both ends
    HOUR = "hour"  # of a timestamp in UTC, as a long, like the five that follow
    MINUTE = "minute"
    DAY_OF_WEEK = "day_of_week"  # Monday is 1
    DAY = "day"  # of the month
    MONTH = "month"
    YEAR = "year"  # the year before 1 is 0, and the one before it −1
    IN_ZONE = "in_zone"  # a timestamp and a zone: the timestamp moved by the zone's offset from UTC


@dataclass(frozen=True, slots=True)
class TypedExpression:
    type: Type


@dataclass(frozen=True, slots=True)
class Field(TypedExpression):
    name: str


@dataclass(frozen=True, slots=True)
class Constant(TypedExpression):
    """A literal. Constants of different types are never equal, though 1 = 1.0 = True in Python."""

    value: ConstantValue


@dataclass(frozen=True, slots=True)
class InZone(TypedExpression):
    """A time zone, as the second argument of IN_ZONE."""

    zone: Zone


@dataclass(frozen=True, slots=True)
class Apply(TypedExpression):
    operation: Operation
    arguments: tuple[TypedExpression, ...]


Fields = Mapping[str, Type | TypedExpression]
"""The fields of a stream by name: the type of a recorded one, or the expression of a computed one."""


def types_of(fields: Fields) -> dict[str, Type]:
    """The types of fields by name."""
    return {name: each if isinstance(each, Type) else each.type for name, each in fields.items()}


def measured(expression: TypedExpression) -> tuple[int, int]:
    """(number of nodes of a tree, its depth). A part that occurs twice is measured once and counts twice."""
    known: dict[int, tuple[int, int]] = {}

    def of(part: TypedExpression) -> tuple[int, int]:
        if not isinstance(part, Apply):
            return 1, 1
        found = known.get(id(part))
        if found is None:
            below = [of(each) for each in part.arguments]
            found = 1 + sum(size for size, _ in below), 1 + max(depth for _, depth in below)
            known[id(part)] = found
        return found

    return of(expression)


def fields_of(expression: TypedExpression) -> frozenset[str]:
    """The names of the fields that an expression reads."""
    match expression:
        case Field(name=name):
            return frozenset((name,))
        case Apply(arguments=arguments):
            return frozenset().union(*(fields_of(argument) for argument in arguments))
        case _:
            return frozenset()


def zones_of(expression: TypedExpression) -> frozenset[Zone]:
    """The time zones that an expression names."""
    match expression:
        case InZone(zone=zone):
            return frozenset((zone,))
        case Apply(arguments=arguments):
            return frozenset().union(*(zones_of(argument) for argument in arguments))
        case _:
            return frozenset()
