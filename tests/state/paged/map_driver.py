"""Kernels on pages called from Python: statuses served, root cells and results in arrays that stay alive."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from railgun.state.paged.pool import PagePool
from reservoir.native.jit import address

CELLS = 64


class Driver:
    """A pool, `CELLS` root cells and room for results. Counts the statuses it served."""

    def __init__(self, pool: PagePool) -> None:
        self.pool = pool
        self.cells = np.zeros((CELLS, 2), np.int64)
        self.out = np.zeros(4, np.uint64)
        self.served: Counter[int] = Counter()

    def call(self, kernel: Callable[..., Any], *arguments: Any) -> int:
        """A kernel's result, after serving as many statuses as it takes."""
        for _ in range(1000):
            result = int(kernel(self.pool.context, *arguments))
            if result >= 0:
                return result
            self.served[result] += 1
            self.pool.handle(result)
        raise AssertionError(f"{kernel} makes no progress")

    def root(self, cell: int) -> int:
        """Address of a root cell."""
        return address(self.cells) + 16 * cell

    def find(self, kernel: Callable[..., Any], cell: int, *key: Any) -> tuple[int, ...] | None:
        """The entry (k0, k1, v0, v1) that a kernel with an `out` finds, or None."""
        words = tuple(np.uint64(word) for word in key)
        self.out[:] = 0
        if self.call(kernel, self.root(cell), *words, address(self.out)) == 0:
            return None
        return tuple(self.out.tolist())

    def entries(self, cell: int, value_words: int) -> list[tuple[int, ...]]:
        """All entries of a map, in order."""
        found: list[tuple[int, ...]] = []
        for part in self.pool.walk(self.root(cell), value_words):
            found += [tuple(row) for row in part.tolist()]
        return found


def checkpoint(pool: PagePool, store: Any, epoch: int, limit_bytes: int = 1 << 20) -> bytes:
    """A whole checkpoint of the current epoch at once; returns the meta that it committed."""
    meta = pool.meta()
    pool.set_epoch(epoch + 1)
    while not pool.exhausted():
        store.write(pool.pending(epoch, limit_bytes))
        pool.drain()
    store.commit(epoch, meta)
    return meta
