"""Where a field lies in an event, and the unit of its numbers; read from definitions, and followed step by step."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from tests.oracle.errors import DefinitionRefused, EventRefused
from tests.oracle.types import LONG_MAX, LONG_MIN, Type, Value
from tests.oracle.values import read_value

# How many of each make a second.
_UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_STEP = re.compile(
    r"(?P<dot>\.)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)|\[(?P<place>[0-9]+)\]|\['(?P<text>(?:[^']|'')*)'\]"
)
_PLAIN = re.compile(r"-?[0-9]+(\.[0-9]+)?", re.ASCII)
_STEPS_MAX, _PLACE_MAX = 16, 15


class Number(str):
    """A number of JSON with a point or an exponent, as it is written."""

    __slots__ = ()


@dataclass(frozen=True)
class Source:
    """steps: keys and places; empty for what only a record of a topic has.  unit: None where it is not said."""

    steps: tuple[str | int, ...]
    unit: str | None


def parse_field(name: str, body: object) -> tuple[str, Source]:
    """The declared type of a recorded field and where it lies; raises DefinitionRefused."""
    if isinstance(body, str):
        return body, Source((name,), None)
    if not isinstance(body, Mapping) or set(body) - {"type", "from", "unit"} or "type" not in body:
        raise DefinitionRefused(f"{name}: a type, or a table of type, from and unit")
    unit = body.get("unit")
    if unit is not None and (unit not in _UNITS or body["type"] != "timestamp"):
        raise DefinitionRefused(f"{name}: unit {unit!r}")
    origin = body.get("from")
    steps = (name,) if origin is None else _steps(origin)
    return str(body["type"]), Source(steps, unit)


def _steps(text: object) -> tuple[str | int, ...]:
    if not isinstance(text, str):
        raise DefinitionRefused(f"{text!r} is no path")
    if text.startswith("@"):
        if text not in ("@key", "@timestamp") and not text.startswith("@header"):
            raise DefinitionRefused(f"{text!r} is no path")
        return ()
    steps: list[str | int] = []
    at = 0
    while at < len(text):
        match = _STEP.match(text, at)
        if match is None or (match["name"] is not None and (match["dot"] is None) == bool(steps)):
            raise DefinitionRefused(f"{text!r} is no path")
        at = match.end()
        if match["place"] is not None:
            steps.append(int(match["place"]))
        else:
            steps.append(match["name"] if match["text"] is None else match["text"].replace("''", "'"))
    if not steps or isinstance(steps[0], int) or len(steps) > _STEPS_MAX:
        raise DefinitionRefused(f"{text!r} is no path")
    if any(isinstance(step, int) and step > _PLACE_MAX for step in steps):
        raise DefinitionRefused(f"{text!r}: places end at {_PLACE_MAX}")
    return tuple(steps)


def read_field(event: object, source: Source, declared: Type, field: str) -> Value:
    """The typed value of a field of a client's event; raises EventRefused."""
    if not source.steps:
        return None
    value = event
    for step in source.steps:
        if value is None:
            return None
        if isinstance(step, str):
            if not isinstance(value, Mapping):
                raise EventRefused(f"{field}: {value!r} is no object")
            value = value.get(step)
        else:
            if not isinstance(value, list | tuple):
                raise EventRefused(f"{field}: {value!r} is no array")
            value = value[step] if step < len(value) else None
    if source.unit is not None and isinstance(value, str) and _PLAIN.fullmatch(value):
        value = Decimal(value)
    if source.unit is not None and isinstance(value, int | float | Decimal | Number):
        return _milliseconds(value, source.unit, field)
    if isinstance(value, Number):
        value = Decimal(value) if declared.kind == "decimal" else float(value)
    return read_value(value, declared, field)


def _milliseconds(value: int | float | Decimal | Number, unit: str, field: str) -> int:
    """A time as a number, floored; a float stands for the shortest decimal that reads back as it."""
    if isinstance(value, bool) or (isinstance(value, float | Decimal) and not math.isfinite(value)):
        raise EventRefused(f"{field}: {value!r} is no time")
    exact = Fraction(repr(value) if isinstance(value, float) else value)
    found = math.floor(exact * 1_000 / _UNITS[unit])
    if not LONG_MIN <= found <= LONG_MAX:
        raise EventRefused(f"{field}: {value!r} {unit} are beyond 64 bits")
    return found


def unscaled_fields(event: object, fields: Mapping[str, tuple[Type, Source]]) -> list[object] | None:
    """The values of a client's event, decimals unscaled, by the fields' types and places; None if it is refused."""
    found: list[object] = []
    for name, (declared, source) in fields.items():
        try:
            value = read_field(event, source, declared, name)
        except EventRefused:
            return None
        is_decimal = declared.kind == "decimal" and value is not None
        found.append(int(value * 10**declared.scale) if is_decimal else value)
    return found
