"""Metrics' results as JSON has them: those of a kind at once, no Python for each value but where text is made."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from railgun.language.types import STRING, Kind, Type
from railgun.plan.outputs import MetricColumn, is_wide
from railgun.plan.result_block import ResultBlock, ResultForm

JsonValue = int | float | bool | str | None
# Of m metrics, n of each, one metric behind the other: one list is quicker to make and to mend than m.
Values = list[Any]


class _Words(NamedTuple):
    """Results of m metrics of one type: as in ResultBlock; high: of wide ones, else none."""

    low: NDArray[np.uint64]
    high: NDArray[np.uint64]
    nulls: NDArray[np.uint8]
    heap: NDArray[np.uint8]


class _Group(NamedTuple):
    """Metrics of one type, by place among the metrics and among the wide ones, and what makes values of their words."""

    names: tuple[str, ...]
    places: NDArray[np.int64]
    high: NDArray[np.int64]
    values: Callable[[_Words], Values]


def values_by_metric(block: ResultBlock, selection: Sequence[str] | None) -> dict[str, list[Any]]:
    """n results by metric: exact ints, floats, bools, strings; decimals as strings in plain notation; None where null.

    selection: only these metrics; None: all.
    """
    found: dict[str, list[Any]] = {}
    n = block.low.shape[1]
    for group in _groups(block.form, None if selection is None else tuple(selection)):
        words = _Words(block.low[group.places], block.high[group.high], block.nulls[group.places], block.heap)
        values = group.values(words)
        for place in np.flatnonzero(words.nulls).tolist():
            values[place] = None
        for metric, name in enumerate(group.names):
            found[name] = values[metric * n : (metric + 1) * n]
    return found


@lru_cache(maxsize=256)
def _groups(form: ResultForm, selection: tuple[str, ...] | None) -> tuple[_Group, ...]:
    by_type: dict[Type, list[int]] = {}
    for place, (name, type_) in enumerate(zip(form.names, form.types)):
        if selection is None or name in selection:
            by_type.setdefault(type_, []).append(place)
    wide = {place: row for row, place in enumerate(form.wide.tolist())}
    return tuple(
        _Group(
            tuple(form.names[place] for place in places),
            np.array(places, np.int64),
            np.array([wide[place] for place in places if place in wide], np.int64),
            _values(type_),
        )
        for type_, places in by_type.items()
    )


def _values(type_: Type) -> Callable[[_Words], Values]:
    match type_.kind:
        case Kind.STRING:
            return _strings
        case Kind.DECIMAL:
            return lambda words: _decimals(words, type_.scale)
        case Kind.DOUBLE:
            return lambda words: words.low.view(np.float64).reshape(-1).tolist()
        case Kind.BOOLEAN:
            return lambda words: (words.low != 0).reshape(-1).tolist()
        case _:
            return _wide if is_wide(type_) else lambda words: words.low.view(np.int64).reshape(-1).tolist()


def _wide(words: _Words) -> Values:
    """128-bit integers; nearly all of them fit into 64 bits."""
    low, high = words.low.reshape(-1), words.high.view(np.int64).reshape(-1)
    values: Values = low.view(np.int64).tolist()
    longer = np.flatnonzero(high != low.view(np.int64) >> 63)
    for place, upper, lower in zip(longer.tolist(), high[longer].tolist(), low[longer].tolist()):
        values[place] = upper << 64 | lower
    return values


def _strings(words: _Words) -> Values:
    """Of the heap, which may be that of thousands of events, only what these refer to is touched."""
    column = MetricColumn("", STRING, words.low.reshape(-1, 1), words.nulls.reshape(-1), words.heap)
    return list(column.arrow().to_pylist())


def _decimals(words: _Words, scale: int) -> Values:
    """Unscaled integers as text, with the point put in."""
    n = words.low.size
    both = np.empty((n, 2), np.uint64)
    both[:, 0] = words.low.reshape(-1)
    both[:, 1] = (
        words.high.reshape(-1) if words.high.size else (both[:, 0].view(np.int64) >> 63).view(np.uint64)
    )
    valid = pa.py_buffer(np.packbits(words.nulls.reshape(-1) == 0, bitorder="little"))
    unscaled = pa.Array.from_buffers(pa.decimal128(38, 0), n, [valid, pa.py_buffer(both)])
    digits = unscaled.cast(pa.string())
    if scale:
        is_negative = pc.starts_with(digits, "-")
        padded = pc.utf8_lpad(pc.utf8_ltrim(digits, "-"), scale + 1, "0")
        pointed = pc.utf8_replace_slice(padded, -scale, -scale, ".")
        digits = pc.binary_join_element_wise(pc.if_else(is_negative, "-", ""), pointed, "")
    return list(digits.to_pylist())
