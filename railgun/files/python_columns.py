"""Makes columns of Python values, one value at a time: for Avro, and for rows that fast paths cannot take."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from railgun.files.source import Refusal
from railgun.wire.finding import finder
from railgun.wire.schema import FieldType, Schema, WireKind
from railgun.wire.values import MisfitError

ARROW_TYPES = {
    WireKind.STRING: pa.string(),
    WireKind.LONG: pa.int64(),
    WireKind.DOUBLE: pa.float64(),
    WireKind.BOOLEAN: pa.bool_(),
    WireKind.TIMESTAMP: pa.int64(),
}


def arrow_type(type_: FieldType) -> pa.DataType:
    """Return the Arrow type of a field's values."""
    if type_.kind is WireKind.DECIMAL:
        return pa.decimal128(type_.precision, type_.scale)
    # Whole numbers would be taken for numbers of the unit.
    return pa.timestamp("ms") if type_.unit else ARROW_TYPES[type_.kind]


def read_events(events: Sequence[Mapping[str, Any]], schema: Schema) -> tuple[pa.RecordBatch, list[Refusal]]:
    """Return the fields of events, as the validator of single events reads them, and the refusals. Refused values are
    null.
    """
    refused: dict[int, Refusal] = {}
    arrays = []
    for field in schema.fields:
        find = finder(field)
        taken: list[Any] = []
        for row, event in enumerate(events):
            try:
                taken.append(find(event))
            except MisfitError as error:
                taken.append(None)
                refused.setdefault(row, Refusal(row, field.place, str(error)))
        arrays.append(array_of(taken, field.type))
    return batch_of(arrays, schema, len(events)), [refused[row] for row in sorted(refused)]


def batch_of(arrays: Sequence[pa.Array], schema: Schema, rows: int) -> pa.RecordBatch:
    """Return a batch with a column for each field. A batch without fields has rows too."""
    if not arrays:
        return pa.RecordBatch.from_arrays([pa.nulls(rows)], [""]).select([])
    return pa.RecordBatch.from_arrays(arrays, [field.name for field in schema.fields])


def array_of(values: Sequence[Any], type_: FieldType) -> pa.Array:
    """Return an array of values that a `reader` gave, or None. Decimals are unscaled in `values`."""
    if type_.kind is not WireKind.DECIMAL:
        return pa.array(values, arrow_type(type_))
    return decimals(pa.array(values, pa.int64()), type_)


def decimals(unscaled: pa.Array, type_: FieldType) -> pa.Array:
    """Return unscaled int64 values as decimal128."""
    low = np.asarray(unscaled.fill_null(0))
    both = np.empty((len(low), 2), np.int64)
    both[:, 0], both[:, 1] = low, low >> 63
    valid = (
        None
        if unscaled.null_count == 0
        else pa.py_buffer(np.packbits(np.asarray(unscaled.is_valid()), bitorder="little"))
    )
    return pa.Array.from_buffers(arrow_type(type_), len(low), [valid, pa.py_buffer(both)])
