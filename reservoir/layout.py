"""The layout of the reservoir's context, which kernels and Python share.

The context is one int64 array; kernels take its byte address. All numbers below are indexes of words in it. The task
writes the IN_ words (through `Reservoir.words`) before `append`, and reads the OUT_ and ENTRY_ words.
"""

INT64_MIN = -(1 << 63)
INT64_MAX = (1 << 63) - 1

# The input: a batch, written by the task. n is the number of all its records, accepted or not.
(
    IN_N,
    IN_ACCEPTED,  # address of uint8[n]; 0 = all are accepted
    IN_TIME,  # address of int64[n]: accepted event time, ms; INT64_MIN means minus infinity
    IN_SEQ,  # address of int64[n]: log positions; 0 = IN_FIRST_SEQ + i
    IN_FIRST_SEQ,
    IN_ID_HI,  # address of uint64[n]
    IN_ID_LO,
    IN_PAYLOAD,  # address of the joined raw records
    IN_PAYLOAD_OFFSETS,  # address of int64[n + 1]
    IN_CLOCK,  # address of int64[n]: T(i), the clock after record i; read by advance
    IN_HEAP0,  # addresses of the heaps to which STRING references (heap << 62 | offset << 24 | length) point
    IN_HEAP1,
    IN_HEAP2,
    IN_HEAP3,
    IN_COLUMNS,  # address of int64[hot columns][2]: words, nulls (0 = none) or, for ENTITY, hi, lo
) = range(15)

# The output for the task. An entry is a row that crosses an edge.
(
    OUT_SLOT,  # address of int32[n]: row in frame 0 of each record; -1 if it was not appended
    ENTRY_AT,  # address of int32[]: first record of the batch whose clock passes the row
    ENTRY_FRAME,  # address of int32[]
    ENTRY_ROW,  # address of int32[]
    EDGE_START,  # address of int64[edges]: first entry of each edge
    EDGE_END,  # address of int64[edges]: end of the entries of each edge
    FRAMES,  # address of the frame table (reservoir.frames); never moves
) = range(16, 23)

# The open region: rows that no chunk holds yet, in a ring of arrival slots.
(
    OPEN_CAPACITY,  # slots, a power of two
    OPEN_HEAD,  # arrival number of the oldest slot still in use
    OPEN_NEXT,  # arrival number of the next row; slot = arrival & (capacity - 1)
    OPEN_TIME,  # address of int64[capacity]
    OPEN_SEQ,  # address of int64[capacity]
    OPEN_IDS,  # address of uint64[capacity][2]: hi, lo
    OPEN_BYTES_AT,  # address of int64[capacity]: where the payload lies in the arena (position, not wrapped)
    OPEN_BYTES_LENGTH,  # address of int64[capacity]
    OPEN_BYTES_START,  # address of int64[capacity]: first arena position of the row's batch
    OPEN_BATCH_INDEX,  # address of int32[capacity]: index of the row in the batch that brought it
    OPEN_STATE,  # address of uint8[capacity]: SLOT_OPEN, SLOT_SEALED or SLOT_FREE
    OPEN_ARENA,  # address of uint8[arena capacity]
    OPEN_ARENA_CAPACITY,  # bytes, a power of two
    OPEN_ARENA_HEAD,  # oldest arena position still in use
    OPEN_ARENA_NEXT,
    OPEN_ORDER,  # address of uint32[order capacity]: slots sorted by (time, seq)
    OPEN_ORDER_CAPACITY,
    OPEN_ORDER_START,  # first entry not yet sealed
    OPEN_ORDER_END,
    OPEN_SCRATCH,  # address of uint32[2 * OPEN_SCRATCH_CAPACITY]
    OPEN_SCRATCH_CAPACITY,
    OPEN_SLOT_CAPACITY,  # records that OUT_SLOT has room for
    OPEN_COLUMN_COUNT,
    OPEN_COLUMNS,  # address of the column descriptors of frame 0
    OPEN_BATCH_FIRST,  # arrival number of the first row of the present batch
    OPEN_MIN_INSERTED,  # least time of a row inserted before existing ones since the edges last moved
    OPEN_RESTORING,  # 1: rows at or before the last sealed one are skipped, not refused
    OPEN_DUE_TIME,  # time of the row that completes the next chunk; INT64_MAX if there are too few rows
    OPEN_CHUNK_EVENTS,
    OPEN_SEALED_TIME,  # (time, seq) of the last sealed row
    OPEN_SEALED_SEQ,
    OPEN_LAST_SEQ,  # log position of the last row appended
    OPEN_NEED_ROWS,  # rows and bytes for which a refused append lacks room
    OPEN_NEED_BYTES,
    OPEN_FAULT_SEQ,  # log position that an append refused
    OPEN_OLDEST,  # arrival number of the oldest row not sealed; OPEN_NEXT if there is none
) = range(24, 60)

SLOT_OPEN, SLOT_SEALED, SLOT_FREE = range(3)

# The index of sealed chunks: arrays of INDEX_COUNT entries, the first of chunk number INDEX_BASE.
(
    INDEX_BASE,
    INDEX_NEXT,  # number of the next chunk to be sealed; for edges it stands for the open region
    INDEX_ROWS,  # address of int64[]
    INDEX_FIRST_TIME,
    INDEX_LAST_TIME,
    INDEX_LAST_SEQ,
) = range(60, 66)

# Frames in memory.
(
    FRAME_KEYS,  # address of int64[frames]: chunk number * 256 + column set; -1 = empty
    FRAMES_USED,  # frames from this number on are empty
    FRAMES_STAMP,  # number of the present advance: a frame with this stamp is in use
) = range(66, 69)

# Edges and their advance.
(
    EDGES,  # address of the edge table
    EDGE_ORDER,  # address of int32[]: live edges by ascending delta
    EDGE_COUNT,
    EDGE_SAVED,  # address of int64[edges][3]: positions at the start of the pass
    ENTRY_LIMIT,  # entries that this advance may give
    ENTRY_COUNT,
    ADVANCE_DONE,  # records for which all edges are complete
    ADVANCE_TO,  # records that this pass tries to complete
    ADVANCE_AT,  # place in EDGE_ORDER where a pass continues
    ADVANCE_RECORD,  # record at which the edge at that place continues
    NEED_SET,  # the frame that a kernel lacks
    NEED_CHUNK,
    WANTS,  # address of int64[][2]: (column set, chunk) that will be wanted soon
    WANTS_CAPACITY,
    WANTS_COUNT,
) = range(72, 87)

CONTEXT_WORDS = 96

# Statuses of kernels.
DONE, GROW, BEHIND_SEAL, OUT_OF_ORDER, LOAD, FULL = range(6)
