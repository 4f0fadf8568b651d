"""Frames: decoded rows (stored events) that kernels read by address, and the functions with which kernels read them.

Frame 0 is the open region. Its rows are in slots in the order of arrival, and FRAME_ORDER lists them by (time, seq).
Every other frame is a sealed chunk, with its rows in (time, seq) order. The kernels of cursors and the interpreter read
frames. `frames` below is the address in the context's FRAMES word.
"""

from typing import Any

import numpy as np

from reservoir.native.jit import jit, ld8, ld32, ld64, ldi64

FRAME_WORDS = 8
(
    FRAME_ROWS,  # rows that may be read (frame 0: slots)
    FRAME_TIME,  # address of int64[rows]
    FRAME_SEQ,  # address of int64[rows]
    FRAME_ORDER,  # address of uint32[], frame 0 only; else 0
    FRAME_COLUMNS,  # address of the column descriptors
    FRAME_CHUNK,  # chunk number; -1 for frame 0
    FRAME_SET,  # column set
    FRAME_STAMP,  # last advance that used it
) = range(8)

COLUMN_WORDS = 8
(
    COLUMN_KIND,  # 0: this frame lacks the column
    COLUMN_WORDS_AT,  # address of uint64[rows]: words (WORD) or references offset << 24 | length (STRING)
    COLUMN_NULLS,  # address of uint8[rows], 1 = null; 0: none is null
    COLUMN_HEAP,  # address of the bytes that references point into
    COLUMN_CODES,  # ENTITY: address of uint32[rows]; 0: the row is the code
    COLUMN_PAIRS,  # ENTITY: address of uint64[count][2]: hi, lo per code
    COLUMN_ROW_CACHE,  # ENTITY: address of int64[count][2], zero at first; only the interpreter uses it
    COLUMN_COUNT,  # ENTITY: codes
) = range(8)

SETS_MAX = 256


@jit
def frame_at(frames: int, frame: int) -> Any:
    """Address of a frame's head."""
    return frames + frame * (FRAME_WORDS * 8)


@jit
def frame_rows(frames: int, frame: int) -> Any:
    """Rows of a frame (frame 0: slots)."""
    return ldi64(frame_at(frames, frame) + FRAME_ROWS * 8)


@jit
def frame_time(frames: int, frame: int, row: int) -> Any:
    """Event time of a row, ms, int64."""
    return ldi64(ldi64(frame_at(frames, frame) + FRAME_TIME * 8) + row * 8)


@jit
def frame_seq(frames: int, frame: int, row: int) -> Any:
    """Log position of a row, int64."""
    return ldi64(ldi64(frame_at(frames, frame) + FRAME_SEQ * 8) + row * 8)


@jit
def column_at(frames: int, frame: int, column: int) -> Any:
    """Address of the descriptor of a hot column in a frame, which the column_ functions take."""
    return ldi64(frame_at(frames, frame) + FRAME_COLUMNS * 8) + column * (COLUMN_WORDS * 8)


@jit
def column_word(descriptor: int, row: int) -> Any:
    """Word (WORD) or reference (STRING) of a row, uint64."""
    return ld64(ldi64(descriptor + COLUMN_WORDS_AT * 8) + row * 8)


@jit
def column_null(descriptor: int, row: int) -> Any:
    """1 if the row's value is null, else 0 (WORD, STRING)."""
    nulls = ldi64(descriptor + COLUMN_NULLS * 8)
    if nulls == 0:
        return np.int64(0)
    return np.int64(ld8(nulls + row))


@jit
def column_heap(descriptor: int) -> Any:
    """Address of the bytes that this column's references point into (STRING)."""
    return ldi64(descriptor + COLUMN_HEAP * 8)


@jit
def column_code(descriptor: int, row: int) -> Any:
    """Code of the row's entity (ENTITY), int64."""
    codes = ldi64(descriptor + COLUMN_CODES * 8)
    if codes == 0:
        return np.int64(row)
    return np.int64(ld32(codes + row * 4))


@jit
def code_hi(descriptor: int, code: int) -> Any:
    """Upper half of the hash of a code (ENTITY), uint64."""
    return ld64(ldi64(descriptor + COLUMN_PAIRS * 8) + code * 16)


@jit
def code_lo(descriptor: int, code: int) -> Any:
    """Lower half of the hash of a code (ENTITY), uint64."""
    return ld64(ldi64(descriptor + COLUMN_PAIRS * 8) + code * 16 + 8)


@jit
def code_cache(descriptor: int, code: int) -> Any:
    """Address of the two int64 that the interpreter keeps per code (ENTITY)."""
    return ldi64(descriptor + COLUMN_ROW_CACHE * 8) + code * 16
