"""What functions of values that are not null give."""

import math
import re
from collections.abc import Callable
from datetime import date, timedelta
from fractions import Fraction
from typing import Any

from tests.oracle import exact
from tests.oracle.inference import Typed
from tests.oracle.types import LONG_MAX, LONG_MIN, Value
from tests.oracle.zones import offset_ms

STRING_BYTES_MAX = 65_535


def _substr(node: Typed, text: str, first: int, count: int | None = None) -> Value:
    if first < 1 or (count is not None and count < 0):
        return None
    rest = text[first - 1 :]
    return rest if count is None else rest[:count]


def _concatenated(node: Typed, a: str, b: str) -> Value:
    return a + b if len((a + b).encode()) <= STRING_BYTES_MAX else None


def _whole(rounded: Callable[[Fraction], int]) -> Callable[[Typed, Any], Value]:
    """A number cut at the digits of the result; a long has no others."""

    def function(node: Typed, value: Any) -> Value:
        if node.type.kind == "double":
            return float(rounded(Fraction(value)))
        unit = 10**node.type.scale
        made = Fraction(rounded(Fraction(value) * unit), unit)
        return made if node.type.kind == "decimal" else int(made)

    return function


def _sqrt(node: Typed, value: float) -> Value:
    return math.sqrt(value) if value >= 0 else None


def _cast(node: Typed, value: Any) -> Value:
    to = node.type
    if to.kind == "decimal":
        unscaled = exact.rounded_half_away(Fraction(value) * 10**to.scale)
        # The digits that were asked for.
        assert isinstance(node.value, int)
        return Fraction(unscaled, 10**to.scale) if abs(unscaled) < 10**node.value else None
    if to.kind == "string":
        return str(value)
    if isinstance(value, str):
        if not re.fullmatch("-?[0-9]+", value):
            return None
        digits = value.lstrip("-").lstrip("0")
        number = int(digits or "0") if len(digits) < 20 else LONG_MAX + 2
        value = -number if value.startswith("-") else number
    whole = math.trunc(value)
    return whole if LONG_MIN <= whole <= LONG_MAX else None


_DAY = timedelta(days=1)
_CYCLE_YEARS = 400
# Leap years repeat after as many years, and weekdays too.
_CYCLE = date(2400, 1, 1) - date(2000, 1, 1)


def _date(time_ms: int) -> tuple[date, int]:
    """The day of a time, moved by whole cycles to one that Python knows, and by how many years."""
    days = time_ms // 86_400_000 - (date(2000, 1, 1) - date(1970, 1, 1)).days
    cycles, rest = divmod(days, _CYCLE.days)
    return date(2000, 1, 1) + rest * _DAY, cycles * _CYCLE_YEARS


def _part(part: Callable[[int], int]) -> Callable[[Typed, Any], Value]:
    """A part of what the clocks of a zone show; null where that is no time of 64 bits."""

    def function(node: Typed, time_ms: int) -> Value:
        local_ms = time_ms + offset_ms(str(node.value), time_ms)
        return part(local_ms) if LONG_MIN <= local_ms <= LONG_MAX else None

    return function


FUNCTIONS: dict[str, Callable[..., Value]] = {
    "substr": _substr,
    "length": lambda node, text: len(text),
    "trim": lambda node, text: text.strip(" "),
    "||": _concatenated,
    "round": _whole(lambda value: exact.rounded_half_away(value)),
    "floor": _whole(math.floor),
    "ceil": _whole(math.ceil),
    "sqrt": _sqrt,
    "cast": _cast,
    "hour": _part(lambda time_ms: time_ms // 3_600_000 % 24),
    "minute": _part(lambda time_ms: time_ms // 60_000 % 60),
    "day_of_week": _part(lambda time_ms: _date(time_ms)[0].isoweekday()),
    "day": _part(lambda time_ms: _date(time_ms)[0].day),
    "month": _part(lambda time_ms: _date(time_ms)[0].month),
    "year": _part(lambda time_ms: _date(time_ms)[0].year + _date(time_ms)[1]),
}
