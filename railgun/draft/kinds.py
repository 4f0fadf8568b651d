"""Tells what kind of value an event has somewhere, and whether some values are times or numbers."""

import re
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Any
from uuid import UUID

from railgun.wire.path import has_lone_surrogate
from railgun.wire.rfc3339 import read_rfc3339
from railgun.wire.values import JsonNumber, Milliseconds

_LIKE_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:", re.ASCII)


class Kind(StrEnum):
    """A kind of value, in words for people."""

    TEXT = "text"
    TIME_TEXT = "a time as RFC 3339 text"
    TIME = "a time"
    INTEGER = "a whole number"
    NUMBER = "a number with a point"
    DECIMAL = "a decimal"
    BOOLEAN = "true or false"
    OBJECT = "an object"
    ARRAY = "an array"
    NOT_FINITE = "no finite number"
    BYTES = "bytes"
    OTHER = "of another kind"


def kind_of(value: Any) -> Kind:
    """Return the kind of a value that is not null."""
    if isinstance(value, bool):
        return Kind.BOOLEAN
    if isinstance(value, Milliseconds):
        return Kind.TIME
    if isinstance(value, int):
        return Kind.INTEGER
    if isinstance(value, JsonNumber | float):
        number = float(value)
        return Kind.NUMBER if number - number == 0.0 else Kind.NOT_FINITE
    if isinstance(value, str):
        return _kind_of_text(value)
    if isinstance(value, dict):
        return Kind.OBJECT
    if isinstance(value, list | tuple):
        return Kind.ARRAY
    if isinstance(value, Decimal):
        return Kind.DECIMAL if value.is_finite() else Kind.NOT_FINITE
    if isinstance(value, datetime):
        return Kind.TIME
    if isinstance(value, UUID):
        return Kind.TEXT
    return Kind.BYTES if isinstance(value, bytes) else Kind.OTHER


def _kind_of_text(text: str) -> Kind:
    if _LIKE_TIME.match(text):
        return Kind.TIME_TEXT if read_rfc3339(text) is not None else Kind.TEXT
    if has_lone_surrogate(text):
        return Kind.BYTES
    return Kind.TEXT


def lacks_offset(text: str) -> bool:
    """Return whether text is a date and a time of the day that only an offset from UTC makes RFC 3339."""
    return (
        _LIKE_TIME.match(text) is not None
        and read_rfc3339(text) is None
        and any(read_rfc3339(text + end) is not None for end in ("Z", ":00Z"))
    )


def is_date(value: Any) -> bool:
    """Return whether a value of another kind is a date, a time of a day or a span."""
    return isinstance(value, date | time | timedelta)
