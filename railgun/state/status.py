"""What kernels on resident state answer when they cannot go on: negative, so that results can be counts.

Whoever called hands the status to the resident it came from and calls the kernel again.
"""

import numpy as np

DONE = np.int64(0)

FAULT = np.int64(-1)  # a page must be loaded; its id is in the pool's context
ROOM = np.int64(-2)  # the pool has no free block of the size class in its context
DRAIN = np.int64(-3)  # the pool's copy buffer is full
ROWS_DRAIN = np.int64(-4)  # the entity table's copy buffer is full: `EntityTable.relieve()`
