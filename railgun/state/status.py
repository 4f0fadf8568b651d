"""The statuses with which kernels on resident state (rows and pages in memory) say that they cannot continue.

They are negative, so that a result can be a count. The caller passes the status to `PagePool.handle`, or calls
`EntityTable.flush_copies` for ROWS_DRAIN, and then calls the kernel again.
"""

import numpy as np

DONE = np.int64(0)

FAULT = np.int64(-1)  # a page must be loaded; its id is in the pool's context
ROOM = np.int64(-2)  # the pool has no free block of the size class in its context
DRAIN = np.int64(-3)  # the pool's copy buffer is full
ROWS_DRAIN = np.int64(-4)  # the entity table's copy buffer is full
