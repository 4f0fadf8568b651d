"""One group's window: its cells in a row and a page pool on one side, its values in a list on the other.

The row holds the cells of every aggregator that takes the argument's type, shared as the catalogue says. What
is expected comes from the oracle, which knows nothing of cells.
"""

import ctypes
import hashlib
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from railgun.aggregators.catalogue import Cell, Recipe, recipe_of
from railgun.aggregators.codes import NULL
from railgun.aggregators.dispatch import apply_add, apply_remove, apply_reset
from railgun.aggregators.results import apply_result
from railgun.language.ast import Aggregator, WindowKind
from railgun.language.resolve import result_type
from railgun.language.types import DECIMAL_DIGITS, Kind, Type
from railgun.state.paged.layout import OUTBOX_FULL
from railgun.state.paged.pool import PagePool
from railgun.state.paged.strings import str_address, str_length
from tests.aggregators.memory import WORD, at, bits, double, words
from tests.oracle import types as oracle_types
from tests.oracle.aggregates import Aggregate
from tests.state.paged.memory_items import MemoryItems

Value = int | float | str | bool
# Its time, its seq, and the value itself.
Entry = tuple[int, int, Value]


def string_hash(text: str) -> tuple[int, int]:
    """128 bits that stand for a string, the top one set."""
    digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
    return int.from_bytes(digest[:8], "big") | 1 << 63, int.from_bytes(digest[8:], "big")


class Memory:
    """A page pool of the smallest size over a strict store, and its epochs."""

    def __init__(self) -> None:
        self.store = MemoryItems()
        self.epoch = 1
        self.statuses: dict[int, int] = {}
        self._open(b"")

    def _open(self, meta: bytes) -> None:
        self.pool = PagePool(60_000, self.store, page_words=16, slab_bytes=2048, protected_ops=8)
        if meta:
            self.pool.restore(meta)
        self.pool.set_epoch(self.epoch)

    def call(self, kernel: Any, *arguments: Any) -> int:
        """A kernel's answer, once the pool has served all its statuses."""
        for _ in range(1000):
            answer = int(kernel(*arguments))
            if answer >= 0:
                return answer
            self.statuses[answer] = self.statuses.get(answer, 0) + 1
            self.pool.handle(answer)
        raise AssertionError(f"{kernel} makes no progress")

    def begin_epoch(self) -> bytes:
        """Close the epoch: pages that are changed now are copied first."""
        meta = self.pool.meta()
        self.epoch += 1
        self.pool.set_epoch(self.epoch)
        return meta

    def finish_epoch(self, meta: bytes) -> None:
        """Write what is left of the closed epoch, and commit it."""
        while not self.pool.exhausted():
            self.store.write(self.pool.pending(self.epoch - 1, 1 << 20))
            self.pool.drain()
        self.store.commit(self.epoch - 1, meta)

    def make_cold(self) -> None:
        """A checkpoint, and a pool that holds no page yet: every page that a kernel touches is a fault."""
        meta = self.begin_epoch()
        self.finish_epoch(meta)
        self._open(meta)

    def always_drain(self) -> None:
        """Let no operation begin while anything at all waits to be written."""
        ctypes.c_int64.from_address(self.pool.context + OUTBOX_FULL).value = 0


class Group:
    """The row of one group in one window, over one argument of a type."""

    def __init__(self, of: Type, window: WindowKind, memory: Memory | None = None) -> None:
        self.type = of
        self.memory = memory or Memory()
        self.recipes: dict[Aggregator, Recipe] = {
            aggregator: recipe_of(aggregator, of, window)
            for aggregator in Aggregator
            if result_type(aggregator, of) is not None
        }
        self.cells: dict[int, tuple[int, Cell]] = {}
        width = 0
        for recipe in self.recipes.values():
            for cell in recipe.cells:
                if cell.op not in self.cells:
                    self.cells[cell.op] = width, cell
                    width += cell.words
        self.row = words(width)
        self.entries: list[Entry] = []
        self._out = words(2)

    # --- values and words

    def _words(self, value: Value) -> tuple[np.uint64, np.uint64]:
        if isinstance(value, str):
            high, low = string_hash(value)
            return np.uint64(high), np.uint64(low)
        return (bits(value) if isinstance(value, float) else np.uint64(int(value) % WORD)), np.uint64(0)

    def _decoded(self, of: Type) -> Any:
        low, high = int(self._out[0]), int(self._out[1])
        if of.kind is Kind.DOUBLE:
            return double(low)
        if of.kind is Kind.STRING:
            return self._text(low, high)
        if of.kind is Kind.BOOLEAN:
            return bool(low)
        if of.kind is Kind.INTEGER128 or of.precision > DECIMAL_DIGITS:
            number = (high << 64 | low) - (1 << 128 if high >> 63 else 0)
        else:
            number = low - (WORD if low >> 63 else 0)
        return Decimal(number).scaleb(-of.scale) if of.kind is Kind.DECIMAL else number

    def _text(self, high: int, low: int) -> str:
        words_of = (np.uint64(high).view(np.int64), np.uint64(low).view(np.int64))
        length = self.memory.call(str_length, self.memory.pool.context, *words_of)
        where = self.memory.call(str_address, self.memory.pool.context, *words_of)
        return ctypes.string_at(where, length).decode()

    # --- updates

    def _place(self, op: int) -> tuple[int, int]:
        return at(self.row, self.cells[op][0]), at(self.row, self.cells[0][0])

    def add(self, entry: Entry) -> None:
        """Add a value, wherever its time puts it."""
        time, seq, value = entry
        text = np.frombuffer((value if isinstance(value, str) else "").encode() + b"\0", np.uint8)
        for op in self.cells:
            cell, count = self._place(op)
            type_code = self._type_code()
            self.memory.call(
                apply_add, op, self.memory.pool.context, cell, count, time, seq, *self._words(value),
                type_code, at(text), len(text) - 1,
            )  # fmt: skip
        self.entries.append(entry)
        self.entries.sort(key=lambda known: known[:2])

    def remove_oldest(self) -> None:
        """Remove the value that is first by (time, seq)."""
        time, seq, value = self.entries.pop(0)
        for op in self.cells:
            cell, count = self._place(op)
            self.memory.call(
                apply_remove, op, self.memory.pool.context, cell, count, time, seq, *self._words(value),
                self._type_code(),
            )  # fmt: skip

    def reset(self) -> None:
        """Empty all cells at once, as when their bucket has passed."""
        for op in self.cells:
            self.memory.call(apply_reset, op, self.memory.pool.context, self._place(op)[0], self._type_code())
        self.entries.clear()

    def _type_code(self) -> int:
        return next(iter(self.recipes.values())).type_code

    # --- results

    def result(self, aggregator: Aggregator) -> Any:
        """What the kernels say, as a Python value."""
        recipe = self.recipes[aggregator]
        cells = [self._place(cell.op)[0] for cell in recipe.cells]
        outcome = self.memory.call(
            apply_result, recipe.result, self.memory.pool.context, cells[recipe.main],
            cells[max(recipe.squares, 0)], cells[max(recipe.count, 0)], recipe.result_type_code,
            self.type.scale, at(self._out),
        )  # fmt: skip
        if outcome == NULL:
            return None
        of = result_type(aggregator, self.type)
        assert of is not None
        return self._decoded(of)

    def expected(self, aggregator: Aggregator) -> Any:
        """What the oracle says."""
        of = oracle_types.Type(str(self.type.kind), self.type.precision, self.type.scale)
        aggregate = Aggregate(str(aggregator), of)
        return aggregate.result([aggregate.prepare(self._of_oracle(value)) for _, _, value in self.entries])

    def _of_oracle(self, value: Value) -> Any:
        if self.type.kind is Kind.DECIMAL:
            return Fraction(int(value), 10**self.type.scale)
        return value

    def check(self, aggregators: Iterable[Aggregator] | None = None) -> None:
        """Every result is what it should be, to the last bit, zeros' signs included."""
        for aggregator in aggregators or self.recipes:
            found, expected = self.result(aggregator), self.expected(aggregator)
            assert (type(found), repr(found)) == (type(expected), repr(expected)), aggregator

    def check_gone(self) -> None:
        """An empty window leaves zeros in the row, and neither pages nor strings in the store."""
        assert not self.row.any()
        while self.memory.pool.free_deferred(1_000):
            pass
        self.memory.make_cold()
        assert self.memory.store.bodies(b"s") == {}
        assert self.memory.store.bodies(b"p") == {}
