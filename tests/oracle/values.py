"""From the JSON of an event to typed values, and from results to the JSON of a reply; nothing in silence."""

import math
import re
from decimal import Decimal
from fractions import Fraction

from tests.oracle.errors import EventRefused
from tests.oracle.timestamps import parse_timestamp
from tests.oracle.types import LONG_MAX, LONG_MIN, Type, Value

# A reply's value: int, float, Decimal (of the result's scale), str, bool or None.
Result = int | float | Decimal | str | bool | None

_PLAIN_DECIMAL = re.compile(r"-?[0-9]+(\.[0-9]+)?")


def read_value(value: object, declared: Type, field: str) -> Value:
    """The typed value of one field of an event; raises EventRefused where it would have to be converted."""
    if value is None:
        return None
    if declared.kind == "timestamp":
        return parse_timestamp(value, field)
    if declared.kind == "decimal":
        return _read_decimal(value, declared, field)
    if declared.kind == "string" and isinstance(value, str):
        return _well_formed(value, field)
    if declared.kind == "boolean" and isinstance(value, bool):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        if declared.kind == "long" and LONG_MIN <= value <= LONG_MAX:
            return value
        if declared.kind == "double" and _exact_in_double(value):
            return float(value)
    if declared.kind == "double" and isinstance(value, float) and math.isfinite(value):
        return 0.0 if value == 0.0 else value
    raise EventRefused(f"{field}: {value!r} is no {declared}")


def _exact_in_double(value: int) -> bool:
    try:
        return int(float(value)) == value
    except OverflowError:
        return False


def _well_formed(text: str, field: str) -> str:
    if any(0xD800 <= ord(c) <= 0xDFFF for c in text):
        raise EventRefused(f"{field}: a lone surrogate has no UTF-8 form")
    return text


def _read_decimal(value: object, declared: Type, field: str) -> Fraction:
    """A decimal comes as plain text, as an integer, or (in Python) as a Decimal, and must fit exactly."""
    if isinstance(value, str) and _PLAIN_DECIMAL.fullmatch(value):
        exact = Fraction(value)
    elif isinstance(value, int) and not isinstance(value, bool):
        exact = Fraction(value)
    elif isinstance(value, Decimal) and value.is_finite():
        exact = Fraction(value)
    else:
        raise EventRefused(f"{field}: {value!r} is no {declared}")
    unscaled = exact * 10**declared.scale
    if unscaled.denominator != 1 or abs(unscaled) >= 10**declared.precision:
        raise EventRefused(f"{field}: {value!r} does not fit {declared}")
    return exact


def to_decimal(value: Fraction, scale: int) -> Decimal:
    """A multiple of 10^-scale as a Decimal that shows exactly `scale` digits after the point."""
    unscaled = value * 10**scale
    if unscaled.denominator != 1:
        raise ArithmeticError(f"{value} is no multiple of 10^-{scale}")
    digits = tuple(int(d) for d in str(abs(unscaled.numerator)))
    return Decimal((1 if unscaled < 0 else 0, digits, -scale))


def json_value(value: Result) -> int | float | str | bool | None:
    """A reply's value as JSON has it: decimals are strings in plain notation, the rest as they are."""
    return f"{value:f}" if isinstance(value, Decimal) else value
