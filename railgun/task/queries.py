"""Answers value queries (metrics of keys, without an event) between the batches of a task. `TaskProcessor` calls it.

The task does not change.
"""

from collections.abc import Sequence

import numpy as np

from railgun.task.admission import Admitted
from railgun.task.key_reader import KeyReader
from railgun.task.replies import Replies, ReplyWriter, partials_of
from railgun.task.value_reader import ValueReader
from railgun.task.view import TaskView
from railgun.wire.records import Records
from railgun.wire.reply import Partial


class QueryWork:
    """The value queries of one task."""

    def __init__(self, task: TaskView) -> None:
        self._task, self._writer = task, ReplyWriter(task.identity)
        self._reader: ValueReader | None = None
        self._keys: KeyReader

    def answer(self, records: Records) -> Replies:
        """Answer queries, each an event record with the fields of its key. Whoever asks keeps them few.

        The replies hold until the task processes or answers something else. Raises what storage raises.
        """
        task = self._task
        clock_ms, names, program = task.admission.clock_ms, task.names, task.runtime.program
        if self._reader is None or self._reader.program is not program:
            self._reader = ValueReader(program, task.table.reader, task.pool)
            self._keys = KeyReader(task)
        reader, warming = self._reader, task.metrics.warming
        decoded = self._keys.read(records)
        n = decoded.n
        reader.read(n, self._keys.columns, clock_ms)
        decoded.time[:n] = clock_ms
        nothing, clocks = np.zeros(n, np.uint8), np.full(n, clock_ms)
        admitted = Admitted(nothing, nothing, np.ones(n, np.uint8), clocks, clocks, 0)
        if warming:
            reader.nulls[[name in warming for name in names]] = 1
        partials: Sequence[Partial] = ()
        if task.metrics.has_bounds or task.gap is not None:
            least_ms = task.admission.least_ms
            partials = partials_of(task.metrics, names, admitted, n, least_ms, task.gap)
        return Replies(
            task.position - 1, n, decoded, nothing, nothing, admitted.duplicate, reader.out, reader.nulls,
            reader.heap, names, program.types, warming, partials, task.metrics.last_place, is_query=True,
        )  # fmt: skip

    def encode(self, replies: Replies) -> list[tuple[int, bytes]]:
        """Return (front-end, reply record) for every front-end that waits for some of the answers just given."""
        return self._writer.records(replies)
