"""Computes derived metrics, expressions over other metrics (operands) and event fields, for many events at once.

`replies.py` calls it for replies to events, and `value_queries.py` for value queries.
"""

import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from railgun.ingest.accepted import Row, encode_row
from railgun.ingest.answers import Answers, Rows, StringHeap
from railgun.ingest.operands import JoinedHeaps, Operands
from railgun.language.derive import ResolvedDerived
from railgun.language.evaluator import Evaluator
from railgun.language.program import compile_program
from railgun.language.types import DECIMAL_DIGITS, Kind, Type
from railgun.plan.result_block import ResultBlock, ResultForm, slice_or_array
from railgun.wire.columns import REF_LENGTH_BITS, EventColumns
from railgun.wire.decode import Decoder
from railgun.wire.records import Records
from railgun.wire.schema import Schema
from reservoir.distinct import distinct
from reservoir.native.jit import address

_ROWS_AT_FIRST = 64
# How many events are computed at a time.
_BLOCK_ROWS = 4_096
_KNOWN_MAX = 64
_DECIMALS = (1 - 10**DECIMAL_DIGITS, 10**DECIMAL_DIGITS - 1)
_LONGS = (-(1 << 63), (1 << 63) - 1)
_NO_BOUND = np.iinfo(np.int64).min
_NO_ROWS = slice(0, 0)
_NO_BYTES = np.zeros(0, np.uint8)


class Recorded(NamedTuple):
    """The version of the schema of each event's record, int64[n], and the schemas by version."""

    versions: NDArray[np.int64]
    schemas: Mapping[int, Schema]


class DerivedMetrics:
    """Derived metrics that replies name, in the order in which they were added. Threads may share it."""

    def __init__(self, derived: Iterable[ResolvedDerived]) -> None:
        self._derived = tuple(derived)
        self.names = tuple(each.name for each in self._derived)
        self._program: DerivedProgram | None = None

    def __bool__(self) -> bool:
        return bool(self._derived)

    def answers(
        self,
        events: EventColumns | Sequence[Row],
        schema: Schema,
        answers: Mapping[str, Answers],
        recorded: Recorded | None = None,
        selection: Sequence[str] | None = None,
    ) -> Answers | None:
        """Return answers as `DerivedProgram.answers` does; None if there are no derived metrics, or none is selected.

        selection: the names of the wanted metrics; None selects all.
        """
        if not self._derived or (selection is not None and not any(name in selection for name in self.names)):
            return None
        if self._program is None:
            # Two threads may make a program at the same time. Then one of the two is dropped.
            self._program = DerivedProgram(self._derived)
        return self._program.answers(events, schema, answers, recorded)


NOTHING_DERIVED = DerivedMetrics(())
DERIVED = ""
"""The key of derived metrics' answers beside those of partitioners."""


class _Source(NamedTuple):
    """The operands among the results of a form, and the program's columns that take them.

    places: the indexes of the operands among the metrics of the form.
    columns: for each of these, the number of its column.
    wide: of each operand of 128 bits: (column, the row of its high words, the least and the greatest value that fit).
    strings: the columns of strings.
    """

    form: ResultForm
    places: Rows
    columns: Rows
    wide: list[tuple[int, int, tuple[int, int]]]
    strings: list[int]


class DerivedProgram:
    """Computes some derived metrics. Threads may share it; only one at a time computes."""

    def __init__(self, derived: Sequence[ResolvedDerived]) -> None:
        fields: dict[str, Type] = {}
        operands: dict[str, Type] = {}
        for each in derived:
            fields |= each.fields
            operands |= each.operands
        self._fields, self._columns = tuple(fields), [*fields.items(), *operands.items()]
        self._column_of = {name: place for place, (name, _) in enumerate(self._columns)}
        self._program = compile_program([each.expression for each in derived], self._columns)
        # For each result the index of one of the evaluator's own vectors; below 0, a column, counted from the end.
        self._roots = [root - len(self._columns) for root in self._program.roots]
        self._own_roots = slice_or_array([root for root in self._roots if root >= 0])
        self._own_places = slice_or_array([place for place, root in enumerate(self._roots) if root >= 0])
        self._evaluator = Evaluator(self._program, _ROWS_AT_FIRST)
        self._form = ResultForm.of((each.name, each.result_type) for each in derived)
        self._operands_of = [(each.name, frozenset(each.operands)) for each in derived]
        self._reads_strings = any(type_.kind is Kind.STRING for _, type_ in self._columns)
        self._sources: dict[int, _Source] = {}
        self._decoder: tuple[Schema, Decoder] | None = None
        self._lock = threading.Lock()
        self._operands = Operands(self._evaluator, len(self._columns), _ROWS_AT_FIRST)

    def answers(
        self,
        events: EventColumns | Sequence[Row],
        schema: Schema,
        answers: Mapping[str, Answers],
        recorded: Recorded | None = None,
    ) -> Answers:
        """Return the derived metrics of events, with warming and partial rows as in a task's answers.

        schema: under which the events were accepted.
        answers: those of the tasks, by partitioner.
        recorded: the schemas of the tasks' records; None if they are all `schema`.
        """
        n, blocks = len(events), [each.block() for each in answers.values()]
        with self._lock:
            made = [
                self._answered(events, slice(first, min(first + _BLOCK_ROWS, n)), schema, blocks, recorded)
                for first in range(0, n, _BLOCK_ROWS)
            ]
        block = made[0] if len(made) == 1 else _joined(self._form, made)
        found = Answers.of(block)
        if any(len(each.warming_sets) > 1 for each in answers.values()):
            self._note_warming(found, block, answers.values())
        if any(each.partials for each in answers.values()):
            self._note_partial(found, answers.values())
        return found

    def _answered(
        self,
        events: EventColumns | Sequence[Row],
        rows: slice,
        schema: Schema,
        blocks: Sequence[ResultBlock],
        recorded: Recorded | None,
    ) -> ResultBlock:
        """Return the results of some of the events. Blocks of them keep the program's vectors small."""
        n = rows.stop - rows.start
        self._operands.reserve(n)
        heap = StringHeap()
        self._operands.nulls[:, :n] = 1
        if self._fields:
            self._take_fields(events, rows, schema, heap)
            if recorded is not None:
                self._forget_fields(schema, Recorded(recorded.versions[rows], recorded.schemas))
        for block in blocks:
            self._take_results(block, heap, rows)
        self._operands.clear_nulls(n)
        return self._evaluated(heap, n)

    # --- operands

    def _take_fields(
        self, events: EventColumns | Sequence[Row], rows: slice, schema: Schema, heap: StringHeap
    ) -> None:
        if isinstance(events, EventColumns):
            for place, name in enumerate(self._fields):
                index = schema.index(name)
                if index >= 0:
                    self._operands.take(place, events.fields[index], rows, heap)
            return
        if self._decoder is None or self._decoder[0] is not schema:
            self._decoder = schema, Decoder([schema], self._fields, None)
        decoded = self._decoder[1].decode(
            Records.of([encode_row(schema.version, row) for row in events[rows]])
        )
        n, count = rows.stop - rows.start, len(self._fields)
        words, nulls = self._operands.words, self._operands.nulls
        words[:count, :n], nulls[:count, :n] = decoded.words[:, :n], decoded.nulls[:, :n]
        for place, (_, type_) in enumerate(self._columns[:count]):
            if type_.kind is Kind.STRING:
                words[place, :n] = heap.take(
                    decoded.words[place, :n], decoded.nulls[place, :n], decoded.buffer
                )

    def _forget_fields(self, schema: Schema, recorded: Recorded) -> None:
        """Make fields null in events that were recorded under a schema without these fields."""
        versions, schemas = recorded
        for version in distinct(versions[versions != schema.version]).tolist():
            if version in schemas:
                lacking = [
                    place for place, name in enumerate(self._fields) if schemas[version].index(name) < 0
                ]
                self._operands.nulls[
                    np.ix_(np.array(lacking, np.int64), np.flatnonzero(versions == version))
                ] = 1

    def _take_results(self, block: ResultBlock, heap: StringHeap, rows: slice) -> None:
        source, n = self._source(block.form), rows.stop - rows.start
        if source.places is _NO_ROWS:
            return
        words, nulls = self._operands.words, self._operands.nulls
        words[source.columns, :n] = block.low[source.places, rows]
        nulls[source.columns, :n] = block.nulls[source.places, rows]
        for column, row, range_ in source.wide:
            low = words[column, :n].view(np.int64)
            fits = (
                (block.high[row, rows].view(np.int64) == low >> 63) & (low >= range_[0]) & (low <= range_[1])
            )
            nulls[column, :n] |= ~fits
        for column in source.strings:
            words[column, :n] = heap.take(words[column, :n], nulls[column, :n], block.heap)

    def _source(self, form: ResultForm) -> _Source:
        found = self._sources.get(id(form))
        if found is not None and found.form is form:
            return found
        if len(self._sources) >= _KNOWN_MAX:
            self._sources.clear()
        wide_row = {place: row for row, place in enumerate(form.wide.tolist())}
        places, columns, wide, strings = [], [], [], []
        for place, name in enumerate(form.names):
            column = self._column_of.get(name, -1)
            if column < len(self._fields):
                continue
            places.append(place)
            columns.append(column)
            if place in wide_row:
                is_decimal = form.types[place].kind is Kind.DECIMAL
                wide.append((column, wide_row[place], _DECIMALS if is_decimal else _LONGS))
            if place in form.strings:
                strings.append(column)
        made = _Source(form, slice_or_array(places), slice_or_array(columns), wide, strings)
        if not places:
            made = made._replace(places=_NO_ROWS)
        self._sources[id(form)] = made
        return made

    # --- results

    def _evaluated(self, heap: StringHeap, n: int) -> ResultBlock:
        evaluator, joined = self._evaluator, _NO_BYTES
        if self._reads_strings:
            joined = heap.joined()
            evaluator.bind_heap(address(joined))
        evaluator.evaluate(n)
        words, nulls = evaluator.own_vectors
        low, null = np.empty((len(self._form), n), np.uint64), np.empty((len(self._form), n), np.uint8)
        low[self._own_places], null[self._own_places] = words[self._own_roots, :n], nulls[self._own_roots, :n]
        for place, root in enumerate(self._roots):
            if root < 0:
                column = root + len(self._columns)
                low[place], null[place] = self._operands.words[column, :n], self._operands.nulls[column, :n]
        if self._form.strings:
            heaps = JoinedHeaps((joined, *evaluator.own_heaps))
            for row in self._form.strings:
                low[row] = heaps.moved(low[row], null[row])
            joined = heaps.bytes
        return ResultBlock(self._form, low, np.zeros((0, n), np.uint64), null, joined)

    def _note_warming(self, found: Answers, block: ResultBlock, answers: Iterable[Answers]) -> None:
        warming: NDArray[np.bool_] | None = None
        for each in answers:
            for code, names in enumerate(each.warming_sets):
                hit = [place for place, (_, operands) in enumerate(self._operands_of) if operands & {*names}]
                if hit:
                    if warming is None:
                        warming = np.zeros(block.nulls.shape, np.bool_)
                    warming[hit] |= each.warming == code
        if warming is None:
            return
        block.nulls[warming] = 1
        kinds, codes = np.unique(warming, axis=1, return_inverse=True)
        sets = [
            tuple(name for (name, _), is_warming in zip(self._operands_of, kind) if is_warming)
            for kind in kinds.T.tolist()
        ]
        found.set_warming(sets, codes.reshape(-1))

    def _note_partial(self, found: Answers, answers: Iterable[Answers]) -> None:
        """Note for each derived metric the latest bound of its operands, in rows where any has one."""
        for name, operands in self._operands_of:
            bounds: NDArray[np.int64] | None = None
            for each in answers:
                for operand, bound_ms, rows in each.partials:
                    if operand in operands:
                        if bounds is None:
                            bounds = np.full(len(found.late), _NO_BOUND, np.int64)
                        bounds[rows] = np.maximum(bounds[rows], bound_ms)
            if bounds is not None:
                for bound_ms in distinct(bounds[bounds != _NO_BOUND]).tolist():
                    found.partials.append((name, bound_ms, np.flatnonzero(bounds == bound_ms)))


def _joined(form: ResultForm, blocks: Sequence[ResultBlock]) -> ResultBlock:
    """Join the results of several runs of events."""
    if not blocks:
        return ResultBlock.nothing(form, 0)
    start = 0
    for block in blocks:
        for place in form.strings:
            block.low[place] += np.uint64(start << REF_LENGTH_BITS)
        start += len(block.heap)
    low: NDArray[np.uint64] = np.concatenate([block.low for block in blocks], axis=1)
    nulls: NDArray[np.uint8] = np.concatenate([block.nulls for block in blocks], axis=1)
    heap = np.concatenate([block.heap for block in blocks])
    return ResultBlock(form, low, np.zeros((0, low.shape[1]), np.uint64), nulls, heap)
