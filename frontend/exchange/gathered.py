"""Gathers the answers of one partitioner's tasks to events that were published together, from the records of replies.

`PendingRequest` makes one `Gathered` for each partitioner.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from frontend.exchange.timeline import Answered
from railgun.ingest.answers import Answers
from railgun.language.types import Kind, Type
from railgun.plan.result_block import NO_METRICS, ResultBlock, ResultForm
from railgun.wire.reply import ReplyBatch, ReplyFlag, ReplySource
from reservoir.distinct import distinct

_LATE = np.uint8(ReplyFlag.REWRITTEN | ReplyFlag.DISCARDED)


class Gathered(Answers):
    """Answers to n events. A row is the index of an event; some of the events were not sent to this partitioner.

    waiting bool[n]: whether the event was sent and is not answered yet.
    sets: the different sets of metrics in the answers, each with its task's place in the catalogue. Tasks may differ
        while a metric is being added.
    codes int32[n]: the index in `sets` of each answer's set; -1 before the answer.
    schema int64[n]: the version of the schema of the task's record; -1 if it is not known.
    """

    def __init__(self, n: int) -> None:
        super().__init__(n, NO_METRICS)
        self.waiting = np.zeros(n, np.bool_)
        self.codes = np.full(n, -1, np.int32)
        self.sets: list[Answered] = []
        self.schema = np.full(n, -1, np.int64)
        # One block of results for each set. `_whole` is the block of a record that answered all events at once.
        self._blocks: list[ResultBlock | None] = []
        self._whole: ResultBlock | None = None

    def expect(self, rows: NDArray[np.int64] | None) -> int:
        """Note that these rows were sent (None: all rows). Return how many they are."""
        self.waiting[slice(None) if rows is None else rows] = True
        return len(self.waiting) if rows is None else len(rows)

    def gather(self, batch: ReplyBatch, first: int, after: int, rows: NDArray[np.int64]) -> int:
        """Take the answers first..after - 1 of a record. Return how many of them were waited for.

        rows: the rows of these answers' events. A row that was answered before keeps its first answer.
        """
        accepted: slice | NDArray[np.int64] = slice(first, after)
        fresh = self.waiting[rows]
        if not fresh.all():
            accepted = first + np.flatnonzero(fresh)
            rows = rows[fresh]
        if not len(rows):
            return 0
        self.waiting[rows] = False
        self._note_place(batch, accepted, rows)
        flags = batch.flags[accepted]
        self.late[rows] = flags & _LATE
        self.duplicate[rows] = (flags & np.uint8(ReplyFlag.DUPLICATE)) != 0
        self.schema[rows] = batch.schema[accepted]
        form = _form_of(batch.source)
        code = self.codes[rows] = self._code(Answered(form, batch.place))
        ascends = bool((rows[1:] > rows[:-1]).all())
        if ascends and len(rows) == len(self.codes):
            nulls = batch.nulls[:, accepted]
            self._whole = ResultBlock(form, batch.low(accepted), batch.high(accepted), nulls, batch.heap)
        else:
            self._put(code, batch, accepted, rows)
        self._note_life(batch, accepted, rows)
        return len(rows) if ascends else len(distinct(rows))

    def _note_place(
        self, batch: ReplyBatch, accepted: slice | NDArray[np.int64], rows: NDArray[np.int64]
    ) -> None:
        """Do nothing: replies to events do not say where their tasks were."""

    def chosen(self, rows: NDArray[np.int64] | None, code: int, absent: ResultForm) -> Answers:
        """Return the answers to some rows, which all have the same set of metrics.

        rows: ascending; None selects all.
        code: the index of the set; −1: the rows were not sent, and each metric of `absent` is null.
        """
        if code >= 0:
            self.put(self._of_set(code))
            if rows is None:
                # Nothing is to be copied. Single events come this way.
                return self
        n = len(self.codes) if rows is None else len(rows)
        made = Answers(n, NO_METRICS)
        made.warming_sets = self.warming_sets
        which = slice(None) if rows is None else rows
        made.late, made.duplicate, made.warming = self.late[which], self.duplicate[which], self.warming[which]
        made.partials = self.partials if rows is None else _partials_of(self.partials, rows, len(self.codes))
        made.put(ResultBlock.nothing(absent, n) if code < 0 else self.block().rows(which))
        return made

    def _code(self, answered: Answered) -> int:
        if answered not in self.sets:
            self.sets.append(answered)
            self._blocks.append(None)
        return self.sets.index(answered)

    def _of_set(self, code: int) -> ResultBlock:
        """Return the results of a set for all rows, null for rows with another set."""
        held = self._blocks[code] if self._whole is None else self._whole
        assert held is not None
        return held

    def _put(
        self, code: int, batch: ReplyBatch, accepted: slice | NDArray[np.int64], rows: NDArray[np.int64]
    ) -> None:
        held, form = self._blocks[code], self.sets[code].form
        if held is None:
            held = self._blocks[code] = ResultBlock.nothing(form, len(self.codes))
        low, nulls = batch.low(accepted), batch.nulls[:, accepted]
        held.low[:, rows], held.high[:, rows], held.nulls[:, rows] = low, batch.high(accepted), nulls
        for place in form.strings:
            held.low[place, rows] = self._heap.take(low[place], nulls[place], batch.heap)

    def _note_life(
        self, batch: ReplyBatch, accepted: slice | NDArray[np.int64], rows: NDArray[np.int64]
    ) -> None:
        warming = tuple(each.name for each in batch.source.metrics if each.warming)
        if warming:
            self.warming[rows] = self._warming_set(warming)
        if batch.partials:
            within = np.arange(len(batch))[accepted]
            for metric, bound_ms, first, after in batch.partials:
                own = rows[(within >= first) & (within < after)]
                if len(own):
                    self.partials.append((batch.source.metrics[metric].name, bound_ms, own))


# A source says which task answered, and with which metrics. Sources are few, live long and are large, so they are
# looked up by identity: to compare their contents for each record would take longer.
_known_sources: dict[int, tuple[ReplySource, ResultForm]] = {}
_known_forms: dict[tuple[tuple[str, Type], ...], ResultForm] = {}
_KNOWN_MAX = 4_096


def _known_form(metrics: Iterable[tuple[str, Type]]) -> ResultForm:
    """Return the form of metrics, which is one object for equal metrics."""
    listed = tuple(metrics)
    if listed not in _known_forms and len(_known_forms) >= _KNOWN_MAX:
        _known_forms.clear()
    return _known_forms.setdefault(listed, ResultForm.of(listed))


def _form_of(source: ReplySource) -> ResultForm:
    found = _known_sources.get(id(source))
    if found is None or found[0] is not source:
        if len(_known_sources) >= _KNOWN_MAX:
            _known_sources.clear()
        form = _known_form(
            (each.name, Type(Kind(each.kind), each.precision, each.scale)) for each in source.metrics
        )
        found = _known_sources[id(source)] = (source, form)
    return found[1]


def _partials_of(
    partials: Sequence[tuple[str, int, NDArray[np.int64]]], rows: NDArray[np.int64], n: int
) -> list[tuple[str, int, NDArray[np.int64]]]:
    """Return the partials of some rows, which ascend. They name each row by its index in `rows`."""
    places = np.full(n, -1, np.int64)
    places[rows] = np.arange(len(rows))
    found = [(name, bound_ms, places[own][places[own] >= 0]) for name, bound_ms, own in partials]
    return [each for each in found if len(each[2])]
