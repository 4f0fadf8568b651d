"""Kernel: empty some cells of many rows, each row marked dirty first, so that its old image is kept."""

from typing import Any

import numpy as np

from railgun.interpreter import rare
from railgun.state.rows.access import touch_row
from reservoir.native.jit import call_entry, jit, ld64, ldi64, sti64

# A cell, int64 words.
(RESET_OP, RESET_OFFSET, RESET_CELL_WORDS, RESET_TYPE) = range(4)
RESET_WORDS = 4
# Behind the arguments of `railgun.interpreter.rare`: the row at which it stopped.
BLOCK_AT_ROW = rare.CALL_WORDS
BLOCK_WORDS = rare.CALL_WORDS + 1


@jit
def _is_clear(cell: int, words: int) -> Any:
    found = np.uint64(0)
    for k in range(words):
        found |= ld64(cell + 8 * k)
    return found == np.uint64(0)


@jit
def reset_cells(
    table: int, pool: int, rows: int, n: int, cells: int, count: int, reset: int, block: int
) -> Any:
    """Empty `count` cells (int64[count, 4]) of n rows (addresses, int64[n]), from the row in BLOCK_AT_ROW on.

    reset: the entry point of `rare.reset_rare`.  0, or a status of the table or the pool: serve it, call again.
    """
    for i in range(ldi64(block + BLOCK_AT_ROW * 8), n):
        row = ldi64(rows + 8 * i)
        sti64(block + BLOCK_AT_ROW * 8, np.int64(i))
        for k in range(count):
            op = cells + k * (RESET_WORDS * 8)
            cell = row + ldi64(op + RESET_OFFSET * 8)
            if _is_clear(cell, ldi64(op + RESET_CELL_WORDS * 8)):
                continue
            status = touch_row(table, row)
            if status != 0:
                return np.int64(status)
            sti64(block + rare.CALL_OP * 8, ldi64(op + RESET_OP * 8))
            sti64(block + rare.CALL_POOL * 8, pool)
            sti64(block + rare.CALL_CELL * 8, cell)
            sti64(block + rare.CALL_TYPE * 8, ldi64(op + RESET_TYPE * 8))
            status = call_entry(reset, block)
            if status != 0:
                return np.int64(status)
    return np.int64(0)
