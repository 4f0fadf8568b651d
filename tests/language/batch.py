"""Rows of Python values to the evaluator's columns, and its vectors back to Python values."""

import ctypes
from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from railgun.language.evaluator import Evaluator
from railgun.language.kernels import layout
from railgun.language.lowering import double_word
from railgun.language.program import compile_program
from railgun.language.typed import TypedExpression
from railgun.language.types import Kind, Type
from reservoir.native.jit import address

# long, timestamp: int; double: float; decimal: Fraction; string: str; boolean: bool; null: None.
Value = int | float | Fraction | str | bool | None
MASK = (1 << 64) - 1


class Batch:
    """The columns of some rows, held in memory for as long as the batch is."""

    def __init__(self, fields: Mapping[str, Type], rows: Sequence[Mapping[str, Value]]) -> None:
        self.rows = len(rows)
        self.heap = bytearray()
        self.words = [
            np.array([self._word(row.get(name), type_) for row in rows], np.uint64)
            for name, type_ in fields.items()
        ]
        self.nulls = [np.array([row.get(name) is None for row in rows], np.uint8) for name in fields]
        self.heap_array = np.frombuffer(bytes(self.heap) or b"\0", np.uint8)

    def _word(self, value: Value, type_: Type) -> int:
        if value is None:
            return 0
        if type_.kind is Kind.STRING:
            encoded = str(value).encode()
            self.heap += encoded
            return (len(self.heap) - len(encoded)) << layout.OFFSET_SHIFT | len(encoded)
        if type_.kind is Kind.DOUBLE:
            return double_word(float(value))
        if type_.kind is Kind.DECIMAL:
            return int(Fraction(value) * 10**type_.scale) & MASK
        return int(value) & MASK

    def bind_to(self, evaluator: Evaluator) -> None:
        for column, (words, nulls) in enumerate(zip(self.words, self.nulls, strict=True)):
            evaluator.bind(column, address(words), address(nulls))
        evaluator.bind_heap(address(self.heap_array))


def evaluate_all(
    expressions: Sequence[TypedExpression], fields: Mapping[str, Type], rows: Sequence[Mapping[str, Value]]
) -> list[list[Value]]:
    """Per expression its value on every row, through one program."""
    evaluator = Evaluator(compile_program(expressions, list(fields.items())))
    batch = Batch(fields, rows)
    batch.bind_to(evaluator)
    evaluator.evaluate(batch.rows)
    return [root_values(evaluator, root, e.type, batch.rows) for root, e in enumerate(expressions)]


def root_values(evaluator: Evaluator, root: int, type_: Type, rows: int) -> list[Value]:
    """The values of one root after `evaluate`; asserts that a null's word is 0."""
    at_words, at_nulls = evaluator.root_addresses(root)
    words = np.frombuffer(_memory(at_words, 8 * rows), np.uint64)
    nulls = np.frombuffer(_memory(at_nulls, rows), np.uint8)
    assert not words[nulls != 0].any(), "a null whose word is not 0"
    return [
        None if null else _value(evaluator, int(word), type_) for word, null in zip(words, nulls, strict=True)
    ]


def _value(evaluator: Evaluator, word: int, type_: Type) -> Value:
    signed = word - (1 << 64) if word >> 63 else word
    if type_.kind is Kind.STRING:
        offset = (word >> layout.OFFSET_SHIFT) & ((1 << layout.OFFSET_BITS) - 1)
        length = word & ((1 << layout.LENGTH_BITS) - 1)
        return _memory(evaluator.string_heap(word) + offset, length).decode()
    if type_.kind is Kind.DOUBLE:
        value = float(np.uint64(word).view(np.float64))
        assert word != 1 << 63, "a negative zero"
        return value
    if type_.kind is Kind.BOOLEAN:
        assert word in (0, 1)
        return word == 1
    return Fraction(signed, 10**type_.scale) if type_.kind is Kind.DECIMAL else signed


def _memory(where: int, size_bytes: int) -> bytes:
    return ctypes.string_at(where, size_bytes)
