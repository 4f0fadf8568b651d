"""Answers value queries from the present state of a task (docs/semantics.md, Values without an event), for `QueryWork`.

It reads copies of rows. So no row is made, loaded or changed, and a query does not change which rows stay in memory.
"""

import numpy as np
import numpy.typing as npt

from railgun.interpreter import layout as at
from railgun.interpreter import rare
from railgun.interpreter.reading import read
from railgun.plan.program import Program
from railgun.state.paged.pool import PagePool
from railgun.state.rows.context import ROW_HEAD_BYTES
from railgun.state.rows.reader import RowReader
from reservoir.native.jit import address, array_at, entry_address

_FIRST_HEAP_BYTES = 1 << 12
# A heap that was larger is not kept for the next query.
_HEAP_KEPT_BYTES = 1 << 20


class ValueReader:
    """Reads the results of one program. A new one is made when the program changes.

    program: the program.
    out: uint64[metrics, n, 2], nulls: uint8[metrics, n], heap: as an Execution has them, for the keys read last.
    """

    def __init__(self, program: Program, rows: RowReader, pool: PagePool) -> None:
        self.program, self._reader, self._pool = program, rows, pool
        self._context: npt.NDArray[np.int64] = np.zeros(at.RUN_WORDS, np.int64)
        self._block = np.zeros(rare.CALL_WORDS, np.int64)
        self._clock = np.zeros(1, np.int64)
        self.heap = np.zeros(_FIRST_HEAP_BYTES, np.uint8)
        self.out, self.nulls = np.zeros((1, 0, 2), np.uint64), np.zeros((1, 0), np.uint8)
        widest = max((layout.words for layout in program.groups), default=0)
        self._empty = np.zeros(ROW_HEAD_BYTES // 8 + widest, np.uint64)
        groups = max((layout.group for layout in program.groups), default=-1) + 1
        self._shape = max(1, groups), max(1, len(program.types))
        words = self._context
        words[at.RUN_POOL], words[at.RUN_CALL] = pool.context, address(self._block)
        words[at.RUN_NODES], words[at.RUN_RESULTS] = address(program.nodes), address(program.results)
        words[at.RUN_NODE_LAST], words[at.RUN_CLOCK] = len(program.nodes), address(self._clock)
        words[at.RUN_EMPTY] = address(self._empty)
        words[at.RUN_RESULT] = entry_address(rare.result_rare)
        words[at.RUN_TEXT] = entry_address(rare.text_rare)
        self._bind_heap()

    def read(self, n: int, columns: npt.NDArray[np.int64], clock_ms: int) -> None:
        """Read every metric of n keys.

        columns: int64[hot columns, 2], the addresses of the hot columns of records that have the keys' fields.
        clock_ms: the task's clock.
        """
        words, (groups, metrics) = self._context, self._shape
        if len(self.heap) > _HEAP_KEPT_BYTES:
            self.heap = np.zeros(_FIRST_HEAP_BYTES, np.uint8)
            self._bind_heap()
        self.out, self.nulls = np.zeros((metrics, n, 2), np.uint64), np.ones((metrics, n), np.uint8)
        rows = np.zeros((groups, n), np.int64)
        # The arrays that `rows` points into.
        contents = []
        for layout, column in zip(self.program.groups, self.program.entity_columns):
            hashes = np.stack([array_at(int(half), n, np.uint64) for half in columns[column]], axis=1)
            cells = self._reader.cells_of(layout.group, hashes)
            contents.append(cells)
            first = address(cells) if cells.size else address(self._empty) + ROW_HEAD_BYTES
            rows[layout.group] = first - ROW_HEAD_BYTES + 8 * cells.shape[1] * np.arange(n)
        self._clock[0] = clock_ms
        words[at.RUN_STRIDE] = words[at.RUN_LIMIT] = n
        words[at.RUN_ROWS], words[at.RUN_OUT] = address(rows), address(self.out)
        words[at.RUN_OUT_NULLS], words[at.RUN_HEAP_USED] = address(self.nulls), 0
        words[at.RUN_AT_NODE] = words[at.RUN_AT_RECORD] = words[at.RUN_AT_STAGE] = words[at.RUN_AT_OP] = 0
        while (status := int(read(address(words)))) != 0:
            if status == at.HEAP:
                self.heap = np.concatenate([self.heap, np.zeros_like(self.heap)])
                self._bind_heap()
            else:
                self._pool.handle(status)

    def _bind_heap(self) -> None:
        self._context[at.RUN_HEAP] = address(self.heap)
        self._context[at.RUN_HEAP_CAPACITY] = len(self.heap)
