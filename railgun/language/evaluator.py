"""Runs a program over batches: owns its registers and its scratch heap, and binds the batch's columns."""

import numpy as np
import numpy.typing as npt

from railgun.language.casemap import case_tables
from railgun.language.kernels import layout
from railgun.language.kernels.evaluate import evaluate as evaluate_program
from railgun.language.program import Program
from reservoir.native.jit import address

_ROWS_AT_FIRST = 256
_SCRATCH_BYTES_AT_FIRST = 4096


class Evaluator:
    """One program's evaluation, batch after batch. Not for several threads at once.

    Input columns are vectors of the caller's own: words (uint64) and nulls (uint8, 1 where null, the word
    then 0). A word is a long, timestamp or decimal (its scaled integer) in two's complement, a double's bits
    (never −0.0 or not finite), 0 or 1 for a boolean, and for a string `offset << 24 | length` into the batch
    heap: valid UTF-8, shorter than 2**24 bytes. Results have the same form, strings in any of three heaps:
    the batch's (0), the program's constants' (1), this evaluator's scratch (2), told by the word's two upper
    bits. They hold until the next call of `evaluate`.

    A string that LOWER or UPPER would make longer than STRING_BYTES_MAX is null.
    """

    def __init__(self, program: Program, rows: int = _ROWS_AT_FIRST) -> None:
        """rows: how many events there is room for at first."""
        self.program = program
        self.context = np.zeros(layout.VECTORS + 2 * program.vectors, np.int64)
        self.context_address = address(self.context)
        self._capacity = 0
        self._set(layout.PROGRAM, address(program.rows))
        self._set(layout.PROGRAM_LENGTH, len(program.rows))
        self._set(layout.POOL, address(program.pool))
        self._set(layout.HEAP_CONSTANT, address(program.heap))
        # Held here too: where several threads ask first, each gets tables of its own, and only the last are remembered.
        self._case_tables = case_tables()
        self._set(layout.CASE_TABLES, address(self._case_tables.directory))
        self._grow(rows)
        self._grow_scratch(_SCRATCH_BYTES_AT_FIRST)

    def _set(self, place: int, value: int) -> None:
        self.context[place] = value

    def bind(self, column: int, words_address: int, nulls_address: int) -> None:
        """Say where the vectors of the program's column stand, from now on. The caller keeps them alive."""
        place = layout.VECTORS + 2 * column
        self.context[place] = words_address
        self.context[place + 1] = nulls_address

    def bind_heap(self, heap_address: int) -> None:
        """Say where the bytes of the batch's strings stand, from now on. The caller keeps them alive."""
        self.context[layout.HEAP_BATCH] = heap_address

    def evaluate(self, rows: int) -> None:
        """Evaluate every root over the first `rows` events of the bound columns."""
        if rows > self._capacity:
            self._grow(rows)
        self.context[layout.ROWS] = rows
        while evaluate_program(self.context_address) != layout.DONE:
            self._grow_scratch(int(self.context[layout.SCRATCH_WANTED]))

    def root_addresses(self, root: int) -> tuple[int, int]:
        """Where the words and the null bytes of a root stand, since the last `evaluate`."""
        place = layout.VECTORS + 2 * self.program.roots[root]
        return int(self.context[place]), int(self.context[place + 1])

    @property
    def heap_addresses(self) -> tuple[int, int, int]:
        """What string words name by their two upper bits: the batch's heap, the constants', the scratch."""
        batch, constant, scratch = self.context[layout.HEAP_BATCH : layout.HEAP_BATCH + 3].tolist()
        return batch, constant, scratch

    def string_heap(self, word: int) -> int:
        """The address of the heap that a string's word points into."""
        return int(self.context[layout.HEAP_BATCH + (word >> layout.HEAP_SHIFT)])

    @property
    def own_heaps(self) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
        """The bytes behind strings of heaps 1 and 2, the latter until the next `evaluate`; uint8."""
        return self.program.heap, self._scratch[: int(self.context[layout.SCRATCH_USED])]

    def _grow(self, rows: int) -> None:
        """Make room for this many rows; the constants' vectors are filled here, once and for all."""
        program = self.program
        self._capacity = 1 << (rows - 1).bit_length()
        own = program.vectors - len(program.columns)
        self._words: npt.NDArray[np.uint64] = np.zeros((own, self._capacity), np.uint64)
        self._nulls: npt.NDArray[np.uint8] = np.zeros((own, self._capacity), np.uint8)
        constants = len(program.constant_words)
        self._words[:constants] = program.constant_words[:, np.newaxis]
        self._nulls[:constants] = program.constant_nulls[:, np.newaxis]
        words, nulls = address(self._words), address(self._nulls)
        for vector in range(own):
            place = layout.VECTORS + 2 * (len(program.columns) + vector)
            self.context[place] = words + 8 * vector * self._capacity
            self.context[place + 1] = nulls + vector * self._capacity

    def _grow_scratch(self, size_bytes: int) -> None:
        self._scratch: npt.NDArray[np.uint8] = np.zeros(1 << (size_bytes - 1).bit_length(), np.uint8)
        self._set(layout.HEAP_SCRATCH, address(self._scratch))
        self._set(layout.SCRATCH_CAPACITY, len(self._scratch))
