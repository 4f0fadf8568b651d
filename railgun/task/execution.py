"""Runs the compiled program of a task's metrics over batches of events: loads rows into memory, calls the interpreter
until it has finished, and holds the results.

`PlanRuntime` makes an `Execution` for each program. `TaskProcessor` calls it for batches, and fills for old events. An
*edge* is one end of a window, a fixed distance behind the clock. As the clock moves, stored events *cross* edges, and
are added to a window or removed from it; the reservoir lists them in its changelog. A *frame* holds decoded events: a
chunk, or the reservoir's open region (frame 0). A *node* of the program is one (window, filter, group-by), and a *pair*
is an edge with a group-by that needs the rows of the events crossing it.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from railgun.interpreter import layout as at
from railgun.interpreter import rare
from railgun.interpreter.prepared import PREPARED_TABLE_BYTES, PREPARED_TABLES
from railgun.interpreter.resolve import pass_entries, resolve
from railgun.interpreter.run import run
from railgun.plan.program import Program
from railgun.state.errors import BatchTooLargeError
from railgun.state.paged.pool import PagePool
from railgun.state.rows.table import EntityTable
from railgun.state.status import ROWS_DRAIN
from railgun.task.admission import Admission
from railgun.task.fill_nodes import FillNodes
from reservoir.cursors.cursor import Changelog
from reservoir.native.jit import address, entry_address

_ENTRIES = (
    (at.RUN_ADD, rare.add_rare),
    (at.RUN_REMOVE, rare.remove_rare),
    (at.RUN_RESET, rare.reset_rare),
    (at.RUN_RESULT, rare.result_rare),
    (at.RUN_TEXT, rare.text_rare),
)
_MISSING_ROWS = 4096
# The sizes for the first batches, which are usually small. Small arrays keep their results close together in memory.
_FIRST_RECORDS = 16
_FIRST_HEAP_BYTES = 1 << 16
_SLICE_ENTRIES = 4096


class Execution:
    """Runs one program over the state of one task. A new one is made when the program changes.

    The results are valid until the next batch.
    """

    def __init__(
        self,
        program: Program,
        table: EntityTable,
        pool: PagePool,
        frames: int,
        before: "Execution | None" = None,
    ) -> None:
        """frames: the address of the frame table, by which the interpreter finds decoded events.
        before: the execution of the previous program, which is not used any more; its largest array is reused.
        """
        self.program = program
        self._table, self._pool = table, pool
        self._context: npt.NDArray[np.int64] = np.zeros(at.RUN_WORDS, np.int64)
        self._words: Any = memoryview(self._context)  # type: ignore[arg-type]
        self._address = address(self._context)
        self._missing = np.zeros((_MISSING_ROWS, 3), np.uint64)
        self.heap = np.zeros(_FIRST_HEAP_BYTES, np.uint8)
        words = self._words
        words[at.RUN_TABLE], words[at.RUN_POOL], words[at.RUN_FRAMES] = table.context, pool.context, frames
        words[at.RUN_MISSING], words[at.RUN_MISSING_CAPACITY] = address(self._missing), _MISSING_ROWS
        words[at.RUN_NODES], words[at.RUN_UPDATES] = address(program.nodes), address(program.updates)
        # These are arrays, because numpy would convert lists to arrays for each batch.
        self._group_numbers = np.array([layout.group for layout in program.groups], np.intp)
        self._entity_columns = np.array(program.entity_columns, np.intp)
        groups = max((layout.group for layout in program.groups), default=-1) + 1
        words[at.RUN_RESULTS], words[at.RUN_GROUPS] = address(program.results), groups
        words[at.RUN_HEAP], words[at.RUN_HEAP_CAPACITY] = address(self.heap), len(self.heap)
        self._hash_at = np.zeros((2, max(1, groups)), np.int64)
        words[at.RUN_HASH_HI], words[at.RUN_HASH_LO] = address(self._hash_at), address(self._hash_at[1])
        self._block = np.zeros(rare.CALL_WORDS, np.int64)
        words[at.RUN_CALL] = address(self._block)
        self._prepared = np.zeros(PREPARED_TABLES * PREPARED_TABLE_BYTES, np.uint8)
        words[at.RUN_PREPARED] = address(self._prepared)
        # This is the largest array of an execution. Freeing it and allocating a new one would take milliseconds.
        none = np.zeros((0, 0), np.int64)
        self._entities: npt.NDArray[np.int64] = none if before is None else before._entities
        for place, function in _ENTRIES:
            words[place] = entry_address(function)
        self._log_start: Any = None
        self._log_at: Any = None
        self._nodes_at, self._pairs_at = address(program.nodes), address(program.pairs)
        self._one_clock = np.zeros(1, np.int64)
        self._hold(_FIRST_RECORDS)

    def begin(self, n: int, admission: Admission, slots: int, columns: npt.NDArray[np.int64]) -> None:
        """Bind a batch of n records that has just been admitted.

        slots: the address of int32[n], the rows of the accepted records in frame 0.
        columns: int64[hot columns, 2], the addresses of the batch's hot columns.
        """
        if n > self._stride:
            self._hold(1 << (n - 1).bit_length())
        words = self._words
        words[at.RUN_STATUS], words[at.RUN_ACCEPTED], words[at.RUN_TIME], words[at.RUN_CLOCK] = (
            admission.addresses
        )
        words[at.RUN_SLOT] = slots
        self._hash_at[:, self._group_numbers] = columns[self._entity_columns].T
        words[at.RUN_HEAP_USED] = 0

    def bind_changelog(self, log: Changelog) -> None:
        """Set the changelog, which lists the rows (stored events) that cross edges, if it has changed."""
        if log.start is self._log_start and log.at is self._log_at:
            return
        self._log_start, self._log_at = log.start, log.at
        words = self._words
        words[at.RUN_EDGE_START], words[at.RUN_EDGE_END] = address(log.start), address(log.end)
        words[at.RUN_ENTRY_AT], words[at.RUN_ENTRY_FRAME] = address(log.at), address(log.frame)
        words[at.RUN_ENTRY_ROW] = address(log.row)
        needed = max(1, len(self._hash_at[0])), log.limit
        if self._entities.shape[0] < needed[0] or self._entities.shape[1] != needed[1]:
            self._entities = np.zeros(needed, np.int64)
        words[at.RUN_ENTITIES], words[at.RUN_ENTITIES_STRIDE] = address(self._entities), log.limit
        self._log = log

    def records(self, first: int, limit: int) -> None:
        """Run the records from `first` to `limit` - 1 of the batch: expire, arrive and answer.

        The changelog must list all rows that cross edges at these records.
        """
        words = self._words
        self._select(0, len(self.program.nodes), self._nodes_at, self._pairs_at, len(self.program.pairs))
        words[at.RUN_DRAIN] = 0
        while first < limit:
            first = self._part(first, limit)

    def drain(self, record: int) -> None:
        """Apply the crossing rows that are listed so far, which must all belong to one record. Nothing arrives, and no
        results are made.
        """
        self._select(0, len(self.program.nodes), self._nodes_at, self._pairs_at, len(self.program.pairs))
        self._drain(record)

    def fill(self, fill: FillNodes, clock_ms: int) -> None:
        """Add the rows listed for edge 0 to the nodes that are being filled."""
        self._one_clock[0] = clock_ms
        saved = self._words[at.RUN_CLOCK]
        self._words[at.RUN_CLOCK] = address(self._one_clock)
        self._select(0, len(fill), address(fill.table), address(fill.pairs), len(fill.pairs))
        self._drain(0)
        self._words[at.RUN_CLOCK] = saved

    def _select(self, first: int, last: int, nodes: int, pairs: int, pair_count: int) -> None:
        """Set which nodes run, and for which (edge, group-by) pairs crossing rows need entity rows in memory."""
        words = self._words
        words[at.RUN_NODES], words[at.RUN_NODE_FIRST], words[at.RUN_NODE_LAST] = nodes, first, last
        words[at.RUN_PAIRS], words[at.RUN_PAIR_COUNT] = pairs, pair_count

    def _drain(self, record: int) -> bool:
        """Apply the rows that cross at a record, in slices whose entity rows fit into memory. Returns whether there
        were any.
        """
        words, log = self._words, self._log
        words[at.RUN_DRAIN] = 1
        listed, per_edge, found = log.end.copy(), _SLICE_ENTRIES, False
        ends = self._ends_of(record)
        while (log.start < ends).any():
            log.end[:] = np.minimum(ends, log.start + per_edge)
            words[at.RUN_FIRST], words[at.RUN_LIMIT] = record, record + 1
            try:
                self._resolve()
            except BatchTooLargeError:
                if per_edge == 1:
                    raise
                per_edge //= 2
                continue
            self._run()
            found = True
            log.start[:] = log.end
        log.end[:] = listed
        return found

    def _ends_of(self, record: int) -> npt.NDArray[np.int64]:
        """Return for each edge the index after its last entry that crosses at a record or before it."""
        log = self._log
        ends = log.end.copy()
        for edge in np.flatnonzero(log.start < log.end).tolist():
            start, end = int(log.start[edge]), int(log.end[edge])
            ends[edge] = start + np.searchsorted(log.at[start:end], record, side="right")
        return ends

    def _part(self, first: int, limit: int) -> int:
        """Run as many of these records as fit into memory with their rows. Returns the first record
        that was not run.
        """
        words = self._words
        words[at.RUN_FIRST] = first
        while True:
            words[at.RUN_LIMIT] = limit
            try:
                self._resolve()
                break
            except BatchTooLargeError:
                if limit > first + 1:
                    limit = first + (limit - first) // 2
                elif not self._drain(first):
                    raise
                words[at.RUN_DRAIN], words[at.RUN_FIRST] = 0, first
        self._run()
        pass_entries(self._address, len(self._log.start))
        return limit

    def _resolve(self) -> None:
        """Have all entity rows in memory that the records and their crossing rows need. Raises BatchTooLargeError."""
        self._table.next_stamp()
        self._words[at.RUN_NEXT_PAIR], self._words[at.RUN_NEXT_ENTRY] = -1, 0
        while (status := resolve(self._address)) != 0:
            if status == ROWS_DRAIN:
                # The table's buffer of images for the store is full.
                self._table.flush_copies()
            else:
                self._table.load(self._missing, self._words[at.RUN_MISSING_COUNT])

    def _run(self) -> None:
        words = self._words
        words[at.RUN_AT_NODE], words[at.RUN_AT_RECORD] = words[at.RUN_NODE_FIRST], -1
        words[at.RUN_AT_STAGE] = words[at.RUN_AT_OP] = 0
        while (status := run(self._address)) != 0:
            if status == at.HEAP:
                self._grow_heap()
            else:
                self._pool.handle(status)

    def _grow_heap(self) -> None:
        larger = np.zeros(2 * len(self.heap), np.uint8)
        larger[: len(self.heap)] = self.heap
        self.heap = larger
        self._words[at.RUN_HEAP], self._words[at.RUN_HEAP_CAPACITY] = address(larger), len(larger)

    def _hold(self, records: int) -> None:
        """Allocate space for the rows and the results of this many records."""
        self._stride = records
        self.rows = np.zeros((max(1, len(self._hash_at[0])), records), np.int64)
        metrics = max(1, len(self.program.types))
        self.out = np.zeros((metrics, records, 2), np.uint64)
        self.nulls = np.zeros((metrics, records), np.uint8)
        words = self._words
        words[at.RUN_STRIDE], words[at.RUN_ROWS] = records, address(self.rows)
        words[at.RUN_OUT], words[at.RUN_OUT_NULLS] = address(self.out), address(self.nulls)
