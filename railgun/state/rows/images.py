"""Kernels that pack a row into the bytes of its image, and unpack it. The picture is in railgun/state/FORMAT.md.

The image of a row is its key and its body, as the store gets them. A body holds the version of the layout, a bitmap
of the cells that are not zero, and those cells without the zero bytes at either end. The kernels that load, evict and
scan rows call these.
"""

from typing import Any

import numpy as np

from railgun.state.keys import ROW_KEY_BYTES
from railgun.state.rows.context import (
    BUFFER_BYTES,
    BUFFER_CAPACITY,
    BUFFER_COUNT,
    BUFFER_IMAGES,
    BUFFER_LIMIT,
    BUFFER_USED,
    GROUP_MASK,
    IMAGE_BYTES,
    LOW32,
    ROW_EPOCHS,
    ROW_HEAD_BYTES,
    ROW_HI,
    ROW_LO,
    ROW_TAGS,
    ROWS_SALT,
)
from railgun.state.values import PACKED_FORMAT
from reservoir.native.jit import clz64, jit, ld8, ld32, ld64, ldi64, st8, st32, st64, sti64

VERSION_BYTES = 4
_LETTER = np.uint8(ord("r"))


@jit
def image_bytes_max(cells: int) -> int:
    """Return the most bytes that key and body of a row of so many cells can take, plus one word of slack."""
    return ROW_KEY_BYTES + VERSION_BYTES + ((cells + 7) >> 3) + 9 * cells + 8


@jit
def swap64(word: Any) -> Any:
    """Return a uint64 with its bytes in the opposite order."""
    word = ((word & np.uint64(0x00FF00FF00FF00FF)) << np.uint64(8)) | (
        (word >> np.uint64(8)) & np.uint64(0x00FF00FF00FF00FF)
    )
    word = ((word & np.uint64(0x0000FFFF0000FFFF)) << np.uint64(16)) | (
        (word >> np.uint64(16)) & np.uint64(0x0000FFFF0000FFFF)
    )
    return (word << np.uint64(32)) | (word >> np.uint64(32))


@jit
def write_row_key(target: int, group: Any, hi: Any, lo: Any) -> None:
    """Write the 19 bytes of the key of a row at `target`."""
    g = np.uint64(group)
    st8(target, _LETTER)
    st8(target + 1, np.uint8((g >> np.uint64(8)) & np.uint64(0xFF)))
    st8(target + 2, np.uint8(g & np.uint64(0xFF)))
    st64(target + 3, swap64(hi))
    st64(target + 11, swap64(lo))


@jit
def _write_body(target: int, cells_at: int, cells: int, version: int) -> int:
    """Write the body of a row at `target`; return the address behind it. The word there may be overwritten too."""
    st32(target, np.uint32(version))
    bitmap = target + VERSION_BYTES
    at = bitmap + ((cells + 7) >> 3)
    for first in range(0, cells, 8):
        bits = np.uint64(0)
        for j in range(min(8, cells - first)):
            word = ld64(cells_at + 8 * (first + j))
            if word != np.uint64(0):
                low = (63 - clz64(word & (np.uint64(0) - word))) >> 3
                size = 8 - low - (clz64(word) >> 3)
                st8(at, np.uint8((low << 4) | size))
                st64(at + 1, word >> np.uint64(low << 3))
                at += 1 + size
                bits |= np.uint64(1) << np.uint64(j)
        st8(bitmap + (first >> 3), np.uint8(bits))
    return at


@jit
def append_image(ctx: int, buffer: int, row: int, cells: int, version: int) -> bool:
    """Append the image of a dirty row to an image buffer, under the row's dirty_epoch. False if it has no room."""
    used = ldi64(buffer + BUFFER_USED)
    count = ldi64(buffer + BUFFER_COUNT)
    if used + image_bytes_max(cells) > ldi64(buffer + BUFFER_LIMIT) or count == ldi64(
        buffer + BUFFER_CAPACITY
    ):
        return False
    start = ldi64(buffer + BUFFER_BYTES) + used
    _write_own_key(ctx, start, row)
    end = _write_body(start + ROW_KEY_BYTES, row + ROW_HEAD_BYTES, cells, version)
    _enter_image(buffer, row, np.int64(ld64(row + ROW_EPOCHS) & LOW32), end - start)
    return True


@jit
def append_key(ctx: int, buffer: int, row: int, epoch: int) -> None:
    """Append the deletion of a row in `epoch` to an image buffer. The caller must have made sure that there is room."""
    start = ldi64(buffer + BUFFER_BYTES) + ldi64(buffer + BUFFER_USED)
    _write_own_key(ctx, start, row)
    _enter_image(buffer, row, epoch, ROW_KEY_BYTES)


@jit
def _write_own_key(ctx: int, target: int, row: int) -> None:
    lo = ld64(row + ROW_LO) ^ ld64(ctx + ROWS_SALT)
    write_row_key(target, ld64(row + ROW_TAGS) & GROUP_MASK, ld64(row + ROW_HI), lo)


@jit
def _enter_image(buffer: int, row: int, epoch: Any, size: int) -> None:
    used, count = ldi64(buffer + BUFFER_USED), ldi64(buffer + BUFFER_COUNT)
    image = ldi64(buffer + BUFFER_IMAGES) + count * IMAGE_BYTES
    sti64(image, used)
    sti64(image + 8, used + size)
    sti64(image + 16, epoch)
    sti64(image + 24, np.int64(ld64(row + ROW_EPOCHS) >> np.uint64(32)))
    sti64(buffer + BUFFER_USED, used + size)
    sti64(buffer + BUFFER_COUNT, count + 1)


@jit
def mark_stored(row: int, epoch: Any) -> None:
    """Mark a row as clean, because its image is on the way to the store. epoch (uint64): its new stored_epoch."""
    st64(row + ROW_EPOCHS, epoch << np.uint64(32))


@jit
def body_version(body: int) -> Any:
    """Return the version of the layout in which a body was written."""
    return np.int64(ld32(body))


@jit
def read_body(body: int, end: int, form: Any, target: int, cells: int) -> bool:
    """Unpack a body into `cells` words at `target`. Returns False if its bytes are no body of this format.

    form (uint8): the format of the value, 1 or 2. May read the seven bytes behind `end`.
    """
    if form == np.uint8(PACKED_FORMAT):
        return _read_packed(body, end, target, cells)
    return _read_words(body, end, target, cells)


@jit
def _read_packed(body: int, end: int, target: int, cells: int) -> bool:
    bitmap = body + VERSION_BYTES
    at: Any = bitmap + ((cells + 7) >> 3)
    if at > end:
        return False
    for first in range(0, cells, 8):
        bits = ld8(bitmap + (first >> 3))
        for j in range(min(8, cells - first)):
            word = np.uint64(0)
            if bits & np.uint8(1 << j):
                if at >= end:
                    return False
                shape = np.int64(ld8(at))
                size, low = shape & 15, shape >> 4
                if size == 0 or size + low > 8 or at + 1 + size > end:
                    return False
                word = ld64(at + 1) & (~np.uint64(0) >> np.uint64(64 - 8 * size))
                word <<= np.uint64(8 * low)
                at += 1 + size
            st64(target + 8 * (first + j), word)
    return bool(at == end)


@jit
def _read_words(body: int, end: int, target: int, cells: int) -> bool:
    """Unpack a body of format 1, in which every cell has all its eight bytes."""
    bitmap = body + VERSION_BYTES
    at = bitmap + ((cells + 7) >> 3)
    if at > end:
        return False
    for first in range(0, cells, 8):
        bits = ld8(bitmap + (first >> 3))
        for j in range(min(8, cells - first)):
            word = np.uint64(0)
            if bits & np.uint8(1 << j):
                if at + 8 > end:
                    return False
                word = ld64(at)
                at += 8
            st64(target + 8 * (first + j), word)
    return at == end
