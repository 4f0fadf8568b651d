"""Prepared ops: a node's update ops with the addresses of their arguments in one frame, looked up once per frame.

simple.py makes them, and plain.py reads them too. A frame is a decoded chunk, or the open region of the reservoir.
"""

# A prepared op: code, byte offset of its cell, addresses of the argument's words and nulls in the frame (0: none).
PREPARED_CODE, PREPARED_CELL, PREPARED_WORDS, PREPARED_NULLS = range(0, 32, 8)
PREPARED_BYTES = 32
PREPARED_OPS_MAX = 32

# A table of prepared ops begins with its frame and the address of the filter's words (0: no filter).
PREPARED_FRAME = PREPARED_CODE
PREPARED_TABLE_BYTES = (PREPARED_OPS_MAX + 1) * PREPARED_BYTES
PREPARED_TABLES = 3  # for arrivals, and for the rows that cross the head and the tail
