"""Makes Python values and Arrow columns from result words: a metric's 128 bits and its null flag.

The bytes of string results are gathered from the heaps of the interpreter and the validator.
"""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from railgun.language.types import DECIMAL_DIGITS, RESULT_DIGITS, Kind, Type
from reservoir.native.jit import address, copy_bytes, jit, ldi64

_LENGTH_BITS, _LENGTH_MASK = 24, 0xFFFFFF


def gather_strings(
    references: npt.NDArray[np.uint64], heap: npt.NDArray[np.uint8]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """Return (offsets int64[n + 1], the bytes end to end) of n strings. A reference: offset in heap << 24 | length."""
    lengths = (references & np.uint64(_LENGTH_MASK)).astype(np.int64)
    offsets = np.zeros(len(references) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    data = np.empty(max(1, int(offsets[-1])), np.uint8)
    _gather(address(references), len(references), address(heap), address(data))
    return offsets, data


@jit
def _gather(references: Any, n: Any, heap: Any, target: Any) -> None:
    for row in range(n):
        reference = ldi64(references + 8 * row)
        length = reference & _LENGTH_MASK
        if length != 0:
            copy_bytes(target, heap + (reference >> _LENGTH_BITS), length)
            target += length


Value = int | float | bool | str | Decimal | None


def is_wide(type_: Type) -> bool:
    """Whether results of a type take both words: sums of longs, sums and averages of decimals."""
    return type_.kind is Kind.INTEGER128 or (type_.kind is Kind.DECIMAL and type_.precision > DECIMAL_DIGITS)


@dataclass(frozen=True, slots=True)
class MetricColumn:
    """One metric's results for n records.

    words: uint64[n, 2], the low word first; 64-bit results leave the second unset.
    nulls: uint8[n], 1 = null: the words there may be anything.
    heap: uint8[…], the bytes that a string's word (offset << 24 | length) points into.
    """

    name: str
    type: Type
    words: npt.NDArray[np.uint64]
    nulls: npt.NDArray[np.uint8]
    heap: npt.NDArray[np.uint8]

    @property
    def is_wide(self) -> bool:
        """Whether results take both words."""
        return is_wide(self.type)

    def value(self, row: int) -> Value:
        """One result as a Python value."""
        if self.nulls[row]:
            return None
        low = self.words[row, 0]
        kind = self.type.kind
        if kind is Kind.DOUBLE:
            return float(low.view(np.float64))
        if kind is Kind.BOOLEAN:
            return bool(low)
        if kind is Kind.STRING:
            start, length = int(low) >> 24, int(low) & 0xFFFFFF
            return self.heap[start : start + length].tobytes().decode()
        number = int(low.view(np.int64))
        if self.is_wide:
            number = (int(self.words[row, 1].view(np.int64)) << 64) | int(low)
        # Made from text, because arithmetic would round to the 28 digits of the default context.
        return Decimal(f"{number}E-{self.type.scale}") if kind is Kind.DECIMAL else number

    def arrow(self) -> pa.Array:
        """The column as Arrow: long int64, integer128 decimal128(38, 0), timestamp int64 milliseconds."""
        n = len(self.nulls)
        valid = np.packbits(self.nulls == 0, bitorder="little")
        buffers: list[Any] = [pa.py_buffer(valid)]
        if self.type.kind is Kind.STRING:
            return self._strings()
        if self.is_wide:
            type_ = pa.decimal128(RESULT_DIGITS, self.type.scale)
            return pa.Array.from_buffers(type_, n, [*buffers, pa.py_buffer(np.ascontiguousarray(self.words))])
        low = np.ascontiguousarray(self.words[:, 0])
        if self.type.kind is Kind.BOOLEAN:
            return pa.Array.from_buffers(
                pa.bool_(), n, [*buffers, pa.py_buffer(np.packbits(low != 0, bitorder="little"))]
            )
        if self.type.kind is Kind.DECIMAL:
            both = np.empty((n, 2), np.int64)
            both[:, 0] = low.view(np.int64)
            both[:, 1] = both[:, 0] >> 63
            return pa.Array.from_buffers(
                pa.decimal128(self.type.precision, self.type.scale), n, [*buffers, pa.py_buffer(both)]
            )
        type_ = pa.float64() if self.type.kind is Kind.DOUBLE else pa.int64()
        return pa.Array.from_buffers(type_, n, [*buffers, pa.py_buffer(low)])

    def _strings(self) -> pa.Array:
        references = np.where(self.nulls == 0, self.words[:, 0], np.uint64(0))
        offsets, data = gather_strings(references, self.heap)
        valid = np.packbits(self.nulls == 0, bitorder="little")
        small = offsets[-1] < 1 << 31
        places = pa.py_buffer(offsets.astype(np.int32) if small else offsets)
        type_ = pa.string() if small else pa.large_string()
        return pa.Array.from_buffers(
            type_, len(self.nulls), [pa.py_buffer(valid), places, pa.py_buffer(data)]
        )
