"""The parsed form of metrics and expressions: plain nested data."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Literal:
    """`kind`: integer, point (a number with a point), exponent, string, boolean or null; `text` as a number
    is written, sign included, or the string's content."""

    kind: str
    text: str = ""


@dataclass(frozen=True)
class Field:
    name: str


@dataclass(frozen=True)
class Negation:
    """Arithmetic minus; a minus before a number is part of the literal."""

    operand: "Expression"


@dataclass(frozen=True)
class Not:
    operand: "Expression"


@dataclass(frozen=True)
class Binary:
    """`operator`: + - * / % || = <> < <= > >= and or."""

    operator: str
    left: "Expression"
    right: "Expression"


@dataclass(frozen=True)
class In:
    operand: "Expression"
    members: tuple["Expression", ...]


@dataclass(frozen=True)
class Like:
    operand: "Expression"
    pattern: str


@dataclass(frozen=True)
class IsNull:
    operand: "Expression"


@dataclass(frozen=True)
class Case:
    branches: tuple[tuple["Expression", "Expression"], ...]
    otherwise: "Expression"


@dataclass(frozen=True)
class Call:
    """`function`: abs, lower, upper, coalesce and what else `tests.oracle.query` lists; `zone`: of a part of a time."""

    function: str
    arguments: tuple["Expression", ...]
    zone: str = "UTC"


@dataclass(frozen=True)
class Cast:
    """`type` as a definitions file writes it."""

    operand: "Expression"
    type: str


Expression = Literal | Field | Negation | Not | Binary | In | Like | IsNull | Case | Call | Cast


@dataclass(frozen=True)
class Window:
    """`kind`: sliding, tumbling or infinite (whose size is 0)."""

    kind: str
    size_ms: int = 0
    delay_ms: int = 0


@dataclass(frozen=True)
class Metric:
    """One select item with the rest of its query; `argument` None is the `*` of `count(*)`."""

    name: str
    aggregator: str
    argument: Expression | None
    stream: str
    where: Expression | None
    group_by: tuple[str, ...]
    window: Window
    excludes_current: bool = False


@dataclass(frozen=True)
class Derived:
    """One item of a DERIVE: an expression over the fields and the metrics of a stream."""

    name: str
    expression: Expression
    stream: str
