"""Reads one value of an event, from JSON or Python, as its field's type. Nothing is converted silently.

A JSON number with a point or an exponent is kept as its own text (`JsonNumber`). So a decimal is read from the digits
that were sent, and a double is rounded once.
"""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, ROUND_FLOOR, Context, Decimal
from typing import Any

import msgspec

from railgun.wire.rfc3339 import read_rfc3339
from railgun.wire.schema import STRING_LIMIT_BYTES, FieldType, WireKind

LONG_MIN, LONG_MAX = -(1 << 63), (1 << 63) - 1

_EPOCH, _MILLISECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(milliseconds=1)
_SHOWN = 40
# Sign, digits, digits after the point, exponent.
_PLAIN = re.compile(r"(-?)([0-9]+)(?:\.([0-9]+))?()", re.ASCII)
_SCIENTIFIC = re.compile(r"(-?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]{1,9}))?", re.ASCII)

Reader = Callable[[Any], Any]


class JsonNumber(str):
    """The digits of a JSON number with a point or an exponent, as they were sent."""

    __slots__ = ()


class MisfitError(ValueError):
    """A value is not of its field's type. The message is for the sender of the event."""


decode_json = msgspec.json.Decoder(float_hook=JsonNumber).decode
"""JSON to Python: exact integers, other numbers as JsonNumber. Raises MsgspecError and RecursionError."""


# The longest integer that Python reads from digits.
_INTEGER_DIGITS = 4_300


def decode_any_json(text: bytes | msgspec.Raw) -> Any:
    """Do the same for a text that may have integers of very many digits, which become JsonNumber.

    Raises json.JSONDecodeError, MsgspecError, UnicodeDecodeError and RecursionError.
    """
    try:
        return decode_json(text)
    except msgspec.ValidationError:
        return json.loads(
            bytes(text).decode(), parse_int=_integer, parse_float=JsonNumber, parse_constant=_no_constant
        )


def _integer(digits: str) -> int | JsonNumber:
    return int(digits) if len(digits) <= _INTEGER_DIGITS else JsonNumber(digits)


def _no_constant(name: str) -> None:
    raise json.JSONDecodeError(f"{name} is no JSON", name, 0)


def reader(type_: FieldType) -> Reader:
    """Return a function that reads values of a type that are not null, and raises MisfitError.

    The function returns what `encode_event` takes: str, int (long, timestamp, unscaled decimal), float or bool.
    """
    if type_.kind is WireKind.DECIMAL:
        return lambda value: read_decimal(value, type_)
    if type_.unit:
        return lambda value: read_time(value, type_.unit)
    return _READERS[type_.kind]


def read_string(value: Any) -> str:
    if type(value) is not str and (isinstance(value, JsonNumber) or not isinstance(value, str)):
        raise misfit(value, "a string")
    if value.isascii():
        size_bytes = len(value)
    else:
        try:
            size_bytes = len(value.encode())
        except UnicodeEncodeError:
            raise MisfitError("a lone surrogate has no UTF-8 form") from None
    if size_bytes > STRING_LIMIT_BYTES:
        raise MisfitError(f"a string of {size_bytes} bytes; at most {STRING_LIMIT_BYTES} are taken")
    return str(value)


def read_long(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise misfit(value, "a long")
    if not LONG_MIN <= value <= LONG_MAX:
        raise MisfitError(f"{_shown(value)} is beyond 64 bits")
    return int(value)


def read_double(value: Any) -> float:
    if isinstance(value, float):
        number = float(value)
    elif isinstance(value, JsonNumber):
        number = float(value)
    elif isinstance(value, int) and not isinstance(value, bool):
        number = _exact_double(value)
    else:
        raise misfit(value, "a double")
    if number - number != 0.0:
        raise MisfitError(
            f"{_shown(value)} is beyond the doubles" if number == number else "NaN is no double"
        )
    # The sum makes -0.0 0.0.
    return number + 0.0


def _exact_double(value: int) -> float:
    try:
        number = float(value)
    except OverflowError:
        raise MisfitError(f"{_shown(value)} is beyond the doubles") from None
    if int(number) != value:
        raise MisfitError(f"no double equals {_shown(value)}")
    return number


def read_boolean(value: Any) -> bool:
    if value is not True and value is not False:
        raise misfit(value, "true or false")
    return bool(value)


def read_timestamp(value: Any) -> int:
    if isinstance(value, str) and not isinstance(value, JsonNumber):
        time_ms = read_rfc3339(value)
        if time_ms is None:
            raise MisfitError(
                f"{_shown(value)} is no RFC 3339 time with an offset, as in 2026-01-31T23:59:59Z"
            )
        return time_ms
    if isinstance(value, datetime):
        if value.tzinfo is None or value.utcoffset() is None:
            raise MisfitError(f"the datetime {value} has no time zone: give it one, as in tzinfo=UTC")
        return (value - _EPOCH) // _MILLISECOND
    if not isinstance(value, int) or isinstance(value, bool):
        raise misfit(value, "integer milliseconds or RFC 3339 text")
    return read_long(value)


# How far the point moves to the right when a number of a unit becomes milliseconds.
_SHIFTS = {"s": 3, "ms": 0, "us": -3, "ns": -6}
_LONG_DIGITS = 19
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,9})?", re.ASCII)
_EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)


class Milliseconds(int):
    """A time whose own type says what it is: it is of no other unit."""

    __slots__ = ()


def read_time(value: Any, unit: str) -> int:
    """Return a time in milliseconds, floored. Numbers count the unit, also those in text, in plain notation. A double
    is its shortest decimal.
    """
    if isinstance(value, Milliseconds):
        return read_long(value)
    if isinstance(value, JsonNumber | float | Decimal) or is_number_in_text(value):
        return _floored(value, unit)
    if not isinstance(value, int) or isinstance(value, bool):
        if isinstance(value, str | datetime):
            return read_timestamp(value)
        raise misfit(value, f"a number of {unit} or RFC 3339 text")
    shift = _SHIFTS[unit]
    time_ms: int = int(value) * 10**shift if shift >= 0 else int(value) // 10**-shift
    if not LONG_MIN <= time_ms <= LONG_MAX:
        raise beyond_64_bits(value, unit)
    return time_ms


def is_number_in_text(value: Any) -> bool:
    """Return whether a value is text that is a number in plain notation."""
    return isinstance(value, str) and _PLAIN.fullmatch(value) is not None


def _floored(value: str | float | Decimal, unit: str) -> int:
    """Return a number with a point or an exponent, or in text, in milliseconds, floored."""
    text = repr(value) if isinstance(value, float) else str(value)
    if _NUMBER.fullmatch(text) is None:
        raise misfit(value, f"a number of {unit} or RFC 3339 text")
    number, shift = Decimal(text), _SHIFTS[unit]
    if number and number.adjusted() + shift > _LONG_DIGITS:
        raise beyond_64_bits(value, unit)
    if number and number.adjusted() + shift < 0:
        # Less than a millisecond. Its digits may be very many places behind the point.
        return -1 if number < 0 else 0
    time_ms = int(number.scaleb(shift, _EXACT).to_integral_value(ROUND_FLOOR))
    if not LONG_MIN <= time_ms <= LONG_MAX:
        raise beyond_64_bits(value, unit)
    return time_ms


def beyond_64_bits(value: Any, unit: str) -> MisfitError:
    """Return the error for a time that no field can hold."""
    return MisfitError(f"{_shown(value)} {unit} are milliseconds beyond 64 bits")


def read_decimal(value: Any, type_: FieldType) -> int:
    """Return the value times 10^scale. It is read from an integer, a JSON number, a string in plain notation or a
    Decimal.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return _unscaled(str(value) if abs(value) < 10**40 else "9" * 41, _PLAIN, value, type_)
    if isinstance(value, JsonNumber):
        return _unscaled(value, _SCIENTIFIC, value, type_)
    if isinstance(value, str):
        return _unscaled(value, _PLAIN, value, type_)
    if isinstance(value, Decimal) and value.is_finite():
        return _unscaled(str(value), _SCIENTIFIC, value, type_)
    if isinstance(value, float):
        raise MisfitError(f"a binary float is no exact {type_}: send a string, or in Python a Decimal")
    raise misfit(value, str(type_))


def _unscaled(text: str, pattern: re.Pattern[str], value: Any, type_: FieldType) -> int:
    match = pattern.fullmatch(text)
    if match is None:
        raise misfit(value, str(type_))
    fraction = match[3] or ""
    digits = (match[2] + fraction).lstrip("0")
    significant = digits.rstrip("0")
    if not significant:
        return 0
    power = type_.scale - len(fraction) + int(match[4] or 0) + len(digits) - len(significant)
    if power < 0:
        raise MisfitError(f"{_shown(value)} has more than {type_.scale} digits after the point, for {type_}")
    if len(significant) + power > type_.precision:
        raise MisfitError(f"{_shown(value)} has too many digits for {type_}")
    return int(match[1] + significant) * int(10**power)


def _shown(value: Any) -> str:
    if isinstance(value, int) and abs(value) >= 10**_SHOWN:
        return f"an integer of {value.bit_length()} bits"
    text = str(value) if isinstance(value, int | float | JsonNumber | Decimal) else repr(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def misfit(value: Any, expected: str) -> MisfitError:
    """Return the error for a value that is not what is expected."""
    shown = {True: "true", False: "false"}[value] if isinstance(value, bool) else _shown(value)
    return MisfitError(f"{_sort(value)} {shown} is not {expected}")


def _sort(value: Any) -> str:
    if isinstance(value, bool):
        return "the boolean"
    if isinstance(value, int | float | JsonNumber | Decimal):
        return "the number"
    if isinstance(value, str):
        return "the string"
    if isinstance(value, dict):
        return "the object"
    return "the array" if isinstance(value, list) else f"the {type(value).__name__}"


_READERS: dict[WireKind, Reader] = {
    WireKind.STRING: read_string,
    WireKind.LONG: read_long,
    WireKind.DOUBLE: read_double,
    WireKind.BOOLEAN: read_boolean,
    WireKind.TIMESTAMP: read_timestamp,
}
