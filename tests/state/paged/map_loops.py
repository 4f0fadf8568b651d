"""Compiled loops over maps, for runs of a million: each stops at a status and says how far it has come."""

from typing import Any

import numpy as np

from railgun.state.paged.ordered_map import om_count, om_delete, om_first, om_insert
from railgun.state.paged.pool import PagePool
from reservoir.native.jit import jit, ld64

WRONG = np.int64(-100)


@jit
def append(ctx: int, root: int, at: Any, n: Any, out: int) -> Any:
    """Insert the keys at, at + 1 ... n - 1: (next key, status)."""
    while at < n:
        status = om_insert(ctx, root, 2, np.uint64(at), np.uint64(0), np.uint64(at), np.uint64(7))
        if status < 0:
            return at, status
        at += 1
    return at, np.int64(0)


@jit
def take_first(ctx: int, root: int, at: Any, n: Any, out: int) -> Any:
    """Remove the keys at ... n - 1, each of which must be the first: (next key, status)."""
    while at < n:
        status = om_first(ctx, root, out)
        if status < 0:
            return at, status
        if status == 0 or ld64(out) != np.uint64(at) or ld64(out + 16) != np.uint64(at):
            return at, WRONG
        status = om_delete(ctx, root, ld64(out), ld64(out + 8))
        if status < 0:
            return at, status
        at += 1
    return at, np.int64(0)


@jit
def count_up(ctx: int, root: int, at: Any, n: Any, keys: int) -> Any:
    """Count the keys[at] ... keys[n - 1] up by one: (next index, status)."""
    while at < n:
        status = om_count(ctx, root, ld64(keys + 8 * at), np.uint64(0), 1)
        if status < 0:
            return at, status
        at += 1
    return at, np.int64(0)


@jit
def count_down(ctx: int, root: int, at: Any, n: Any, keys: int) -> Any:
    """Count the keys[at] ... keys[n - 1] down by one: (next index, status)."""
    while at < n:
        status = om_count(ctx, root, ld64(keys + 8 * at), np.uint64(0), -1)
        if status < 0:
            return at, status
        at += 1
    return at, np.int64(0)


def run(loop: Any, pool: PagePool, root: int, at: int, n: int, last: int) -> None:
    """A loop from `at` to `n`, serving statuses. `last`: address of the keys, or of room for an entry."""
    while at < n:
        at, status = loop(pool.context, root, at, n, last)
        assert status != WRONG, f"entry {at} is not the first"
        if status < 0:
            pool.handle(status)
