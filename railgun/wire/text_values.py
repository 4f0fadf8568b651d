"""Converts columns of text to typed columns. This is for CSV, where all values are text.

A long is `-12`, a double `1.5`, `.5` or `1e-3`, a boolean `true` or `false` in any case, a decimal `-12.50`, a
timestamp whole milliseconds or RFC 3339.
"""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from railgun.wire.arrow_types import is_text
from railgun.wire.arrow_values import (
    Typed,
    all_match,
    decimal_of_text,
    string,
    string_refs,
    time_of_integers,
    timestamp_of_text,
)
from railgun.wire.schema import FieldType, WireKind
from railgun.wire.values import (
    JsonNumber,
    MisfitError,
    Reader,
    read_decimal,
    read_double,
    read_long,
    read_string,
    read_time,
    read_timestamp,
)

_LONG = r"^-?[0-9]{1,30}$"
_DOUBLE = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_BOOLEAN = r"^(?i:true|false)$"


def read_text_array(array: pa.Array, type_: FieldType) -> Typed:
    """Convert an Arrow string array to a column. Values that are not of the field's type are marked as bad.

    Raises TypeError for an array of another type.
    """
    if not is_text(array.type) and not pa.types.is_null(array.type):
        raise TypeError(f"a column of text has Arrow type {array.type}")
    typed = Typed(array, type_, text_reader(type_))
    if not pa.types.is_null(array.type):
        _READERS[type_.kind](typed)
        typed.finish()
    return typed


def text_reader(type_: FieldType) -> Reader:
    """Return a function that reads one text as a value of a type, as `railgun.wire.values.reader` does for JSON
    values.
    """
    if type_.kind is WireKind.DECIMAL:
        return lambda text: read_decimal(text, type_)
    if type_.unit:
        return lambda text: read_time(_text_number(text), type_.unit)
    return _TEXT_READERS[type_.kind]


def _text_long(text: str) -> int:
    if not re.fullmatch(_LONG, text, re.ASCII):
        raise MisfitError(f"{text[:40]!r} is not a long")
    return read_long(int(text))


def _text_double(text: str) -> float:
    if not re.fullmatch(_DOUBLE, text, re.ASCII):
        raise MisfitError(f"{text[:40]!r} is not a double")
    return read_double(JsonNumber(text))


def _text_boolean(text: str) -> bool:
    if not re.fullmatch(_BOOLEAN, text, re.ASCII):
        raise MisfitError(f"{text[:40]!r} is not true or false")
    return text.lower() == "true"


def _text_timestamp(text: str) -> int:
    return _text_long(text) if re.fullmatch(_LONG, text, re.ASCII) else read_timestamp(text)


def _text_number(text: str) -> Any:
    """Return the number in a text; the text itself if it is none."""
    if re.fullmatch(_LONG, text, re.ASCII):
        return int(text)
    return JsonNumber(text) if re.fullmatch(_DOUBLE, text, re.ASCII) else text


def _long(typed: Typed) -> None:
    _cast(typed, _LONG, pa.int64())


def _double(typed: Typed) -> None:
    string_refs(typed)
    array = typed.sound()
    if not all_match(array, _DOUBLE):
        typed.by_row(np.float64)
        return
    numbers = array.cast(pa.float64()).fill_null(0.0).to_numpy()
    typed.mark(~np.isfinite(numbers))
    typed.words = (numbers + 0.0).view(np.uint64)


def _boolean(typed: Typed) -> None:
    string_refs(typed)
    array = typed.sound()
    typed.mark(~pc.match_substring_regex(array, _BOOLEAN).fill_null(True).to_numpy(zero_copy_only=False))
    is_true = pc.equal(pc.ascii_lower(array), "true").fill_null(False)
    typed.words = is_true.to_numpy(zero_copy_only=False).astype(np.uint64)


def _timestamp(typed: Typed) -> None:
    string_refs(typed)
    array = typed.sound()
    if typed.type.unit:
        _time(typed, array)
        return
    whole = pc.match_substring_regex(array, _LONG).fill_null(False)
    if pc.any(whole).as_py() is not True:
        timestamp_of_text(typed)
    elif pc.all(pc.or_(whole, pc.is_null(array))).as_py() is True:
        _cast(typed, _LONG, pa.int64())
    else:
        typed.by_row()


def _time(typed: Typed, array: pa.Array) -> None:
    """Read times that count a unit: together if all are whole numbers, otherwise one by one."""
    try:
        if all_match(array, _LONG):
            if time_of_integers(typed, array.cast(pa.int64()).fill_null(0).to_numpy()):
                return
    except pa.ArrowInvalid:
        pass
    typed.by_row()


def _cast(typed: Typed, pattern: str, type_: Any) -> None:
    """Convert a column: by Arrow's own conversion if all rows have a form that it reads in the same way, otherwise
    one by one.
    """
    string_refs(typed)
    array = typed.sound()
    try:
        if all_match(array, pattern):
            typed.words = array.cast(type_).fill_null(0).to_numpy().view(np.uint64).copy()
            return
    except pa.ArrowInvalid:
        pass
    typed.by_row()


_TEXT_READERS: dict[WireKind, Reader] = {
    WireKind.STRING: read_string,
    WireKind.LONG: _text_long,
    WireKind.DOUBLE: _text_double,
    WireKind.BOOLEAN: _text_boolean,
    WireKind.TIMESTAMP: _text_timestamp,
}

_READERS: dict[WireKind, Callable[[Typed], None]] = {
    WireKind.STRING: string,
    WireKind.LONG: _long,
    WireKind.DOUBLE: _double,
    WireKind.BOOLEAN: _boolean,
    WireKind.DECIMAL: decimal_of_text,
    WireKind.TIMESTAMP: _timestamp,
}
