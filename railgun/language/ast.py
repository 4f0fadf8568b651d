"""The syntax tree of a query or a DERIVE, as it was written, before any field or type is known.

Every node is frozen and compares by meaning: its position in the text takes no part in equality or hashing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from railgun.language.types import Type


class Aggregator(StrEnum):
    """The aggregators of metrics. `stddev` is `STDDEV_SAMP`; `count(*)` is `COUNT` without an argument."""

    COUNT = "count"
    SUM = "sum"
    AVG = "avg"
    STDDEV_SAMP = "stddev_samp"
    STDDEV_POP = "stddev_pop"
    VAR_SAMP = "var_samp"
    VAR_POP = "var_pop"
    MIN = "min"
    MAX = "max"
    FIRST = "first"
    LAST = "last"
    PREV = "prev"
    COUNT_DISTINCT = "count_distinct"


class Function(StrEnum):
    """The functions that an expression may call."""

    ABS = "abs"
    CEIL = "ceil"
    COALESCE = "coalesce"
    DAY = "day"
    DAY_OF_WEEK = "day_of_week"
    FLOOR = "floor"
    GREATEST = "greatest"
    HOUR = "hour"
    LEAST = "least"
    LENGTH = "length"
    LOWER = "lower"
    MINUTE = "minute"
    MONTH = "month"
    NULLIF = "nullif"
    ROUND = "round"
    SQRT = "sqrt"
    SUBSTR = "substr"
    TRIM = "trim"
    UPPER = "upper"
    YEAR = "year"


class ArithmeticOperator(StrEnum):
    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"
    REMAINDER = "%"
    CONCATENATE = "||"


class ComparisonOperator(StrEnum):
    EQUAL = "="
    UNEQUAL = "<>"
    LESS = "<"
    LESS_EQUAL = "<="
    GREATER = ">"
    GREATER_EQUAL = ">="


class WindowKind(StrEnum):
    SLIDING = "sliding"
    TUMBLING = "tumbling"
    INFINITE = "infinite"


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A part of a query's text. `position` is the offset of its first character."""

    position: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Expression(Node):
    """A node that has a value."""


@dataclass(frozen=True, slots=True)
class NullLiteral(Expression):
    """NULL."""


@dataclass(frozen=True, slots=True)
class BooleanLiteral(Expression):
    value: bool


@dataclass(frozen=True, slots=True)
class StringLiteral(Expression):
    value: str


@dataclass(frozen=True, slots=True)
class LongLiteral(Expression):
    value: int


@dataclass(frozen=True, slots=True)
class DecimalLiteral(Expression):
    """A number with a point: `unscaled / 10**scale`, scale ≥ 1. Beside decimals it is a decimal, otherwise a double."""

    unscaled: int
    scale: int


@dataclass(frozen=True, slots=True)
class DoubleLiteral(Expression):
    """A number with an exponent."""

    value: float


@dataclass(frozen=True, slots=True)
class FieldReference(Expression):
    name: str
    quoted: bool = field(default=False, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Arithmetic(Expression):
    operator: ArithmeticOperator
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Negation(Expression):
    """A minus. A minus right before a number is part of the literal instead."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class Comparison(Expression):
    operator: ComparisonOperator
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class And(Expression):
    """Two operands or more, none of them an And."""

    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Or(Expression):
    """Two operands or more, none of them an Or."""

    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Not(Expression):
    """Also `NOT IN`, `NOT LIKE`, `NOT BETWEEN` and `IS NOT NULL`, each around its positive form."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class Between(Expression):
    operand: Expression
    low: Expression
    high: Expression


@dataclass(frozen=True, slots=True)
class InList(Expression):
    operand: Expression
    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Like(Expression):
    """`pattern` as written: `%` matches any text, `_` one code point, and a backslash escapes what follows it."""

    operand: Expression
    pattern: str


@dataclass(frozen=True, slots=True)
class IsNull(Expression):
    operand: Expression


@dataclass(frozen=True, slots=True)
class Case(Expression):
    """A CASE. Each branch is (condition, result), or with an `operand` (value to compare with, result)."""

    operand: Expression | None
    branches: tuple[tuple[Expression, Expression], ...]
    default: Expression | None


@dataclass(frozen=True, slots=True)
class Call(Expression):
    """A call. `zone` is the name of the time zone of `HOUR(ts IN 'Europe/Lisbon')`; None without one, and for UTC."""

    function: Function
    arguments: tuple[Expression, ...]
    zone: str | None = None
    zone_position: int = field(default=0, compare=False, repr=False)


# The functions of timestamps, which may have a time zone.
CALENDAR = frozenset(
    {
        Function.HOUR,
        Function.MINUTE,
        Function.DAY_OF_WEEK,
        Function.DAY,
        Function.MONTH,
        Function.YEAR,
    }
)


@dataclass(frozen=True, slots=True)
class Cast(Expression):
    """`CAST(operand AS type)`."""

    operand: Expression
    type: Type


@dataclass(frozen=True, slots=True)
class Window(Node):
    """A window. `size_ms` is None for `INFINITE` alone; `delay_ms` is 0 without `DELAYED BY`."""

    kind: WindowKind
    size_ms: int | None = None
    delay_ms: int = 0


@dataclass(frozen=True, slots=True)
class SelectItem(Node):
    """One item of a SELECT.

    argument: None only for `count(*)`. name: None without `AS`. condition: None without `FILTER`.
    name_position: the position of the name, or that of the item if it has no name.
    """

    aggregator: Aggregator
    argument: Expression | None
    name: str | None = None
    condition: Expression | None = None
    name_position: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class StreamName(Node):
    name: str


@dataclass(frozen=True, slots=True)
class Query(Node):
    """One `SELECT`. `text` is the text that was parsed; empty if the parser did not make the tree.

    excludes_current: whether the window leaves out the event that is answered (`EXCLUDE CURRENT`).
    """

    items: tuple[SelectItem, ...]
    stream: StreamName
    where: Expression | None
    group_by: tuple[FieldReference, ...]
    window: Window
    excludes_current: bool = False
    text: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class DerivedItem(Node):
    """An expression over metrics and fields, and the name of the derived metric that it makes."""

    expression: Expression
    name: str
    name_position: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Derivation(Node):
    """One `DERIVE`. `text` is the text that was parsed; empty if the parser did not make the tree."""

    items: tuple[DerivedItem, ...]
    stream: StreamName
    text: str = field(default="", compare=False, repr=False)


def flat(kind: type[And] | type[Or], operands: Sequence[Expression]) -> Expression:
    """One And or Or of two operands or more. Operands of the same kind are replaced by their own operands."""
    found: list[Expression] = []
    for operand in operands:
        if isinstance(operand, And | Or) and type(operand) is kind:
            found += operand.operands
        else:
            found.append(operand)
    return kind(tuple(found), position=found[0].position)


def all_of(*conditions: Expression | None) -> Expression | None:
    """Return the conjunction of the conditions that are not None; None if all are."""
    found = [condition for condition in conditions if condition is not None]
    return flat(And, found) if len(found) > 1 else next(iter(found), None)


def children(node: Node) -> tuple[Node, ...]:
    """Return the nodes directly below a node, in the order in which they were written."""
    match node:
        case Arithmetic() | Comparison():
            return (node.left, node.right)
        case And() | Or():
            return node.operands
        case Not() | Negation() | IsNull() | Like() | Cast():
            return (node.operand,)
        case Between():
            return (node.operand, node.low, node.high)
        case InList():
            return (node.operand, *node.items)
        case Call():
            return node.arguments
        case Case():
            branches = [part for branch in node.branches for part in branch]
            ends = [part for part in (node.operand, node.default) if part is not None]
            return (*ends[: node.operand is not None], *branches, *ends[node.operand is not None :])
        case SelectItem():
            return tuple(each for each in (node.argument, node.condition) if each is not None)
        case DerivedItem():
            return (node.expression,)
        case Derivation():
            return (*node.items, node.stream)
        case Query():
            where = () if node.where is None else (node.where,)
            return (*node.items, node.stream, *where, *node.group_by, node.window)
        case _:
            return ()
