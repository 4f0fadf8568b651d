"""A metric's results as JSON has them: a whole column at a time, no Python for each value but where text is made."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from railgun.language.types import Kind
from railgun.plan.outputs import MetricColumn

JsonValue = int | float | bool | str | None


def column_values(column: MetricColumn) -> list[Any]:
    """n results: exact ints, floats, bools, strings; decimals as strings in plain notation; None where null."""
    kind = column.type.kind
    if kind is Kind.STRING:
        return list(column.arrow().to_pylist())
    if kind is Kind.DECIMAL:
        return _decimals(column)
    low = column.words[:, 0]
    if kind is Kind.DOUBLE:
        values: list[Any] = low.view(np.float64).tolist()
    elif kind is Kind.BOOLEAN:
        values = (low != 0).tolist()
    elif column.is_wide:
        values = _wide(column)
    else:
        values = low.view(np.int64).tolist()
    if column.nulls.any():
        for row in np.flatnonzero(column.nulls).tolist():
            values[row] = None
    return values


def _wide(column: MetricColumn) -> list[int]:
    """128-bit integers; nearly all of them fit into 64 bits."""
    low, high = column.words[:, 0].view(np.int64), column.words[:, 1].view(np.int64)
    values: list[int] = low.tolist()
    for row in np.flatnonzero(high != low >> 63).tolist():
        values[row] = (int(high[row]) << 64) | int(column.words[row, 0])
    return values


def _decimals(column: MetricColumn) -> list[str | None]:
    """Unscaled integers as text, with the point put in."""
    n, scale = len(column.nulls), column.type.scale
    if column.is_wide:
        both = np.ascontiguousarray(column.words)
    else:
        both = np.empty((n, 2), np.uint64)
        both[:, 0] = column.words[:, 0]
        both[:, 1] = (column.words[:, 0].view(np.int64) >> 63).view(np.uint64)
    valid = pa.py_buffer(np.packbits(column.nulls == 0, bitorder="little"))
    unscaled = pa.Array.from_buffers(pa.decimal128(38, 0), n, [valid, pa.py_buffer(both)])
    digits = unscaled.cast(pa.string())
    if scale == 0:
        return list(digits.to_pylist())
    is_negative = pc.starts_with(digits, "-")
    padded = pc.utf8_lpad(pc.utf8_ltrim(digits, "-"), scale + 1, "0")
    pointed = pc.utf8_replace_slice(padded, -scale, -scale, ".")
    return list(pc.binary_join_element_wise(pc.if_else(is_negative, "-", ""), pointed, "").to_pylist())
