"""Values of each type, as JSON has them: small domains for the most part, and the ends of every range."""

import struct
from collections.abc import Mapping
from typing import Any

from tests.oracle.types import LONG_MAX, LONG_MIN, Type
from tests.strategies.source import Source

WORDS = (
    "a",
    "b",
    "ab",
    "",
    "B",
    "a%b",
    "x_y",
    "it's",
    "ß",
    "Σ",
    "é",
    "é",
    "\uffff",
    "😀",
    "a\\b",
    "\x00",
    "İ",
)
LONGS = (0, 1, -1, 7, 2**31, 2**53 + 1, -(2**53) - 1, LONG_MAX, LONG_MIN, LONG_MAX - 1, 3037000500)
DOUBLES = (
    *(0.0, 1.0, -1.0, 0.1, 0.2, 0.3, -0.1, 1.5, 1e16, -1e16, 1e-5, 9007199254740993.0),
    *(1e308, -1e308, 1.7976931348623157e308, 1e154, -1e160),
    *(5e-324, -5e-324, 2.2250738585072014e-308, 1e-310, 1e-160, -0.0),
)
TIMES: tuple[int | str, ...] = (
    0,
    -1,
    LONG_MAX,
    LONG_MIN,
    "1969-12-31T23:59:59.9999Z",
    "2024-02-29T12:00:00+14:00",
)


def value(source: Source, declared: Type, around_ms: int) -> Any:
    """A value of a type, never null; timestamps are near `around_ms`, mostly."""
    if declared.kind == "string":
        return source.choice(WORDS[:3]) if source.chance(60) else source.choice(WORDS)
    if declared.kind == "boolean":
        return source.chance(50)
    if declared.kind == "long":
        return source.choice(LONGS) if source.chance(15) else source.integer(-4, 9)
    if declared.kind == "double":
        return _double(source)
    if declared.kind == "decimal":
        return _decimal(source, declared)
    return _timestamp(source, around_ms)


def _double(source: Source) -> float | int:
    if source.chance(75):
        tenths = source.integer(-30, 99)
        return tenths // 10 if tenths % 10 == 0 else tenths / 10
    if source.chance(70):
        return source.choice(DOUBLES)
    sign, exponent = source.integer(0, 1), source.integer(0, 2046)
    bits = sign << 63 | exponent << 52 | source.integer(0, 2**52 - 1)
    (drawn,) = struct.unpack("<d", struct.pack("<Q", bits))
    return float(drawn)


def _decimal(source: Source, declared: Type) -> str | int:
    limit: int = 10**declared.precision - 1
    if source.chance(15):
        unscaled = source.choice((0, 1, -1, limit, -limit))
    else:
        unscaled = source.integer(-min(300, limit), min(999, limit))
    one: int = 10**declared.scale
    if unscaled % one == 0 and source.chance(30):
        return unscaled // one
    digits = str(abs(unscaled)).rjust(declared.scale + 1, "0")
    whole, fraction = digits[: len(digits) - declared.scale], digits[len(digits) - declared.scale :]
    return f"{'-' if unscaled < 0 else ''}{whole}{'.' if fraction else ''}{fraction}"


def _timestamp(source: Source, around_ms: int) -> int | str:
    if source.chance(5):
        return source.choice(TIMES)
    near_ms = around_ms + source.choice((0, 1, -1, 1_000, -60_000)) * source.integer(0, 5)
    return min(max(near_ms, LONG_MIN), LONG_MAX)


def row(source: Source, fields: Mapping[str, Type], around_ms: int, null_percent: int = 15) -> dict[str, Any]:
    """A value for each field; nulls are sometimes said and sometimes left out."""
    drawn: dict[str, Any] = {}
    for name, declared in fields.items():
        if not source.chance(null_percent):
            drawn[name] = value(source, declared, around_ms)
        elif source.chance(30):
            drawn[name] = None
    return drawn
