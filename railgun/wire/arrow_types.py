"""Decides whether a column of an Arrow type can hold values of a field's type. This looks at types only, not at
values.
"""

from collections.abc import Callable, Mapping

import pyarrow as pa

from railgun.wire.schema import FieldType, Schema, WireKind

TAKEN: Mapping[WireKind, str] = {
    WireKind.STRING: "strings",
    WireKind.LONG: "whole numbers",
    WireKind.DOUBLE: "numbers",
    WireKind.BOOLEAN: "booleans",
    WireKind.DECIMAL: "decimals, whole numbers or text",
    WireKind.TIMESTAMP: "timestamps, milliseconds or RFC 3339 text",
}
"""The values that a field of each kind takes, in words for error messages."""


def is_text(type_: pa.DataType) -> bool:
    """Whether a type is one of Arrow's string types."""
    return bool(
        pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_string_view(type_)
    )


_HOLDS: Mapping[WireKind, tuple[Callable[[pa.DataType], bool], ...]] = {
    WireKind.STRING: (is_text,),
    WireKind.LONG: (pa.types.is_integer,),
    WireKind.DOUBLE: (pa.types.is_floating, pa.types.is_integer),
    WireKind.BOOLEAN: (pa.types.is_boolean,),
    WireKind.DECIMAL: (pa.types.is_decimal, pa.types.is_integer, is_text),
    WireKind.TIMESTAMP: (pa.types.is_timestamp, pa.types.is_integer, is_text),
}
# Numbers that are times where a unit says of what.
_TIMES = (pa.types.is_floating, pa.types.is_decimal)


def holds(found: pa.DataType, type_: FieldType) -> bool:
    """Whether a column of an Arrow type can have values for a field's type. A column of the null type always can."""
    if pa.types.is_dictionary(found):
        found = found.value_type
    if type_.unit and any(is_one(found) for is_one in _TIMES):
        return True
    return pa.types.is_null(found) or any(is_one(found) for is_one in _HOLDS[type_.kind])


def column_type_errors(found: pa.Schema, requested: Schema) -> str | None:
    """Return an error message about the columns whose type cannot hold their field's values; None if there are none.

    found: must have each of the fields once. Other columns are ignored.
    """
    wrong = [
        f"column {field.place} is {found.field(field.name).type} and cannot be {field.type}, "
        f"which takes {TAKEN[field.type.kind]}"
        for field in requested.fields
        if not holds(found.field(field.name).type, field.type)
    ]
    return "; ".join(wrong) + ": convert before" if wrong else None
