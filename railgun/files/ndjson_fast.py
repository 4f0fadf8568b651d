"""Many lines of JSON to columns at once, for blocks in which every value is as its field wants it."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from railgun.files.python_columns import ARROW_TYPES, batch_of
from railgun.wire.schema import FieldType, Kind, Schema

_RAW_NULL = b"null"
# Numbers with an exponent, which a decimal may be, are for the slow way.
_RAW_DECIMAL = r'^("-?[0-9]+(\.[0-9]+)?"|-?[0-9]+(\.[0-9]+)?)$'
_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_SHAPES: dict[Kind, Any] = {
    Kind.STRING: str | None,
    Kind.LONG: int | None,
    Kind.DOUBLE: int | float | None,
    Kind.BOOLEAN: bool | None,
    Kind.TIMESTAMP: int | str | None,
}


class FastReader:
    """Reads lines that are all right; says nothing about others."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        names = [f"f{place}" for place in range(len(schema.fields))]
        members = [(name, *_shape(field.type)) for name, field in zip(names, schema.fields)]
        renamed = dict(zip(names, (field.name for field in schema.fields)))
        shape = msgspec.defstruct("Event", members, rename=renamed, gc=False)
        only_known = msgspec.defstruct(
            "OnlyKnown", members, rename=renamed, gc=False, forbid_unknown_fields=True
        )
        self._decode = msgspec.json.Decoder(shape).decode
        self._decode_known = msgspec.json.Decoder(only_known).decode
        self._all_known = True
        self._known = frozenset(field.name for field in schema.fields)

    def read(self, lines: Sequence[bytes | msgspec.Raw]) -> pa.RecordBatch | None:
        """The lines' fields; None where a line is no such event."""
        try:
            rows = map(msgspec.structs.astuple, self._decoded(lines))
            by_field = list(zip(*rows)) or [()] * len(self._schema.fields)
            columns = [_column(values, field.type) for values, field in zip(by_field, self._schema.fields)]
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, pa.ArrowException, OverflowError):
            return None
        if any(column is None for column in columns):
            return None
        return batch_of(columns, self._schema, len(lines))

    def _decoded(self, lines: Sequence[bytes | msgspec.Raw]) -> list[Any]:
        """The lines' events. Most lines have known fields only: that is found out on the way."""
        known, decode = self._decode_known, self._decode
        self._all_known = True
        try:
            return [known(line) for line in lines]
        except msgspec.ValidationError:
            self._all_known = False
            return [decode(line) for line in lines]

    def unknown_names(self, lines: Sequence[bytes | msgspec.Raw]) -> dict[str, None]:
        """Names, in the order met, of fields that the schema lacks, in some of the lines that were read last."""
        if self._all_known:
            return {}
        named = (name for fields in map(_decode_fields, lines) for name in fields)
        return dict.fromkeys(name for name in named if name not in self._known)

    def unknown_values(self, lines: Sequence[bytes | msgspec.Raw]) -> int:
        """How many values of fields that the schema lacks are in some of the lines that were read last."""
        if self._all_known:
            return 0
        return sum(len(fields.keys() - self._known) for fields in map(_decode_fields, lines))


def _shape(type_: FieldType) -> tuple[Any, Any]:
    """A field's type for msgspec, and what an absent field is. Decimals stay as they are written."""
    if type_.kind is Kind.DECIMAL:
        return msgspec.Raw, msgspec.Raw(_RAW_NULL)
    return _SHAPES[type_.kind], None


def _column(values: Sequence[Any], type_: FieldType) -> pa.Array | None:
    """A column, or None where the values need to be looked at one by one. Raises what Arrow raises."""
    if type_.kind is Kind.DECIMAL:
        text = [None if raw == _RAW_NULL else bytes(raw) for raw in values]
        column = pa.array(text, pa.string())
        plain = pc.all(pc.match_substring_regex(column, _RAW_DECIMAL)).as_py()
        return None if plain is False else pc.utf8_trim(column, '"')
    if type_.kind is Kind.TIMESTAMP and any(type(value) is str for value in values):
        return pa.array(values, pa.string())
    return pa.array(values, ARROW_TYPES[type_.kind])
