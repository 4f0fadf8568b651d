"""Answers value queries between the batches of a task. Nothing of the task changes."""

from collections.abc import Callable, Sequence

import numpy as np

from railgun.task.admission import Admitted
from railgun.task.replies import Replies, ReplyWriter, partials_of
from railgun.task.value_reader import ValueReader
from railgun.task.view import TaskView
from railgun.wire.records import Records
from railgun.wire.reply import Partial

# How many keys are read at a time.
_KEYS_MAX = 1024


class QueryWork:
    """The value queries of one task."""

    def __init__(self, task: TaskView) -> None:
        self._task, self._writer = task, ReplyWriter(task.identity)
        self._reader: ValueReader | None = None

    def answer(self, records: Records, deliver: Callable[[int, Replies], None]) -> None:
        """Answer queries, each an event record with the fields of its key.

        `deliver` gets the replies to some of them, and the place of the first among all. They hold until it returns.
        Raises what storage raises.
        """
        for first in range(0, len(records), _KEYS_MAX):
            after = min(len(records), first + _KEYS_MAX)
            deliver(first, self._answers(records.part(first, after)))

    def encode(self, replies: Replies) -> list[tuple[int, bytes]]:
        """Return (front-end, reply record) for every front-end that waits for some of the answers just delivered."""
        return self._writer.records(replies)

    def _answers(self, records: Records) -> Replies:
        task = self._task
        machine, clock_ms, names = task.machine, task.admission.clock_ms, task.names
        decoded = machine.arrivals.read(records)
        n, program = decoded.n, machine.program
        if self._reader is None or self._reader.program is not program:
            self._reader = ValueReader(program, task.table.reader, task.pool)
        reader, warming = self._reader, task.metrics.warming
        reader.read(n, machine.arrivals.columns, clock_ms)
        decoded.time[:n] = clock_ms
        nothing, clocks = np.zeros(n, np.uint8), np.full(n, clock_ms)
        admitted = Admitted(nothing, nothing, np.ones(n, np.uint8), clocks, clocks, 0)
        if warming:
            reader.nulls[[name in warming for name in names]] = 1
        partials: Sequence[Partial] = ()
        if task.metrics.has_bounds:
            partials = partials_of(task.metrics, names, admitted, n, task.admission.least_ms)
        return Replies(
            task.position - 1, n, decoded, nothing, nothing, admitted.duplicate, reader.out, reader.nulls,
            reader.heap, names, program.types, warming, partials, task.metrics.last_place, is_query=True,
        )  # fmt: skip
