"""Finds the fields of a schema in tables of events: columns, and places within columns of structs, lists and maps.

Readers of Arrow and Parquet files and the engine's tables of events use it. It does no I/O.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from railgun.wire.arrow_types import is_text
from railgun.wire.finding import steps_of
from railgun.wire.path import Step, text_of
from railgun.wire.schema import Field, Schema


class PathTypeError(ValueError):
    """A path does not fit the type of a column: it names a field of something that is no struct or map, or an index of
    something that is no list.
    """


def field_types(found: pa.Schema, schema: Schema) -> pa.Schema:
    """Return the type of each field, as a column of its name; the null type if its path leads nowhere.

    found: the columns of the table. Each field without a path must have exactly one there. Raises PathTypeError.
    """
    return pa.schema([(each.name, _type_of(found, each)) for each in schema.fields])


def field_columns(batch: pa.RecordBatch, schema: Schema) -> pa.RecordBatch:
    """Return the fields of rows, as columns of their names. Raises PathTypeError."""
    if not schema.has_paths:
        return batch
    columns = [_column(batch, each) for each in schema.fields]
    if not columns:
        return batch
    return pa.RecordBatch.from_arrays(columns, [each.name for each in schema.fields])


def _type_of(found: pa.Schema, field: Field) -> pa.DataType:
    steps = steps_of(field)
    if not steps or found.get_field_index(str(steps[0])) < 0:
        return pa.null()
    type_ = found.field(str(steps[0])).type
    for number in range(1, len(steps)):
        type_ = _within(type_, steps, number)
    return type_


def _within(type_: pa.DataType, steps: Sequence[Step], number: int) -> pa.DataType:
    """Return the type of the place to which a step of a path leads in values of a type."""
    step = steps[number]
    if pa.types.is_null(type_):
        return type_
    if isinstance(step, str) and pa.types.is_struct(type_):
        at = type_.get_field_index(step)
        return pa.null() if at < 0 else type_.field(at).type
    if isinstance(step, str) and pa.types.is_map(type_) and is_text(type_.key_type):
        return type_.item_type
    if isinstance(step, int) and _is_list(type_):
        return type_.value_type
    expected = "an object" if isinstance(step, str) else "an array"
    raise PathTypeError(
        f"column {text_of(tuple(steps[:number]))} is {type_}, not {expected}, and has no {text_of(tuple(steps))}"
    )


def _is_list(type_: pa.DataType) -> bool:
    return bool(
        pa.types.is_list(type_) or pa.types.is_large_list(type_) or pa.types.is_fixed_size_list(type_)
    )


def _column(batch: pa.RecordBatch, field: Field) -> pa.Array:
    steps = steps_of(field)
    at = -1 if not steps else batch.schema.get_field_index(str(steps[0]))
    if at < 0:
        return pa.nulls(batch.num_rows)
    array = batch.column(at)
    for number, step in enumerate(steps[1:], 1):
        type_ = _within(array.type, steps, number)
        if pa.types.is_null(type_):
            return pa.nulls(batch.num_rows)
        if isinstance(step, int):
            array = _element(array, step)
        elif pa.types.is_struct(array.type):
            array = pc.struct_field(array, [array.type.get_field_index(step)])
        else:
            array = pc.map_lookup(array, pa.scalar(step, array.type.key_type), "last")
    return array


def _element(array: pa.Array, at: int) -> pa.Array:
    """Return the element at an index of each list; null where a list is null or shorter."""
    lengths = pc.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False)
    there = lengths > at
    if not there.any():
        return pa.nulls(len(array), array.type.value_type)
    # Null lists have no elements among the flattened ones.
    starts = np.cumsum(lengths) - lengths
    return array.flatten().take(pa.array(starts + at, pa.int64(), mask=~there))
