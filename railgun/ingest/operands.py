"""What a compiled program of expressions reads: the values of its columns for many events. It does no I/O.

`DerivedProgram` (derived.py) and `ComputedValues` (computed_values.py) each have one `Operands`.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from railgun.ingest.answers import StringHeap
from railgun.language.evaluator import Evaluator
from railgun.language.kernels.layout import HEAP_SHIFT
from railgun.wire.columns import REF_LENGTH_BITS, Column
from reservoir.native.jit import address

_HEAP_SHIFT, _WITHIN_HEAP = np.uint64(HEAP_SHIFT), np.uint64((1 << HEAP_SHIFT) - 1)


class Operands:
    """The vectors of a program's columns, which its evaluator reads.

    words: uint64[columns][room]: the words of values, as in `Column`.  nulls: uint8[columns][room].
    """

    def __init__(self, evaluator: Evaluator, columns: int, rows: int) -> None:
        self._evaluator, self._count = evaluator, columns
        self._make_room(rows)

    def reserve(self, n: int) -> None:
        """Have room for n events. The values of before are gone if there was less."""
        if n > self.words.shape[1]:
            self._make_room(n)

    def take(self, place: int, column: Column, rows: slice, heap: StringHeap) -> None:
        """Take the values of some events as the values of a column of the program. heap: gets the bytes of strings."""
        n = rows.stop - rows.start
        nulls, words = self.nulls[place, :n], column.words[rows]
        nulls[:] = 0 if column.nulls is None else column.nulls[rows]
        self.words[place, :n] = words if column.heap is None else heap.take(words, nulls, column.heap)

    def clear_nulls(self, n: int) -> None:
        """Make the words of nulls zero in the first n events, as programs want them."""
        self.words[:, :n] *= self.nulls[:, :n] == 0

    def _make_room(self, n: int) -> None:
        shape = self._count, 1 << (n - 1).bit_length()
        self.words: NDArray[np.uint64] = np.zeros(shape, np.uint64)
        self.nulls: NDArray[np.uint8] = np.ones(shape, np.uint8)
        words, nulls = address(self.words), address(self.nulls)
        for place in range(shape[0]):
            self._evaluator.bind(place, words + 8 * place * shape[1], nulls + place * shape[1])


class JoinedHeaps:
    """The bytes of a program's three heaps in one: of its operands, of its constants, and those that it has made.

    heaps: these three, and what is to come behind them.
    """

    def __init__(self, heaps: Sequence[NDArray[np.uint8]]) -> None:
        sizes = [len(each) for each in heaps]
        self._starts = np.array([0, *np.cumsum(sizes[:-1])], np.uint64) << np.uint64(REF_LENGTH_BITS)
        self._heaps = heaps

    @property
    def bytes(self) -> NDArray[np.uint8]:
        """All bytes."""
        return np.concatenate(self._heaps)

    def moved(self, words: NDArray[np.uint64], nulls: NDArray[np.uint8]) -> NDArray[np.uint64]:
        """Return references to strings in the program's heaps as references to the same strings in this one."""
        refs = np.where(nulls == 0, words, np.uint64(0))
        moved: NDArray[np.uint64] = (refs & _WITHIN_HEAP) + self._starts[refs >> _HEAP_SHIFT]
        return moved
