"""Converts Arrow arrays to typed columns by the rules for single values. It goes row by row only if a
value is bad.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from railgun.wire.arrow_types import holds, is_text
from railgun.wire.columns import REF_LENGTH_BITS, Column
from railgun.wire.msgpack import is_ascii, is_utf8
from railgun.wire.rfc3339 import parse_column
from railgun.wire.schema import STRING_LIMIT_BYTES, FieldType, WireKind
from railgun.wire.values import LONG_MAX, MisfitError, Reader, reader
from reservoir.native.jit import address, jit, ld8, ldi64, st8, sti64

_PER_MILLISECOND = {"ms": 1, "us": 1_000, "ns": 1_000_000}
_SECONDS_LIMIT = LONG_MAX // 1_000
_WIDEST_DECIMAL = 38
_PLAIN_DECIMAL = r"^-?[0-9]+(\.[0-9]+)?$"


class Typed:
    """A column that is being converted.

    words: uint64[n]; 0 in bad rows.
    nulls: uint8[n]; 1 where null.
    bad: uint8[n]; 1 where the value is bad.
    heap: uint8[...]; for strings.
    """

    def __init__(self, array: pa.Array, type_: FieldType, read: Reader | None = None) -> None:
        n = len(array)
        self.array = array
        self.type = type_
        self.read = reader(type_) if read is None else read
        self.words = np.zeros(n, np.uint64)
        self.heap: NDArray[np.uint8] | None = None
        self.has_nulls = array.null_count > 0
        if self.has_nulls:
            self.nulls = array.is_null().to_numpy(zero_copy_only=False).view(np.uint8)
        else:
            self.nulls = np.zeros(n, np.uint8)
        self.bad = np.zeros(n, np.uint8)

    def mark(self, wrong: NDArray[np.bool_]) -> None:
        """Mark rows as bad, except those that are null."""
        self.bad |= wrong.view(np.uint8) & (self.nulls ^ 1)

    def finish(self) -> None:
        """Set the words of null and bad rows to 0."""
        if self.has_nulls or self.bad.any():
            self.words[(self.nulls | self.bad) != 0] = 0

    def column(self) -> Column:
        """Return the finished column."""
        return Column(self.type, self.words, self.nulls if self.has_nulls else None, self.heap)

    def explain(self, row: int) -> str:
        """Return why the value of a bad row is bad."""
        if pa.types.is_timestamp(self.array.type) and self.type.kind is WireKind.TIMESTAMP:
            return "milliseconds beyond 64 bits"
        try:
            self.read(self.array[row].as_py())
        except MisfitError as error:
            return str(error)
        except UnicodeDecodeError:
            return "a string that is not UTF-8"
        except ValueError:
            # Arrow has values for which Python's own types have no equivalent.
            pass
        return f"a value of Arrow type {self.array.type} cannot be {self.type}"

    def by_row(self, dtype: type[np.int64 | np.float64] = np.int64) -> None:
        """Read each row by itself. This is for columns with a value that cannot be converted."""
        words: NDArray[Any] = np.zeros(len(self.array), dtype)
        for row, value in enumerate(self.sound().to_pylist()):
            if value is not None:
                try:
                    words[row] = self.read(value)
                except MisfitError:
                    self.bad[row] = 1
        self.words = words.view(np.uint64)

    def sound(self) -> pa.Array:
        """Return the array with null in place of the values that are known to be bad."""
        if not self.bad.any():
            return self.array
        return pc.if_else(pa.array(self.bad != 0), pa.scalar(None, self.array.type), self.array)


def read_array(array: pa.Array, type_: FieldType) -> Typed:
    """Convert an Arrow array to a column. Values that are not of the field's type are marked as bad, and never
    converted silently.
    """
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    typed = Typed(array, type_)
    if pa.types.is_null(array.type):
        return typed
    if holds(array.type, type_):
        _READERS[type_.kind](typed)
    else:
        typed.mark(np.ones(len(array), np.bool_))
    typed.finish()
    return typed


def _integers(typed: Typed) -> NDArray[np.int64]:
    """Return the values of an integer array. Values outside the range of int64 are marked as bad."""
    array = typed.array.fill_null(0) if typed.has_nulls else typed.array
    if pa.types.is_uint64(array.type):
        unsigned: NDArray[np.uint64] = array.to_numpy()
        typed.mark(unsigned > np.uint64(LONG_MAX))
        return unsigned.view(np.int64)
    integers: NDArray[np.int64] = array.cast(pa.int64()).to_numpy()
    return integers


def _long(typed: Typed) -> None:
    typed.words = _integers(typed).view(np.uint64).copy()


def _boolean(typed: Typed) -> None:
    array = typed.array.fill_null(False) if typed.has_nulls else typed.array
    typed.words = array.cast(pa.uint8()).to_numpy().astype(np.uint64)


def _double(typed: Typed) -> None:
    array = typed.array
    if pa.types.is_integer(array.type):
        _double_of_integers(typed)
        return
    filled = array.fill_null(0.0) if typed.has_nulls else array
    numbers = filled.cast(pa.float64()).to_numpy()
    typed.mark(~np.isfinite(numbers))
    # The sum makes -0.0 0.0.
    typed.words = (numbers + 0.0).view(np.uint64)


def _double_of_integers(typed: Typed) -> None:
    """Integers that a double equals: those whose digits between first and last one bit are at most 53."""
    array = typed.array.fill_null(0) if typed.has_nulls else typed.array
    signed = not pa.types.is_uint64(array.type)
    integers = array.cast(pa.int64() if signed else pa.uint64()).to_numpy()
    magnitude = np.abs(integers).view(np.uint64) if signed else integers
    lowest_bit = magnitude & (~magnitude + np.uint64(1))
    typed.mark(((magnitude >> np.uint64(53)) >= lowest_bit) & (magnitude != 0))
    typed.words = integers.astype(np.float64).view(np.uint64)


def _timestamp(typed: Typed) -> None:
    array = typed.array
    if typed.type.unit and is_text(array.type):
        _time_of_text(typed)
    elif typed.type.unit and not pa.types.is_timestamp(array.type):
        _time_of_numbers(typed)
    elif pa.types.is_integer(array.type):
        _long(typed)
    elif pa.types.is_timestamp(array.type):
        unit = array.type.unit
        ticks = array.view(pa.int64())
        values = (ticks.fill_null(0) if typed.has_nulls else ticks).to_numpy()
        if unit in _PER_MILLISECOND:
            typed.words = (values // _PER_MILLISECOND[unit]).view(np.uint64)
            return
        wrong = (values > _SECONDS_LIMIT) | (values < -_SECONDS_LIMIT)
        typed.mark(wrong)
        typed.words = (np.where(wrong, 0, values) * 1_000).view(np.uint64)
    else:
        timestamp_of_text(typed)


def _time_of_numbers(typed: Typed) -> None:
    """Read numbers that count a unit: whole ones together, if all fit, otherwise one by one."""
    array = typed.array.fill_null(0) if typed.has_nulls else typed.array
    if pa.types.is_integer(array.type) and not pa.types.is_uint64(array.type):
        if time_of_integers(typed, array.cast(pa.int64()).to_numpy()):
            return
    typed.by_row()


def _time_of_text(typed: Typed) -> None:
    """Read RFC 3339 text together; if some text is a number that counts a unit, all of it one by one."""
    string_refs(typed)
    array = typed.sound()
    if pa.types.is_string_view(array.type):
        array = array.cast(pa.large_string())
    if pc.any(pc.match_substring_regex(array, _PLAIN_DECIMAL)).as_py() is True:
        typed.by_row()
    else:
        timestamp_of_text(typed)


def time_of_integers(typed: Typed, integers: NDArray[np.int64]) -> bool:
    """Read integers that count a unit. Returns False, doing nothing, if one is beyond 64 bits in milliseconds."""
    unit = typed.type.unit
    if unit != "s":
        typed.words = (integers // _PER_MILLISECOND[unit]).view(np.uint64)
        return True
    if ((integers > _SECONDS_LIMIT) | (integers < -_SECONDS_LIMIT)).any():
        return False
    typed.words = (integers * 1_000).view(np.uint64)
    return True


def timestamp_of_text(typed: Typed) -> None:
    """Read timestamps from RFC 3339 text. Rows that are bad already keep their words."""
    heap, refs = string_refs(typed)
    skip = typed.nulls | typed.bad
    before = skip.copy()
    parse_column(address(refs), address(heap), len(refs), address(typed.words), address(skip))
    typed.mark(skip != before)


def string(typed: Typed) -> None:
    """Read strings. Their words refer to the array's own bytes."""
    typed.heap, typed.words = string_refs(typed)


def string_refs(typed: Typed) -> tuple[NDArray[np.uint8], NDArray[np.uint64]]:
    """Return (heap, references) of a string array. Strings that are too long or not UTF-8 are marked as bad."""
    array = typed.array
    if pa.types.is_string_view(array.type):
        array = array.cast(pa.large_string())
    n = len(array)
    dtype = np.int64 if pa.types.is_large_string(array.type) else np.int32
    _, places, data = array.buffers()
    heap = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
    if places is None or not places.size:
        return heap, np.zeros(n, np.uint64)
    # Only the counted bytes are read: a buffer from a file may be longer, and its size need not be a multiple of the
    # item size.
    ends = np.frombuffer(places, dtype, array.offset + n + 1)[array.offset :].astype(np.int64)
    refs = np.zeros(n, np.uint64)
    _check_strings(
        address(ends), address(typed.nulls), address(typed.bad), address(heap), len(heap), n, address(refs)
    )
    return heap, refs


@jit
def _check_strings(ends: Any, nulls: Any, bad: Any, heap: Any, heap_bytes: Any, n: Any, refs: Any) -> None:
    limit = heap + heap_bytes
    for row in range(n):
        if ld8(nulls + row) != np.uint8(0):
            continue
        start = ldi64(ends + 8 * row)
        length = ldi64(ends + 8 * row + 8) - start
        if length > STRING_LIMIT_BYTES:
            st8(bad + row, np.uint8(1))
        elif not is_ascii(heap + start, length, limit) and not is_utf8(heap + start, length):
            st8(bad + row, np.uint8(1))
        else:
            sti64(refs + 8 * row, (start << REF_LENGTH_BITS) | length)


def _decimal(typed: Typed) -> None:
    array, type_ = typed.array, typed.type
    if pa.types.is_integer(array.type):
        integers = _integers(typed)
        limit = type_.unscaled_limit // 10**type_.scale
        typed.mark((integers > limit) | (integers < -limit))
        typed.words = (np.where(typed.bad != 0, 0, integers) * 10**type_.scale).view(np.uint64)
    elif pa.types.is_decimal(array.type):
        _decimal_of(typed, array)
    else:
        decimal_of_text(typed)


def decimal_of_text(typed: Typed) -> None:
    """Read decimals from strings in plain notation."""
    string_refs(typed)
    array = typed.sound()
    if all_match(array, _PLAIN_DECIMAL):
        _decimal_of(typed, array)
    else:
        typed.by_row()


def all_match(array: pa.Array, pattern: str) -> bool:
    """Whether every string that is not null matches a regular expression."""
    return pc.all(pc.match_substring_regex(array, pattern)).as_py() is not False


def _decimal_of(typed: Typed, array: pa.Array) -> None:
    """Convert decimals: by Arrow's exact conversion if it can do all rows, otherwise one by one."""
    try:
        converted = array.cast(pa.decimal128(_WIDEST_DECIMAL, typed.type.scale))
    except pa.ArrowInvalid:
        typed.by_row()
        return
    _, data = converted.buffers()
    both = np.frombuffer(data, np.int64, 2 * (converted.offset + len(converted)))[2 * converted.offset :]
    low, high = both[0::2], both[1::2]
    limit = typed.type.unscaled_limit
    typed.mark((high != low >> 63) | (low > limit) | (low < -limit))
    typed.words = low.copy().view(np.uint64)


_READERS: dict[WireKind, Callable[[Typed], None]] = {
    WireKind.STRING: string,
    WireKind.LONG: _long,
    WireKind.DOUBLE: _double,
    WireKind.BOOLEAN: _boolean,
    WireKind.DECIMAL: _decimal,
    WireKind.TIMESTAMP: _timestamp,
}
