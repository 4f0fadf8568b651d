"""Prepared ops: what a node's updates are and where in one frame their arguments lie, looked up once per frame."""

# A prepared op: code, byte offset of its cell, where the argument's words and nulls lie in the frame (0: none).
PREPARED_CODE, PREPARED_CELL, PREPARED_WORDS, PREPARED_NULLS = range(0, 32, 8)
PREPARED_BYTES = 32
PREPARED_OPS_MAX = 32

# A table of them begins with the frame it is for and the words of the filter's column (0: no filter).
PREPARED_FRAME = PREPARED_CODE
PREPARED_TABLE_BYTES = (PREPARED_OPS_MAX + 1) * PREPARED_BYTES
PREPARED_TABLES = 3  # of arrivals, of the head's crossings, of the tail's
