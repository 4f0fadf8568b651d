"""The slow sweep over a task's rows. It deletes empty rows, and empties retired cells. `TaskProcessor.work` calls it.

A row is empty when the cells of its sliding and infinite windows are zero and the time buckets of its tumbling windows
have ended. So an entity without events for long costs nothing. The sweep changes no result, so it may run at any time
between batches. It runs a slice now and then (`TaskSettings.sweep_interval_s`).
"""

import numpy as np
import numpy.typing as npt

from railgun.interpreter import layout as at
from railgun.interpreter import rare
from railgun.plan.program import TIME_MIN
from railgun.state import keys
from railgun.state.errors import BatchTooLargeError
from railgun.state.rows.context import ROW_HEAD_BYTES
from railgun.state.rows.sweep import EmptyRule, RowSweep
from railgun.state.status import ROWS_DRAIN
from railgun.state.values import HEADER_BYTES, TOMBSTONE_FORMAT
from railgun.task.plan_runtime import subtract_clamped
from railgun.task.retirement import BLOCK_AT_ROW, BLOCK_WORDS, HeldCell, cell_kinds, reset_cells
from railgun.task.view import TaskView
from reservoir.distinct import distinct
from reservoir.native.jit import address, entry_address

# How many rows a slice looks at. If an eighth of them is deleted, the next slice comes soon.
_ROWS_MAX = 128
_WORTHWHILE = 8
_HASTE = 16
# After this time, no further share of a slice begins. Looking at rows is cheap, but deleting them is not.
_SHARES_S, _SHARES_HASTE = 0.0003, 2
# After this many steps that had to wait for copies, a step writes more of them, up to the second number times as
# many.
_WAITS, _WAY_TIMES = 16, 4


class SweepWork:
    """The sweep of one task. `deleted`: how many rows it has deleted."""

    def __init__(self, task: TaskView) -> None:
        self._task = task
        self._rows = RowSweep(task.table)
        self._reset = entry_address(rare.reset_rare)
        self._block = np.zeros(BLOCK_WORDS, np.int64)
        self._limit = _ROWS_MAX
        self._next_s = task.now()
        self._zeros: dict[int, list[int]] = {}
        self._buckets: dict[int, list[tuple[int, int, int]]] = {}
        self._held: dict[int, list[HeldCell]] = {}
        self._retired: dict[int, list[HeldCell]] = {}
        self._emptying: set[tuple[int, str]] = set()
        self._left: list[tuple[bytes, bytes]] = []
        self._stored_by = self._changed_in = 0
        self._is_told = True
        self._goes_on = False
        self._kept_waiting = 0
        self.deleted = 0

    @property
    def rounds(self) -> int:
        """How often all rows have been looked at."""
        return self._rows.rounds

    def rebuilt(self) -> None:
        """Note that the program has changed. The next slice first works out again which rows are empty and which
        cells are retired.
        """
        self._is_told, self._changed_in = False, self._task.table.epoch

    def _learn(self) -> None:
        self._is_told = True
        self._note_rules()
        runtime = self._task.runtime
        self._retired = runtime.retired()
        if not self._emptying:
            # Cells that are retired during a pass wait for the next one. If metrics come and go often, a pass that
            # started again for each of them would never end, and rows would grow with each metric.
            self._emptying = runtime.retired_names()
            self._left = [keys.group_range(group) for group in sorted(self._retired)]
            self._stored_by = self._changed_in

    def step(self, shares: int = 1) -> bool:
        """Do a slice of the sweep, if one is due and deleting rows would not first cause long writes.

        shares: with more than 1, a slice is divided into so many shares, and as many of them are done as fit into
            well under a millisecond.
        Returns whether the next slice is due soon.
        """
        task, begun_s = self._task, self._task.now()
        if begun_s < self._next_s:
            return self._goes_on
        self._goes_on = False
        if task.admission.clock_ms == TIME_MIN or (shares == 1 and task.table.has_backlog):
            return False
        if shares > 1 and not self._flush_old_copies():
            self._goes_on = True
            return True
        if not self._is_told:
            self._learn()
        rows_max = max(1, self._limit // shares)
        found = done = 0
        is_emptying = bool(self._emptying) and task.store.committed_epoch >= self._stored_by
        try:
            rules, is_the_end = self._rules(), False
            while not done or (done < shares and not is_the_end and task.now() - begun_s < _SHARES_S):
                task.table.next_stamp()
                found, done = found + self._delete_empty(rules, rows_max), done + 1
                is_the_end = is_emptying and self._empty_retired(rows_max)
        except BatchTooLargeError:
            if rows_max == 1:
                raise
            self._limit = max(1, self._limit // 2)
            return True
        is_worthwhile = found * _WORTHWHILE >= rows_max * done
        haste = (_HASTE if shares == 1 else _SHARES_HASTE) if is_worthwhile else 1
        self._next_s = task.now() + task.settings.sweep_interval_s * done / (shares * haste)
        self._goes_on = is_worthwhile or is_emptying
        return self._goes_on

    def _flush_old_copies(self) -> bool:
        """Write some of the old copies of rows that a checkpoint under way still needs. Returns whether none is left.

        All of these copies would have to be written before a row may be deleted. If events make more copies than a
        step writes, later steps write more. Otherwise no row could be deleted before the checkpoint ends.
        """
        is_free = self._task.table.flush_some_copies(1 + self._kept_waiting // _WAITS)
        most = _WAITS * _WAY_TIMES - 1
        self._kept_waiting = max(0, self._kept_waiting - 1) if is_free else min(most, self._kept_waiting + 1)
        return is_free

    # --- empty rows --------------------------------------------------------------------------------

    def _note_rules(self) -> None:
        runtime, program = self._task.runtime, self._task.runtime.program
        self._zeros, self._buckets, self._held = {}, {}, {}
        for group in program.groups:
            # The runtime's layouts are used here: the program's own still have cells that were released meanwhile.
            layout = runtime.layouts[group.group]
            tumbling: set[int] = set()
            words = {ROW_HEAD_BYTES + 8 * offset: size for offset, size in layout.cells.values()}
            self._buckets[layout.group], self._held[layout.group] = [], []
            for node in program.nodes.tolist():
                if node[at.NODE_GROUP] != layout.group or node[at.NODE_KIND] != at.TUMBLING:
                    continue
                bucket = node[at.NODE_BUCKET]
                self._buckets[layout.group].append((bucket, node[at.NODE_DELAY], node[at.NODE_SIZE]))
                updates = program.updates[node[at.NODE_UPDATES] : node[at.NODE_UPDATES_END], at.UPDATE_CELL]
                tumbling |= {bucket, *updates.tolist()}
            kinds = cell_kinds(program) if tumbling else {}
            for cell in tumbling:
                kind = kinds.get((layout.group, cell))
                if kind is not None and kind.has_pages:
                    self._held[layout.group].append(HeldCell(kind, cell, words[cell]))
            retired = {cell.offset for cell in runtime.retired().get(layout.group, ())}
            self._zeros[layout.group] = [
                (cell - ROW_HEAD_BYTES) // 8 + k
                for cell, size in words.items()
                if cell not in tumbling and cell not in retired
                for k in range(size)
            ]

    def _rules(self) -> dict[int, EmptyRule]:
        """Return for each group when a row counts as empty now."""
        clock_ms = self._task.admission.clock_ms
        return {
            group: EmptyRule(
                zeros,
                [(bucket - ROW_HEAD_BYTES) // 8 for bucket, _, _ in self._buckets[group]],
                [
                    subtract_clamped(clock_ms, delay_ms) // size_ms
                    for _, delay_ms, size_ms in self._buckets[group]
                ],
            )
            for group, zeros in self._zeros.items()
        }

    def _delete_empty(self, rules: dict[int, EmptyRule], rows_max: int) -> int:
        """Look at some rows, and delete those that are empty. Returns how many were deleted."""
        task = self._task
        rows = self._rows.step(rules, rows_max)
        if not len(rows):
            return 0
        groups = task.table.entities(rows)[:, 0]
        for group in distinct(groups).tolist():
            self._empty(rows[groups == group], self._held[group] + self._retired.get(group, []))
        task.table.delete(rows)
        self.deleted += len(rows)
        return len(rows)

    # --- retired cells -----------------------------------------------------------------------------

    def _empty_retired(self, rows_max: int) -> bool:
        """Empty retired cells in a slice of the stored rows. Returns whether all rows are done.

        By now every row that existed when the cells were retired has been stored, whether it is in memory or not. In
        later rows these cells have always been empty.
        """
        task = self._task
        if not self._left:
            task.runtime.release_retired(self._emptying)
            self._emptying = set()
            self.rebuilt()
            self._learn()
            return True
        start, stop = self._left[0]
        items = task.store.scan_values(start, stop, rows_max)
        needed = [
            keys.row_key_parts(key) for key, value in items if value[HEADER_BYTES - 1] != TOMBSTONE_FORMAT
        ]
        if needed:
            entities = np.array(needed, np.uint64)
            task.table.next_stamp()
            task.table.load(entities, len(entities))
            self._empty(task.table.find(entities), self._retired[needed[0][0]])
        if len(items) == rows_max:
            self._left[0] = items[-1][0] + b"\0", stop
        else:
            del self._left[0]
        return False

    def _empty(self, rows: npt.NDArray[np.int64], cells: list[HeldCell]) -> None:
        """Empty cells of rows of one group. The rows must be in memory."""
        if not cells:
            return
        task = self._task
        rows = np.ascontiguousarray(rows)
        table = np.array([(c.kind.op, c.offset, c.words, c.kind.type_code) for c in cells], np.int64)
        self._block[BLOCK_AT_ROW] = 0
        while status := reset_cells(
            task.table.context,
            task.pool.context,
            address(rows),
            len(rows),
            address(table),
            len(table),
            self._reset,
            address(self._block),
        ):
            if status == ROWS_DRAIN:
                task.table.flush_copies()
            else:
                task.pool.handle(status)
