"""The directory of resident pages: an open-addressing hash table from 128-bit page ids to blocks.

The kernels that open, load and evict pages look them up here. ctx is the address of the pool's context. An entry has 8
bytes: 31 bits of the id's hash, and the number of the block (in units of 64 bytes, plus 1). 0 is an empty entry. Ids
themselves are compared in the head of the page. A removal shifts back the entries that follow, so there are no
tombstones. Eight successive ids share a cache line, because pages of one tree are often made together.
"""

from typing import Any

import numpy as np

from railgun.state.paged.layout import DIRECTORY, DIRECTORY_LINES, HI, LO, MEMORY, PAGES
from reservoir.native.jit import jit, ldi64, sti64

_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_SPREAD_HI = np.uint64(0xC2B2AE3D27D4EB4F)
_BLOCK = 0xFFFFFFFF


@jit
def _hash(hi: Any, lo: Any) -> Any:
    """Return 31 bits: 28 choose a line of eight entries, and the other three the entry of it that is tried first."""
    low = np.uint64(lo)
    mixed = ((low >> np.uint64(3)) ^ (np.uint64(hi) * _SPREAD_HI)) * _SPREAD
    return np.int64(((mixed >> np.uint64(36)) << np.uint64(3)) | (low & np.uint64(7)))


@jit
def _home(hashed: int, lines: int) -> Any:
    """Return the index of the entry at which the search for a hash begins. lines: how many lines the directory has."""
    return ((((hashed >> 3) * lines) >> 28) << 3) | (hashed & 7)


@jit
def _entry_of(ctx: int, hi: Any, lo: Any) -> Any:
    """Return the address of a page's entry; if it has none, minus the address of the empty entry where it would be."""
    entries, lines = ldi64(ctx + DIRECTORY), ldi64(ctx + DIRECTORY_LINES)
    end = entries + (lines << 6)
    memory = ldi64(ctx + MEMORY) - 64
    tag = _hash(hi, lo)
    at = entries + (_home(tag, lines) << 3)
    while True:
        entry = ldi64(at)
        if entry == 0:
            return -at
        if entry >> 32 == tag:
            page = memory + ((entry & _BLOCK) << 6)
            if ldi64(page + LO) == lo and ldi64(page + HI) == hi:
                return at
        at += 8
        if at == end:
            at = entries


@jit
def find_page(ctx: int, hi: Any, lo: Any) -> Any:
    """Return the address of a resident page, or 0. The words of the id may be signed or not."""
    where = _entry_of(ctx, np.int64(hi), np.int64(lo))
    if where < 0:
        return np.int64(0)
    return ldi64(ctx + MEMORY) + (((ldi64(where) & _BLOCK) - 1) << 6)


@jit
def enter_page(ctx: int, page: int) -> None:
    """Enter a page, by the id in its head. If the id is there already, its entry now leads to this block."""
    hi, lo = ldi64(page + HI), ldi64(page + LO)
    where = _entry_of(ctx, hi, lo)
    if where < 0:
        where = -where
        sti64(ctx + PAGES, ldi64(ctx + PAGES) + 1)
    sti64(where, (_hash(hi, lo) << 32) | (((page - ldi64(ctx + MEMORY)) >> 6) + 1))


@jit
def leave_page(ctx: int, page: int) -> None:
    """Remove a page that is in the directory."""
    entries, lines = ldi64(ctx + DIRECTORY), ldi64(ctx + DIRECTORY_LINES)
    n = lines << 3
    hole = (_entry_of(ctx, ldi64(page + HI), ldi64(page + LO)) - entries) >> 3
    at, steps = hole, np.int64(0)
    while True:
        at += 1
        steps += 1
        if at == n:
            at = np.int64(0)
        entry = ldi64(entries + 8 * at)
        if entry == 0:
            break
        away = at - _home(entry >> 32, lines)
        if away < 0:
            away += n
        if away >= steps:
            sti64(entries + 8 * hole, entry)
            hole, steps = at, np.int64(0)
    sti64(entries + 8 * hole, 0)
    sti64(ctx + PAGES, ldi64(ctx + PAGES) - 1)
