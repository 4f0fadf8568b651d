"""Entry points for large and less frequent operations: state of variable size, wide sums, variances, strings.

Each takes the address of a block of int64 words (CALL_…). They are compiled by themselves and not inlined into the
interpreter's loop, which keeps the loop small and its compilation short (`reservoir.native.jit.entry_address`).
"""

from typing import Any

import numpy as np

from railgun.aggregators.dispatch import apply_add, apply_remove, apply_reset
from railgun.aggregators.results import apply_result
from railgun.state.paged.strings import str_address, str_length
from reservoir.native.jit import ld64, ldi64, sti64

# A block of arguments.
(
    CALL_OP,
    CALL_POOL,
    CALL_CELL,
    CALL_COUNT,
    CALL_TYPE,
    CALL_TIME,  # only updates, from here on
    CALL_SEQ,
    CALL_V0,
    CALL_V1,
    CALL_TEXT,
    CALL_LENGTH,
    CALL_SQUARES,  # only results, from here on
    CALL_SCALE,
    CALL_OUT,
) = range(14)
CALL_WORDS = 16


def add_rare(block: int) -> Any:
    """Call apply_add with the words of the block."""
    return apply_add(
        ldi64(block), ldi64(block + CALL_POOL * 8), ldi64(block + CALL_CELL * 8), ldi64(block + CALL_COUNT * 8),
        ldi64(block + CALL_TIME * 8), ldi64(block + CALL_SEQ * 8), ld64(block + CALL_V0 * 8), ld64(block + CALL_V1 * 8),
        ldi64(block + CALL_TYPE * 8), ldi64(block + CALL_TEXT * 8), ldi64(block + CALL_LENGTH * 8),
    )  # fmt: skip


def remove_rare(block: int) -> Any:
    """Call apply_remove with the words of the block."""
    return apply_remove(
        ldi64(block), ldi64(block + CALL_POOL * 8), ldi64(block + CALL_CELL * 8), ldi64(block + CALL_COUNT * 8),
        ldi64(block + CALL_TIME * 8), ldi64(block + CALL_SEQ * 8), ld64(block + CALL_V0 * 8), ld64(block + CALL_V1 * 8),
        ldi64(block + CALL_TYPE * 8),
    )  # fmt: skip


def reset_rare(block: int) -> Any:
    """Call apply_reset with the words of the block."""
    return np.int64(
        apply_reset(
            ldi64(block),
            ldi64(block + CALL_POOL * 8),
            ldi64(block + CALL_CELL * 8),
            ldi64(block + CALL_TYPE * 8),
        )
    )


def result_rare(block: int) -> Any:
    """Call apply_result with the words of the block."""
    return np.int64(
        apply_result(
            ldi64(block), ldi64(block + CALL_POOL * 8), ldi64(block + CALL_CELL * 8), ldi64(block + CALL_SQUARES * 8),
            ldi64(block + CALL_COUNT * 8), ldi64(block + CALL_TYPE * 8), ldi64(block + CALL_SCALE * 8),
            ldi64(block + CALL_OUT * 8),
        )
    )  # fmt: skip


def text_rare(block: int) -> Any:
    """The address of the bytes of the string (CALL_V0, CALL_V1), or a status of the pool. Sets CALL_LENGTH."""
    pool, hi, lo = ldi64(block + CALL_POOL * 8), ld64(block + CALL_V0 * 8), ld64(block + CALL_V1 * 8)
    text = np.int64(str_address(pool, hi, lo))
    if text >= 0:
        sti64(block + CALL_LENGTH * 8, np.int64(str_length(pool, hi, lo)))
    return text
