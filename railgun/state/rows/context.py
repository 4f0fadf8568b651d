"""The layout of the entity table's memory: its context, groups, classes, segments, and the head of a row.

The entity table (table.py) holds the rows of entities that are in memory. All kernels of rows, and the Python code that
calls them, use these numbers. Kernels get the address of the table's context, an int64 array. Each constant below is
the byte offset of a word in the context, a row or a record of a table.
"""

import numpy as np

# --- a row: four words of head, then cells ---------------------------------------------------------
ROW_HEAD_WORDS = 4
ROW_HEAD_BYTES = 8 * ROW_HEAD_WORDS
LINE_WORDS = 8  # words of a cache line; a row longer than two lines begins at the start of one
_STEP_BITS = 4
ROW_HI = 0  # entity hash, upper half
ROW_LO = 8  # lower half XOR the table's salt: no cell of another row can look like a head by accident
# Low 32 bits: dirty_epoch, that of the changes since the last image; 0: there are none. High 32 bits: stored_epoch,
# that of the last image, or of the newest undo entry that the store has. In a free slot: the address of the next one.
ROW_EPOCHS = 16
ROW_TAGS = 24  # group (low 16 bits) | FLAG_USED | layout (bits 17 to 31) | ROWS_STAMP of the last use << 32

LOW32 = np.uint64(0xFFFFFFFF)
GROUP_MASK = np.uint64(0xFFFF)
GROUP_FREE = 0xFFFF  # no group has this number: the slot is empty
FLAG_USED = np.uint64(1 << 16)  # used since the hand of eviction (a clock, see evict.py) last passed
FREE_TAGS = np.uint64(GROUP_FREE)
# Group and layout together are the *name* of a row. A row of an older layout than its group's newest is *outdated*:
# a look-up under the newest name does not find it until it is upgraded.
LAYOUT_SHIFT, LAYOUTS = 17, 1 << 15  # a row holds the version of its layout modulo LAYOUTS
NAME_MASK = np.uint64((LAYOUTS - 1) << LAYOUT_SHIFT) | GROUP_MASK

# --- the context ------------------------------------------------------------------------------------
(
    ROWS_EPOCH,  # the current epoch: the number of the checkpoint that will hold what is changed now
    ROWS_STAMP,  # number of the current batch, 32 bits; rows with this stamp are never evicted
    ROWS_BATCH,  # number of the current batch, 64 bits
    ROWS_SALT,  # random, uint64: see ROW_LO
    ROWS_TABLE,  # address of the hash table: entries of (tag, address of the row; 0 = empty)
    ROWS_MASK,  # entries of the hash table - 1
    ROWS_COUNT,  # entries in use: the number of resident rows
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

# --- an image buffer ---------------------------------------------------------------------------------
# An image is a copy of a row for the store. Bytes of (key, body), and a table of (start, end, epoch, stored_epoch).
(
    BUFFER_BYTES,  # address
    BUFFER_LIMIT,  # bytes that it can hold
    BUFFER_USED,
    BUFFER_IMAGES,  # address of int64[capacity][4]
    BUFFER_CAPACITY,
    BUFFER_COUNT,
) = range(0, 6 * 8, 8)
IMAGE_BYTES = 4 * 8

# --- the table of groups, by group index -------------------------------------------------------------
(
    GROUP_CELLS,  # cell words of a row; 0: there is no such group
    GROUP_CLASS,  # the class that has slots for its rows
    GROUP_VERSION,  # version of its newest layout
    GROUP_MAPS,  # address of the table of older versions of its layout
    GROUP_MAP_COUNT,
    GROUP_NAME,  # the bits under NAME_MASK of rows in the newest layout
) = range(0, 6 * 8, 8)
GROUP_BYTES = 8 * 8

# --- an older version of a layout, in rising order of versions ---------------------------------------
(
    MAP_VERSION,
    MAP_CELLS,  # cell words in that version
    MAP_RUNS,  # address of int64[][3]: offset in that version, offset now, words
    MAP_RUN_COUNT,  # -1: the runs are not worked out yet
) = range(0, 4 * 8, 8)
MAP_BYTES = 4 * 8
RUN_BYTES = 3 * 8

# --- the table of classes: one for each width of slots -----------------------------------------------
(
    CLASS_BYTES,  # bytes of a slot
    CLASS_SLOTS,  # slots in a segment
    CLASS_OPEN,  # segment from which slots are taken; -1: none
    CLASS_HAND_SEGMENT,  # where the hand of eviction stands
    CLASS_HAND_SLOT,
    CLASS_LIVE,  # rows of the class
    CLASS_HELD,  # segments of the class
    CLASS_LOADED,  # rows placed since a segment of another class was last considered
) = range(0, 8 * 8, 8)
CLASS_RECORD_BYTES = 8 * 8

# --- the table of segments ---------------------------------------------------------------------------
(
    SEGMENT_CLASS,  # or UNOWNED; WITHHELD: the hash table uses its memory; LENT: images use it (`CopyQueue`)
    SEGMENT_LIVE,  # rows in it
    SEGMENT_CARVED,  # slots used so far; the slots behind are empty, but not marked as empty
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
    """Return the bytes of a slot for rows of so many cells.

    A slot longer than two cache lines takes whole lines. Long slots grow in steps of at most an eighth, so that most
    layouts that grow by a little keep the width of their slots.
    """
    words = ROW_HEAD_WORDS + cells
    if words <= 2 * LINE_WORDS:
        return 8 * words
    lines = -(-words // LINE_WORDS)
    step = 1 << max(0, lines.bit_length() - _STEP_BITS)
    return 8 * LINE_WORDS * step * -(-lines // step)


def row_name(group: int, version: int) -> int:
    """Return the group and the layout's version as ROW_TAGS has them."""
    return group | version % LAYOUTS << LAYOUT_SHIFT
