"""What an expression gives for one event: exact integers, rationals and doubles, three-valued logic."""

import math
import operator as op
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from tests.oracle.exact import fraction_to_double, normalised
from tests.oracle.functions import FUNCTIONS, STRING_BYTES_MAX
from tests.oracle.inference import Typed
from tests.oracle.types import DECIMAL_DIGITS, LONG_MAX, LONG_MIN, Row, Type, Value

_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": op.eq,
    "<>": op.ne,
    "<": op.lt,
    "<=": op.le,
    ">": op.gt,
    ">=": op.ge,
}


def evaluate(node: Typed, row: Row) -> Value:
    """The value of a typed expression over an event's fields (absent ones are null)."""
    if node.operation == "field":
        return row.get(str(node.value))
    if node.operation == "literal":
        return node.value
    if node.operation in ("and", "or"):
        return _logic(node, row)
    if node.operation == "case":
        return _case(node.arguments, row)
    values = [evaluate(argument, row) for argument in node.arguments]
    if node.operation == "is_null":
        return values[0] is None
    if node.operation == "in":
        return _any(values)
    if node.operation == "coalesce":
        return next((value for value in values if value is not None), None)
    if node.operation in ("greatest", "least"):
        choose = max if node.operation == "greatest" else min
        return choose((value for value in values if value is not None), key=_ordered, default=None)
    if node.operation == "nullif":
        return None if values[1] is True else values[0]
    if None in values:
        return None
    if node.operation in _COMPARISONS:
        return _COMPARISONS[node.operation](_ordered(values[0]), _ordered(values[1]))
    return _strict(node, values)


def holds(predicate: Typed | None, row: Row) -> bool:
    """Whether an event satisfies a metric's predicate: null does not."""
    return predicate is None or evaluate(predicate, row) is True


def _ordered(value: Value) -> Any:
    """What compares as the value does: strings by their UTF-8 bytes; Python compares numbers exactly."""
    return value.encode() if isinstance(value, str) else value


# --- three-valued logic


def _logic(node: Typed, row: Row) -> Value:
    values = [evaluate(argument, row) for argument in node.arguments]
    if node.operation == "or":
        return _any(values)
    inverted = _any([None if value is None else not value for value in values])
    return None if inverted is None else not inverted


def _any(values: list[Value]) -> bool | None:
    if True in values:
        return True
    return None if None in values else False


def _case(arguments: tuple[Typed, ...], row: Row) -> Value:
    for condition, branch in zip(arguments[:-1:2], arguments[1:-1:2], strict=True):
        if evaluate(condition, row) is True:
            return evaluate(branch, row)
    return evaluate(arguments[-1], row)


# --- operations whose result is null where an operand is


def _strict(node: Typed, values: list[Any]) -> Value:
    name = node.operation
    if name == "not":
        return not values[0]
    if name == "like":
        return _like(values[0], str(node.value))
    if name in ("lower", "upper"):
        made = "".join(c.lower() if name == "lower" else c.upper() for c in values[0])
        return made if len(made.encode()) <= STRING_BYTES_MAX else None
    if name in FUNCTIONS:
        return FUNCTIONS[name](node, *values)
    if name == "to_double":
        return fraction_to_double(Fraction(values[0]))
    if name == "abs":
        return _fitting(abs(values[0]), node.type)
    if name == "neg":
        return _fitting(-values[0], node.type)
    if node.type.kind == "double":
        return _double_arithmetic(name, values[0], values[1])
    return _fitting(_exact_arithmetic(name, Fraction(values[0]), Fraction(values[1])), node.type)


def _fitting(value: Any, declared: Type) -> Value:
    """The result where its type can hold it, else null."""
    if value is None or declared.kind == "double":
        return None if value is None else normalised(value)
    if declared.kind == "decimal":
        return Fraction(value) if abs(value) * 10**declared.scale < 10**DECIMAL_DIGITS else None
    return int(value) if LONG_MIN <= value <= LONG_MAX else None


def _double_arithmetic(name: str, a: float, b: float) -> Value:
    if name in "/%" and b == 0.0:
        return None
    if name == "%":
        return normalised(math.fmod(a, b))
    operations: dict[str, Callable[[float, float], float]] = {
        "+": op.add,
        "-": op.sub,
        "*": op.mul,
        "/": op.truediv,
    }
    return normalised(operations[name](a, b))


def _exact_arithmetic(name: str, a: Fraction, b: Fraction) -> Fraction | None:
    if name == "+":
        return a + b
    if name == "-":
        return a - b
    if name == "*":
        return a * b
    if b == 0:
        return None
    remainder = abs(a) % abs(b)
    return -remainder if a < 0 else remainder


def _like(text: str, pattern: str) -> bool:
    """`%` any run of code points, `_` one, `\\` before anything means itself; all of the text must match."""
    # Which prefixes of the text the pattern read so far can match, by length.
    reached = {0}
    escaped = False
    for character in pattern:
        if not escaped and character == "\\":
            escaped = True
        elif not escaped and character == "%":
            reached = set(range(min(reached), len(text) + 1)) if reached else set()
        else:
            wild = character == "_" and not escaped
            reached = {n + 1 for n in reached if n < len(text) and (wild or text[n] == character)}
            escaped = False
    return len(text) in reached
