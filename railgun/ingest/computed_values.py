"""Computes fields of events that are about to be recorded. Only routing needs them there: tasks compute their own."""

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from railgun.catalog.model import wire_type
from railgun.ingest.answers import StringHeap
from railgun.ingest.operands import JoinedHeaps, Operands
from railgun.language.computed import ComputedField
from railgun.language.evaluator import Evaluator
from railgun.language.kernels.layout import HEAP_SHIFT
from railgun.language.program import compile_program
from railgun.language.typed import fields_of
from railgun.language.types import Kind, Type
from railgun.wire.columns import REF_LENGTH_BITS, REF_LENGTH_MASK, Column, EventColumns
from reservoir.native.jit import address

_BLOCK_ROWS = 4_096
# No heap of a column is empty.
_ONE_BYTE = np.zeros(1, np.uint8)
_WORD_MASK = (1 << 64) - 1
_WITHIN_HEAP = (1 << HEAP_SHIFT) - 1


class ComputedValues:
    """Computes some fields of one stream's events. Not thread-safe.

    recorded: the names and types of all recorded fields, in the order of events' values.
    """

    def __init__(self, computed: Sequence[ComputedField], recorded: Sequence[tuple[str, Type]]) -> None:
        read = frozenset[str]().union(*(fields_of(each.expression) for each in computed))
        self._places = [place for place, (name, _) in enumerate(recorded) if name in read]
        self._columns = [recorded[place] for place in self._places]
        program = compile_program([each.expression for each in computed], self._columns)
        self._types = [wire_type(each.type) for each in computed]
        self._is_string = [each.type.kind is Kind.STRING for each in computed]
        self._roots = program.roots
        self._evaluator = Evaluator(program, 1)
        self._operands = Operands(self._evaluator, len(self._columns), 1)

    def of(self, values: Sequence[Any]) -> list[Any]:
        """Return the fields of one event. values: of its recorded fields, as the validator gives them."""
        heap, words, nulls = bytearray(), self._operands.words, self._operands.nulls
        for row, place in enumerate(self._places):
            value = values[place]
            nulls[row, 0] = value is None
            words[row, 0] = 0 if value is None else _word(value, heap)
        texts, evaluator = np.frombuffer(bytes(heap) or bytes(1), np.uint8), self._evaluator
        evaluator.bind_heap(address(texts))
        evaluator.evaluate(1)
        return [self._value(root, is_string, texts) for root, is_string in zip(self._roots, self._is_string)]

    def _value(self, root: int, is_string: bool, texts: NDArray[np.uint8]) -> str | int | None:
        """Return the value of a text or whole number in the first row. texts: the heap of the event."""
        words, nulls = self._vectors(root)
        if nulls[0]:
            return None
        word = int(words[0])
        if not is_string:
            return word - (1 << 64) if word >> 63 else word
        heap = (texts, *self._evaluator.own_heaps)[word >> HEAP_SHIFT]
        start = (word & _WITHIN_HEAP) >> REF_LENGTH_BITS
        return heap[start : start + (word & REF_LENGTH_MASK)].tobytes().decode()

    def _vectors(self, root: int) -> tuple[NDArray[np.uint64], NDArray[np.uint8]]:
        own = root - len(self._columns)
        if own < 0:
            return self._operands.words[root], self._operands.nulls[root]
        own_words, own_nulls = self._evaluator.own_vectors
        return own_words[own], own_nulls[own]

    def columns(self, events: EventColumns) -> list[Column]:
        """Return the fields of many events."""
        starts = range(0, max(1, len(events)), _BLOCK_ROWS)
        made = [self._block(events, slice(first, min(first + _BLOCK_ROWS, len(events)))) for first in starts]
        if len(made) == 1:
            return made[0]
        return [_joined(pieces) for pieces in zip(*made)]

    def _block(self, events: EventColumns, rows: slice) -> list[Column]:
        n = rows.stop - rows.start
        self._operands.reserve(n)
        heap = StringHeap()
        for row, place in enumerate(self._places):
            self._operands.take(row, events.fields[place], rows, heap)
        self._operands.clear_nulls(n)
        return self._evaluated(heap.joined(), n)

    def _evaluated(self, heap: NDArray[np.uint8], n: int) -> list[Column]:
        evaluator = self._evaluator
        evaluator.bind_heap(address(heap))
        evaluator.evaluate(n)
        heaps = JoinedHeaps((heap, *evaluator.own_heaps, _ONE_BYTE)) if any(self._is_string) else None
        found: list[Column] = []
        for root, type_, is_string in zip(self._roots, self._types, self._is_string):
            words, nulls = self._vectors(root)
            words, nulls = words[:n].copy(), nulls[:n].copy()
            found.append(
                Column(type_, words, nulls, None)
                if heaps is None or not is_string
                else Column(type_, heaps.moved(words, nulls), nulls, heaps.bytes)
            )
        return found


def _joined(pieces: Sequence[Column]) -> Column:
    """Return the columns of several blocks as one."""
    words, start = [], 0
    for each in pieces:
        words.append(each.words + np.uint64(start << REF_LENGTH_BITS))
        start += 0 if each.heap is None else len(each.heap)
    heaps = [each.heap for each in pieces if each.heap is not None]
    nulls = np.concatenate([each.nulls for each in pieces if each.nulls is not None])
    return Column(pieces[0].type, np.concatenate(words), nulls, np.concatenate(heaps) if heaps else None)


def _word(value: Any, heap: bytearray) -> int:
    """Return the word of a value that is not null. The bytes of a text are put behind those in the heap."""
    if isinstance(value, str):
        text = value.encode()
        heap += text
        return (len(heap) - len(text)) << REF_LENGTH_BITS | len(text)
    if isinstance(value, float):
        return int(struct.unpack("<Q", struct.pack("<d", value))[0])
    return int(value) & _WORD_MASK
