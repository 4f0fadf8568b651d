"""Keeps cells of dropped metrics in the row layouts until the sweep has freed what they refer to.

A cell (an aggregate's words in a row) may refer to pages: trees, wide sums, strings with a reference count. If it left
the layout at once, nothing would free these. So it is *retired*: it keeps its words under a name that says how to empty
it, and nothing updates it any more. Once `railgun.task.sweep` has emptied it in every row, the next layout leaves it
out. Sums of doubles are by far the most frequent of these cells, and their wide pages the rarest pages. So a task that
has never made a page does not keep cells for them.

The kernel here empties some cells of many rows. It first marks each row as dirty, so that its old image is kept.
"""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import numpy as np

from railgun.aggregators import codes
from railgun.interpreter import layout as at
from railgun.interpreter import rare
from railgun.plan.layout import GroupLayout
from railgun.plan.program import Program
from railgun.state.rows.access import touch_row
from railgun.state.rows.context import ROW_HEAD_BYTES
from reservoir.native.jit import call_entry, jit, ld64, ldi64, sti64

# A cell, int64 words.
(RESET_OP, RESET_OFFSET, RESET_CELL_WORDS, RESET_TYPE) = range(4)
RESET_WORDS = 4
# After the arguments of `railgun.interpreter.rare`: the row at which it has stopped.
BLOCK_AT_ROW = rare.CALL_WORDS
BLOCK_WORDS = rare.CALL_WORDS + 1


@jit
def _is_clear(cell: int, words: int) -> Any:
    found = np.uint64(0)
    for k in range(words):
        found |= ld64(cell + 8 * k)
    return found == np.uint64(0)


@jit
def reset_cells(
    table: int, pool: int, rows: int, n: int, cells: int, count: int, reset: int, block: int
) -> Any:
    """Empty `count` cells (int64[count, 4]) of n rows (addresses, int64[n]), starting at the row in BLOCK_AT_ROW.

    reset: the entry point of `rare.reset_rare`.
    Returns 0, or a status of the table or the pool. The caller must handle that status and call again.
    """
    for i in range(ldi64(block + BLOCK_AT_ROW * 8), n):
        row = ldi64(rows + 8 * i)
        sti64(block + BLOCK_AT_ROW * 8, np.int64(i))
        for k in range(count):
            op = cells + k * (RESET_WORDS * 8)
            cell = row + ldi64(op + RESET_OFFSET * 8)
            if _is_clear(cell, ldi64(op + RESET_CELL_WORDS * 8)):
                continue
            status = touch_row(table, row)
            if status != 0:
                return np.int64(status)
            sti64(block + rare.CALL_OP * 8, ldi64(op + RESET_OP * 8))
            sti64(block + rare.CALL_POOL * 8, pool)
            sti64(block + rare.CALL_CELL * 8, cell)
            sti64(block + rare.CALL_TYPE * 8, ldi64(op + RESET_TYPE * 8))
            status = call_entry(reset, block)
            if status != 0:
                return np.int64(status)
    return np.int64(0)


_RETIRED = "retired"
_WIDE = (codes.SUM_DOUBLE, codes.SQUARES_DOUBLE)
_TREES = (codes.DEQUE_MIN, codes.DEQUE_MAX, codes.QUEUE, codes.MULTISET, codes.VALUE_SET)
_VALUES = (codes.LATEST, codes.EARLIEST, codes.LEAST, codes.GREATEST)


class CellKind(NamedTuple):
    """The kind of a cell: the op of its updates and the type of its values (railgun.aggregators.codes)."""

    op: int
    type_code: int

    @property
    def has_pages(self) -> bool:
        """Whether such a cell may refer to something outside the row."""
        return self.has_string or self.op in _WIDE or self.op in _TREES

    @property
    def has_string(self) -> bool:
        """Whether such a cell may refer to a string directly, without a page."""
        return self.op in _VALUES and self.type_code == codes.TYPE_STRING


class HeldCell(NamedTuple):
    """A cell that may refer to pages: its kind, its byte offset in the row, and its size in words."""

    kind: CellKind
    offset: int
    words: int


def cell_kinds(program: Program) -> dict[tuple[int, int], CellKind]:
    """Return the kinds of the cells of a program, by group and byte offset in the row. Buckets are left out."""
    found: dict[tuple[int, int], CellKind] = {}
    for node in program.nodes.tolist():
        for op in program.updates[node[at.NODE_UPDATES] : node[at.NODE_UPDATES_END]].tolist():
            kind = CellKind(op[at.UPDATE_OP], op[at.UPDATE_TYPE])
            found[node[at.NODE_GROUP], op[at.UPDATE_CELL]] = kind
    return found


def retire(
    old: GroupLayout, new: GroupLayout, kinds: Mapping[tuple[int, int], CellKind], *, has_pages: bool
) -> list[tuple[int, int, int]]:
    """Keep those cells of `old` in `new` that it lacks and that may refer to pages. Returns the moves of cells for
    set_layout.

    has_pages: whether the task has ever made a page that is not a string.
    """
    if old.cells and old.cells.items() <= new.cells.items():
        return [(0, 0, old.words)]
    names: dict[str, str] = {}
    for name, (offset, words) in old.cells.items():
        kept = name
        if name not in new.cells:
            if not is_retired(name):
                kind = kinds.get((old.group, ROW_HEAD_BYTES + 8 * offset))
                if kind is None or not kind.has_pages or not (has_pages or kind.has_string):
                    continue
                kept = f"{_RETIRED}|{kind.op}|{kind.type_code}|{name}"
                # Before the first event a cell may come and go again while the one before waits for the sweep.
                while kept in old.cells or kept in new.cells:
                    kept += "'"
            new.place(kept, words)
        names[name] = kept
    return new.moves_from(old, names)


def is_retired(name: str) -> bool:
    """Whether this is the name of a retired cell."""
    return name.startswith(_RETIRED + "|")


def retired_cells(layout: GroupLayout) -> list[HeldCell]:
    """Return the retired cells of a layout."""
    found: list[HeldCell] = []
    for name, (offset, words) in layout.cells.items():
        if is_retired(name):
            _, op, type_code, _ = name.split("|", 3)
            found.append(HeldCell(CellKind(int(op), int(type_code)), ROW_HEAD_BYTES + 8 * offset, words))
    return found


def without_retired(layout: GroupLayout, names: Collection[str]) -> GroupLayout:
    """Return the next version of a layout without these retired cells. The cells in use come first, and
    do not move.
    """
    left = GroupLayout(layout.group, layout.fields, layout.version + 1)
    left.cells = {name: place for name, place in layout.cells.items() if not is_retired(name)}
    left.words = max((offset + words for offset, words in left.cells.values()), default=0)
    for name, (_, words) in layout.cells.items():
        if is_retired(name) and name not in names:
            left.place(name, words)
    return left
