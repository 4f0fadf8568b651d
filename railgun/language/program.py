"""Compiles typed expressions to programs: tables of operations over vectors, for the compiled evaluator."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from railgun.language.kernels.layout import ROW_WORDS
from railgun.language.lowering import Lowering, Row
from railgun.language.typed import TypedExpression
from railgun.language.types import Type


@dataclass(frozen=True, eq=False)
class Program:
    """A program of the evaluator. Immutable; any number of evaluators may share it.

    Vectors are numbered: the columns in their order, then the constants, then the registers.

    columns: the input columns, each a field's name and type.
    rows: int64[operations, 8], as `kernels.layout` says.
    pool: int64, the sorted items of IN, the patterns of LIKE, the offsets of time zones.
    heap: uint8, the bytes of constant strings (heap 1 of string words).
    constant_words, constant_nulls: uint64 and uint8, the value of each constant vector.
    registers: the number of vectors that the evaluator has to allocate.
    roots: for each compiled expression, the number of the vector that holds its value.
    """

    columns: tuple[tuple[str, Type], ...]
    rows: npt.NDArray[np.int64]
    pool: npt.NDArray[np.int64]
    heap: npt.NDArray[np.uint8]
    constant_words: npt.NDArray[np.uint64]
    constant_nulls: npt.NDArray[np.uint8]
    registers: int
    roots: tuple[int, ...]

    @property
    def vectors(self) -> int:
        """The number of all vectors."""
        return len(self.columns) + len(self.constant_words) + self.registers


def compile_program(expressions: Sequence[TypedExpression], columns: Sequence[tuple[str, Type]]) -> Program:
    """The program that computes these expressions from these columns. Common subexpressions are computed once.

    expressions: trees of `resolve` that read no other fields than the columns.
    columns: every input column, a field's name and type, in the order in which they will be bound.
    """
    lowering = Lowering(columns)
    return _program(lowering, [lowering.value(expression) for expression in expressions], columns)


class ProgramCompiler:
    """Compiles one program after another, each as `compile_program` would.

    A program with the columns and expressions of the previous one, and more expressions behind them, costs about as
    much as the new expressions alone.
    """

    def __init__(self) -> None:
        self._expressions: list[TypedExpression] = []
        self._roots: list[int] = []
        self._begin(())

    def compile(self, expressions: Sequence[TypedExpression], columns: Sequence[tuple[str, Type]]) -> Program:
        """Compile like `compile_program`, continuing from the last program if it can."""
        known = len(self._expressions)
        if self._columns != tuple(columns) or self._expressions != list(expressions[:known]):
            known = 0
            self._begin(columns)
        try:
            self._roots += [self._lowering.value(expression) for expression in expressions[known:]]
        except BaseException:
            # The next program must not continue one that is only half compiled.
            self._begin(())
            raise
        self._expressions = list(expressions)
        return _program(self._lowering, self._roots, columns)

    def _begin(self, columns: Sequence[tuple[str, Type]]) -> None:
        self._columns, self._lowering = tuple(columns), Lowering(columns)
        self._expressions, self._roots = [], []


def _program(lowering: Lowering, roots: Sequence[int], columns: Sequence[tuple[str, Type]]) -> Program:
    rows = list(lowering.rows)
    registers, of_row = _allocate(rows, roots, len(columns))

    def vector(value: int) -> int:
        if value < 0:
            return len(columns) - 1 - value
        if value < len(columns):
            return value
        return len(columns) + len(lowering.constants) + of_row[value - len(columns)]

    table = np.zeros((len(rows), ROW_WORDS), np.int64)
    for index, row in enumerate(rows):
        operands = [vector(operand) for operand in row.operands]
        # An unused operand repeats the first one, so that a kernel may read all three.
        unused = [operands[0]] * (3 - len(operands))
        table[index, :7] = row.code, vector(len(columns) + index), *operands, *unused, row.x, row.y
    return Program(
        columns=tuple(columns),
        rows=table,
        pool=np.array(lowering.pool, np.int64),
        heap=np.frombuffer(bytes(lowering.heap), np.uint8),
        constant_words=np.array([word for word, _ in lowering.constants], np.uint64),
        constant_nulls=np.array([null for _, null in lowering.constants], np.uint8),
        registers=registers,
        roots=tuple(vector(root) for root in roots),
    )


def _allocate(rows: Sequence[Row], roots: Sequence[int], columns: int) -> tuple[int, list[int]]:
    """The number of registers, and the register of each row's result.

    A register is reused once its value has been read for the last time, even by the row that reads it: kernels read an
    event's operands before they write its result.
    """
    last_read = {
        operand - columns: index
        for index, row in enumerate(rows)
        for operand in row.operands
        if operand >= columns
    }
    last_read.update({root - columns: len(rows) for root in roots if root >= columns})
    of_row: list[int] = []
    free: list[int] = []
    count = 0
    for index, row in enumerate(rows):
        read = {operand - columns for operand in row.operands if operand >= columns}
        free += sorted(of_row[operand] for operand in read if last_read[operand] == index)
        if not free:
            free.append(count)
            count += 1
        of_row.append(free.pop())
    return count, of_row
