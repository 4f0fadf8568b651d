"""An independent look at a task's stored pages: every one belongs to exactly one row, and strings are counted."""

import struct
from collections import Counter
from typing import Any

from railgun.aggregators import codes
from railgun.state import keys
from railgun.state.rows.context import ROW_HEAD_BYTES
from railgun.task.processor import TaskProcessor
from railgun.task.retirement import CellKind, cell_kinds
from tests.state.paged.stored_tree import StoredTree

_ALL = 1 << 62
_TREES = (codes.DEQUE_MIN, codes.DEQUE_MAX, codes.QUEUE)
_SETS = (codes.MULTISET, codes.VALUE_SET)
_PAGE_WORDS = 256
_VALUES = {codes.LATEST: (2, 6), codes.EARLIEST: (2,), codes.LEAST: (0,), codes.GREATEST: (0,)}


class StoredState:
    """What rows refer to, gathered cell by cell."""

    def __init__(self, bodies: dict[int, bytes]) -> None:
        self.tree = StoredTree(bodies, _PAGE_WORDS)
        self.wide: set[int] = set()
        self.strings: Counter[tuple[int, int]] = Counter()

    def cell(self, kind: CellKind, words: Any) -> None:
        if kind.op in (codes.SUM_DOUBLE, codes.SQUARES_DOUBLE):
            self.wide |= {int(words[0])} - {0}
        elif kind.op in _TREES:
            entries = self.tree.entries(int(words[0]))
            assert len(entries) == words[1]
            if kind.type_code == codes.TYPE_STRING:
                self.strings.update((int(v0), int(v1)) for _, _, v0, v1 in entries)
        elif kind.op in _SETS:
            assert len(self.tree.entries(int(words[0]))) == words[1]
        elif kind.op in _VALUES and kind.type_code == codes.TYPE_STRING:
            for at in _VALUES[kind.op]:
                if words[at]:
                    self.strings[int(words[at]), int(words[at + 1])] += 1


def settle(task: TaskProcessor) -> None:
    """Let fills, sweeps and the graveyard come to their end, and store all of it."""
    for _ in range(100_000):
        task.work()
        if not task.fills.waiting and not task.runtime.retired():
            break
        if not task.checkpointer.is_in_flight:
            task.checkpoints.begin()
    else:
        raise AssertionError("retired cells stay")
    while task.pool.free_deferred(1000):
        pass
    for _ in range(2):  # deletions of the first are cleaned up by the second
        if task.checkpointer.is_in_flight:
            task.checkpoints.take()
        task.checkpoints.begin()
        task.checkpoints.take()


def check_stored(task: TaskProcessor) -> int:
    """No page is without a row, no row without its pages; returns how many pages and strings there are."""
    settle(task)
    bodies = {
        struct.unpack(">Q", key[9:])[0]: body
        for key, _, body in task.store.scan(keys.PAGE, keys.after(keys.PAGE), _ALL)
        if body is not None
    }
    found = StoredState(bodies)
    for (group, offset), kind in cell_kinds(task.runtime.program).items():
        word = (offset - ROW_HEAD_BYTES) // 8
        for _, cells in task.table.reader.rows(group):
            for row in cells:
                found.cell(kind, row[word:])
    assert set(bodies) == found.tree.reached | found.wide
    strings = {
        struct.unpack(">QQ", key[1:]): struct.unpack_from("<Q", body, 8)[0]
        for key, _, body in task.store.scan(keys.STRING, keys.after(keys.STRING), _ALL)
        if body is not None
    }
    assert strings == dict(found.strings)
    return len(bodies) + len(strings)


def rows_of(task: TaskProcessor) -> int:
    """How many rows a task has, resident or stored."""
    return sum(len(ids) for group in task.table.layouts() for ids, _ in task.table.reader.rows(group))
