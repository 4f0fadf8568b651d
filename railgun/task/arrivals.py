"""Turns raw records into hot columns: decodes, evaluates and hashes them.

Hot columns are the values that metrics need of an event: fields, the results of expressions, and *entity* columns,
128-bit hashes of the fields of a GROUP BY. They are computed once per event, and stored with it. `PlanRuntime` has an
`Arrivals` for live batches; `ColumnComputer` makes others for stored rows that lack a column of a newer metric.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from railgun.interpreter.hashing import EntityHasher
from railgun.language.evaluator import Evaluator
from railgun.language.program import Program, compile_program
from railgun.language.typed import TypedExpression
from railgun.language.types import Kind, Type
from railgun.plan.hot import HotPlan, source_index
from railgun.wire.decode import Decoded, Decoder
from railgun.wire.records import Records
from railgun.wire.schema import Schema
from reservoir.columns import ColumnData, ColumnKind, HotColumn
from reservoir.native.jit import address, array_at


class Arrivals:
    """Reads batches of records into the hot columns of one plan. The next batch overwrites the arrays.

    schemas: those of the records, by which they are decoded.
    hot: the plan: the fields to decode, the expressions (roots) to evaluate, and the hashes to make.
    key: the stream's 16 secret bytes, for the hashes.
    compile_: compiles the expressions.
    columns: int64[hot, 2]; the addresses of the two vectors of each hot column (words and nulls, or hi and lo).
    heap_addresses: the addresses to which string references refer: of the batch, the constants, and the scratch
        memory.
    """

    def __init__(
        self,
        schemas: Sequence[Schema],
        hot: HotPlan,
        key: bytes,
        compile_: Callable[
            [Sequence[TypedExpression], Sequence[tuple[str, Type]]], Program
        ] = compile_program,
    ) -> None:
        self.schemas, self.hot = schemas, hot
        words = int.from_bytes(key[:8], "little"), int.from_bytes(key[8:], "little")
        self._decoder = Decoder(schemas, [name for name, _ in hot.fields], words)
        self._evaluator = Evaluator(compile_(hot.expressions, hot.fields))
        hashed = [
            replace(c, sources=tuple(source_index(s, len(hot.fields)) for s in c.sources))
            for c in hot.hashes.values()
        ]
        strings = [type_.kind is Kind.STRING for _, type_ in hot.fields]
        strings += [expression.type.kind is Kind.STRING for expression in hot.expressions]
        self._hasher = EntityHasher(hashed, strings, key)
        self._hash_row = {column: row for row, column in enumerate(hot.hashes)}
        inputs = len(hot.fields) + len(hot.expressions)
        self._input_words, self._input_nulls = np.zeros(inputs, np.int64), np.zeros(inputs, np.int64)
        self.columns = np.zeros((len(hot.columns), 2), np.int64)
        self.columns_address = address(self.columns) if hot.columns else 0
        self.heap_addresses = (0, 0, 0)
        self._bound: Decoded | None = None
        self._bound_rows = 0

    def read(self, records: Records) -> Decoded:
        """Decode event records and fill the hot columns."""
        return self._fill(self._decoder.decode(records))

    def entity(self, column: int) -> tuple[int, int]:
        """Return the addresses of hi and lo (uint64[n]) of an entity column: the hashes of a GROUP BY's fields."""
        return int(self.columns[column, 0]), int(self.columns[column, 1])

    def _fill(self, decoded: Decoded) -> Decoded:
        evaluator = self._evaluator
        grown = decoded is not self._bound or decoded.n > self._bound_rows
        if decoded is not self._bound:
            words, nulls = address(decoded.words), address(decoded.nulls)
            for place in range(len(self.hot.fields)):
                at = words + place * decoded.capacity * 8, nulls + place * decoded.capacity
                evaluator.bind(place, *at)
                self._input_words[place], self._input_nulls[place] = at
        evaluator.bind_heap(decoded.buffer_at)
        evaluator.evaluate(decoded.n)
        if grown:
            first = len(self.hot.fields)
            for root in range(len(self.hot.expressions)):
                at = evaluator.root_addresses(root)
                self._input_words[first + root], self._input_nulls[first + root] = at
        self.heap_addresses = evaluator.heap_addresses
        self._hasher.hash(decoded.n, self._input_words, self._input_nulls, self.heap_addresses)
        if grown:
            self._bind_columns()
            self._bound, self._bound_rows = decoded, max(decoded.n, self._bound_rows)
        return decoded

    def _bind_columns(self) -> None:
        first = len(self.hot.fields)
        for column, root in self.hot.roots.items():
            self.columns[column] = self._input_words[first + root], self._input_nulls[first + root]
        capacity = self._hasher.hi.shape[1]
        for column, row in self._hash_row.items():
            step = row * capacity * 8
            self.columns[column] = address(self._hasher.hi) + step, address(self._hasher.lo) + step

    def data(self, columns: Sequence[HotColumn], n: int) -> list[ColumnData]:
        """Return copies of hot columns of the batch just read, n rows, for chunks that lack these columns."""
        heaps: tuple[npt.NDArray[np.uint8], ...] = ()
        if self._bound is not None and any(column.kind is ColumnKind.STRING for column in columns):
            # The scratch memory is copied too: another thread may compute columns of another chunk before these strings
            # are read from it.
            constants, scratch = self._evaluator.own_heaps
            heaps = self._bound.buffer, constants, scratch.copy()
        return [self._column(column, n, heaps) for column in columns]

    def _column(self, column: HotColumn, n: int, heaps: tuple[npt.NDArray[np.uint8], ...]) -> ColumnData:
        place = self.hot.columns.index(column)
        if column.kind is ColumnKind.ENTITY:
            row = self._hash_row[place]
            return ColumnData(hi=self._hasher.hi[row, :n].copy(), lo=self._hasher.lo[row, :n].copy())
        words_at, nulls_at = (int(where) for where in self.columns[place])
        words, nulls = array_at(words_at, n, np.uint64).copy(), array_at(nulls_at, n, np.uint8).copy()
        return ColumnData(words=words, nulls=nulls, heaps=heaps if column.kind is ColumnKind.STRING else ())
