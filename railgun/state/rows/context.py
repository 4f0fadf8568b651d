"""Where the words of the entity table lie: its context, groups, classes, segments, and the head of a row.

Kernels get the address of the context, an int64 array; `X` below is the byte offset of a word in it.
"""

import numpy as np

# --- a row: four words of head, then cells ---------------------------------------------------------
ROW_HEAD_WORDS = 4
ROW_HEAD_BYTES = 8 * ROW_HEAD_WORDS
LINE_WORDS = 8  # of a cache line: rows of more than two begin at one
_STEP_BITS = 4
ROW_HI = 0  # entity hash, upper half
ROW_LO = 8  # lower half XOR the table's salt: no cell of another row can look like a head by accident
ROW_EPOCHS = 16  # dirty_epoch (low 32 bits) | stored_epoch << 32; in a free slot the address of the next one
ROW_TAGS = 24  # group (low 16 bits) | FLAG_USED | layout (bits 17 to 31) | stamp of the last use << 32

LOW32 = np.uint64(0xFFFFFFFF)
GROUP_MASK = np.uint64(0xFFFF)
GROUP_FREE = 0xFFFF  # no group has this number: the slot is empty
FLAG_USED = np.uint64(1 << 16)  # used since the clock's hand last passed
FREE_TAGS = np.uint64(GROUP_FREE)
# A row of an older layout than its group's newest is *outdated*: it is found under no name until it was upgraded.
LAYOUT_SHIFT, LAYOUTS = 17, 1 << 15  # rows tell the versions of layouts modulo this many
NAME_MASK = np.uint64((LAYOUTS - 1) << LAYOUT_SHIFT) | GROUP_MASK  # group and layout

# --- the context ------------------------------------------------------------------------------------
(
    ROWS_EPOCH,  # the current epoch
    ROWS_STAMP,  # the current batch, 32 bits: its rows are never evicted
    ROWS_BATCH,  # the same, counted on without end
    ROWS_SALT,  # random, uint64
    ROWS_TABLE,  # address of the hash table: entries of (tag, address of the row; 0 = empty)
    ROWS_MASK,  # its entries - 1
    ROWS_COUNT,  # its entries in use: resident rows
    ROWS_BASE,  # address of segment 0
    ROWS_SHIFT,  # log2 of the bytes of a segment
    ROWS_SEGMENTS,  # address of the table of segments
    ROWS_SEGMENT_COUNT,
    ROWS_GROUPS,  # address of the table of groups
    ROWS_GROUP_COUNT,
    ROWS_CLASSES,  # address of the table of classes
    ROWS_COPY,  # the copy buffer, an image buffer (BUFFER_WORDS)
) = range(0, 15 * 8, 8)
BUFFER_WORDS = 6
ROWS_OUT = ROWS_COPY + BUFFER_WORDS * 8  # images on their way to the store, an image buffer
ROWS_CONTEXT_WORDS = 14 + 2 * BUFFER_WORDS

# --- an image buffer: bytes of (key, body) and a table of (start, end, epoch, stored_epoch) ----------
(
    BUFFER_BYTES,  # address
    BUFFER_LIMIT,  # its bytes
    BUFFER_USED,
    BUFFER_IMAGES,  # address of int64[capacity][4]
    BUFFER_CAPACITY,
    BUFFER_COUNT,
) = range(0, 6 * 8, 8)
IMAGE_BYTES = 4 * 8

# --- the table of groups, by group index -------------------------------------------------------------
(
    GROUP_CELLS,  # cell words of a row; 0: there is no such group
    GROUP_CLASS,  # which class has slots for it
    GROUP_VERSION,  # of its layout
    GROUP_MAPS,  # address of the table of its older versions
    GROUP_MAP_COUNT,
    GROUP_NAME,  # the bits under NAME_MASK of rows in the newest layout
) = range(0, 6 * 8, 8)
GROUP_BYTES = 8 * 8

# --- an older version of a layout, in rising order of versions ---------------------------------------
(
    MAP_VERSION,
    MAP_CELLS,  # cell words in that version
    MAP_RUNS,  # address of int64[][3]: offset in that version, offset now, words
    MAP_RUN_COUNT,  # -1: not worked out yet
) = range(0, 4 * 8, 8)
MAP_BYTES = 4 * 8
RUN_BYTES = 3 * 8

# --- the table of classes: one per width of a row ----------------------------------------------------
(
    CLASS_BYTES,  # bytes of a slot
    CLASS_SLOTS,  # slots in a segment
    CLASS_OPEN,  # segment that slots are taken from; -1: none
    CLASS_HAND_SEGMENT,  # the hand of the clock
    CLASS_HAND_SLOT,
    CLASS_LIVE,  # rows
    CLASS_HELD,  # segments
    CLASS_LOADED,  # rows placed since a segment of another class was last considered
) = range(0, 8 * 8, 8)
CLASS_RECORD_BYTES = 8 * 8

# --- the table of segments ---------------------------------------------------------------------------
(
    SEGMENT_CLASS,  # or UNOWNED; WITHHELD: its memory is used by the hash table; LENT: by images (`CopyQueue`)
    SEGMENT_LIVE,  # rows in it
    SEGMENT_CARVED,  # slots used so far; those behind are empty but not marked so
    SEGMENT_FREE,  # address of the first empty slot among the carved ones; 0: none
    SEGMENT_MARK,  # last epoch in which a row of it became dirty
) = range(0, 5 * 8, 8)
SEGMENT_RECORD_BYTES = 8 * 8
UNOWNED = -1
WITHHELD = -2
LENT = -3

# --- a cursor over slots, int64[2] ---------------------------------------------------------------------
CURSOR_SEGMENT, CURSOR_SLOT = 0, 8


def slot_bytes_for(cells: int) -> int:
    """Bytes of a slot for rows of so many cells: whole cache lines, if more than two; where they are many,
    in steps of an eighth at most, so that most layouts that grow by a little keep the width of their slots.
    """
    words = ROW_HEAD_WORDS + cells
    if words <= 2 * LINE_WORDS:
        return 8 * words
    lines = -(-words // LINE_WORDS)
    step = 1 << max(0, lines.bit_length() - _STEP_BITS)
    return 8 * LINE_WORDS * step * -(-lines // step)


def row_name(group: int, version: int) -> int:
    """Group and layout as the tags of a row say them."""
    return group | version % LAYOUTS << LAYOUT_SHIFT
