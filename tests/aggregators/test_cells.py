"""The words of cells as CELLS.md says: rows stored by one version must be what the next one reads."""

import struct

from railgun.aggregators import codes
from railgun.language.ast import WindowKind
from railgun.language.types import DOUBLE, LONG, STRING, Type
from tests.aggregators.memory import bits
from tests.aggregators.window_model import Entry, Group, string_hash

TOP = 1 << 63


def cells_of(of: Type, window: WindowKind, entries: list[Entry]) -> dict[int, list[int]]:
    """The words of every cell, by op, after some values."""
    group = Group(of, window)
    for entry in entries:
        group.add(entry)
    return {op: group.row[at : at + cell.words].tolist() for op, (at, cell) in group.cells.items()}


def test_doubles() -> None:
    cells = cells_of(DOUBLE, WindowKind.SLIDING, [(1_000, 7, 1.5), (2_000, 9, -0.25)])
    assert cells[codes.COUNT] == [2]
    assert cells[codes.SUM_DOUBLE] == [0, 0, 5 << 30, 0, 0]
    assert cells[codes.SQUARES_DOUBLE] == [0, 0, 0, 5 << 60, 2, 0, 0, 0, 0]
    newest, before = [2_000, 9, int(bits(-0.25)), 0], [1_000, 7, int(bits(1.5)), 0]
    assert cells[codes.LATEST] == newest + before
    assert cells[codes.DEQUE_MIN][1:] == [1, *newest]
    assert cells[codes.DEQUE_MAX][1:] == [2, *before]
    assert cells[codes.QUEUE][1:] == [2, *before]
    assert cells[codes.MULTISET][1:] == [2]


def test_longs() -> None:
    cells = cells_of(LONG, WindowKind.TUMBLING, [(-5, 1, -3), (-5, 2, 2)])
    assert cells[codes.COUNT] == [2]
    assert cells[codes.SUM_LONG] == [2**64 - 1, 2**64 - 1]
    assert cells[codes.SQUARES_LONG] == [13, 0, 0]
    assert cells[codes.EARLIEST] == [2**64 - 5, 1, 2**64 - 3, 0]
    assert cells[codes.LEAST] == [2**64 - 3, 0]
    assert cells[codes.GREATEST] == [2, 0]
    assert cells[codes.VALUE_SET][1:] == [2]


def test_strings() -> None:
    high, low = string_hash("ä")
    assert high & TOP
    cells = cells_of(STRING, WindowKind.INFINITE, [(3, 4, "ä")])
    assert cells[codes.LATEST] == [3, 4, high, low, 0, 0, 0, 0]
    assert cells[codes.GREATEST] == [high, low]


def test_wide_pages() -> None:
    group = Group(DOUBLE, WindowKind.SLIDING)
    group.add((1, 1, 3 * 2.0**-1074))
    group.memory.make_cold()
    # A page as stored: state and words (paged/FORMAT.md), then how many values there are, and the integer.
    bodies = {
        len(body) // 8 - 1: struct.unpack(f"<{len(body) // 8 - 1}Q", body[8:])
        for body in group.memory.store.bodies(b"p").values()
    }
    assert bodies[35] == (1, 3, *[0] * 33)
    assert bodies[69] == (1, 9, *[0] * 67)


def test_keys_of_maps_are_biased() -> None:
    group = Group(LONG, WindowKind.SLIDING)
    group.add((-1, 5, 42))
    at = group.cells[codes.QUEUE][0]
    (entries,) = group.memory.pool.walk(group.row[at:].ctypes.data, 1)
    assert entries.tolist() == [[TOP - 1, TOP + 5, 42]]
