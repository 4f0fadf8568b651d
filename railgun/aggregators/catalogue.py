"""The cells of each aggregator, by the type of its argument and its window, and how its result is computed from them.

A *cell* is some words of an entity's row that hold one aggregate. The compiler of programs (`railgun/plan/program.py`)
asks for the cells of each metric. Aggregators of one argument share cells of the same op: `sum`, `avg` and `var_*`
share the accumulator and the count of values; `last` and `prev` share one cell. No event ever leaves a TUMBLING bucket
or an INFINITE window. So a cell of fixed size serves them in place of a map of the window's values.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from railgun.aggregators import codes, distinct, earliest, extreme, latest, sum_double, sum_long, trees
from railgun.language.ast import Aggregator, WindowKind
from railgun.language.resolve import result_type
from railgun.language.types import Kind, Type


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of an entity's row. An empty cell is all zeros.

    op: the op code of its updates.
    words: its size.
    tree_words: the number of value words of the ordered map whose root is the cell's first two words; 0 without a map.
    wide_words: the number of words of the raw page whose id is the cell's first word; 0 for cells without such a page.
    That id is 0 while there is no page.
    """

    op: int
    words: int
    tree_words: int = 0
    wide_words: int = 0


@dataclass(frozen=True, slots=True)
class Recipe:
    """The cells and op codes of one aggregator, from which the plan makes rows of the interpreter's program.

    cells: in the order in which they are updated; the count of values, if there is one, comes first.
    main, squares, count: indexes of cells, −1 for none.
    result: the op code of apply_result.
    type_code, result_type_code: the type codes of the argument and of the result.
    needs_bytes: whether adding a string takes its bytes, not only its hash.
    """

    cells: tuple[Cell, ...]
    result: int
    main: int
    count: int
    squares: int
    type_code: int
    result_type_code: int
    needs_bytes: bool


_COUNT = Cell(codes.COUNT, 1)
_SUM_DOUBLE = Cell(codes.SUM_DOUBLE, sum_double.SUM_WORDS, wide_words=sum_double.WIDE_SUM_WORDS)
_SQUARES_DOUBLE = Cell(
    codes.SQUARES_DOUBLE, sum_double.SQUARES_WORDS, wide_words=sum_double.WIDE_SQUARES_WORDS
)
_SUM_LONG = Cell(codes.SUM_LONG, sum_long.SUM_WORDS)
_SQUARES_LONG = Cell(codes.SQUARES_LONG, sum_long.SQUARES_WORDS)
_LATEST = Cell(codes.LATEST, latest.WORDS)

# The cells of these aggregators hold the bytes of strings, not only their hashes.
_STORING = (
    codes.LATEST,
    codes.EARLIEST,
    codes.LEAST,
    codes.GREATEST,
    codes.DEQUE_MIN,
    codes.DEQUE_MAX,
    codes.QUEUE,
)

_SPREADS: Mapping[Aggregator, tuple[int, int]] = {
    Aggregator.VAR_SAMP: (codes.RESULT_VAR_SAMP_DOUBLE, codes.RESULT_VAR_SAMP_LONG),
    Aggregator.VAR_POP: (codes.RESULT_VAR_POP_DOUBLE, codes.RESULT_VAR_POP_LONG),
    Aggregator.STDDEV_SAMP: (codes.RESULT_STDDEV_SAMP_DOUBLE, codes.RESULT_STDDEV_SAMP_LONG),
    Aggregator.STDDEV_POP: (codes.RESULT_STDDEV_POP_DOUBLE, codes.RESULT_STDDEV_POP_LONG),
}


@lru_cache(maxsize=1024)
def recipe_of(aggregator: Aggregator, argument: Type | None, window: WindowKind) -> Recipe:
    """The recipe of an aggregator over an argument of this type; None for `count(*)`. Raises ValueError."""
    result = result_type(aggregator, argument)
    if result is None:
        raise ValueError(f"{aggregator} takes no {argument}")
    cells, op = _cells_and_result(aggregator, argument, window is WindowKind.SLIDING)
    bytes_needed = argument is not None and argument.kind is Kind.STRING and cells[-1].op in _STORING
    return Recipe(
        cells=cells,
        result=op,
        main=0 if len(cells) == 1 else 1,
        count=-1 if aggregator is Aggregator.COUNT_DISTINCT else 0,
        squares=2 if len(cells) == 3 else -1,
        type_code=codes.TYPE_INT if argument is None else type_code_of(argument),
        result_type_code=type_code_of(result),
        needs_bytes=bytes_needed,
    )


def type_code_of(of: Type) -> int:
    """The type code, which says how the words of values of a type compare."""
    return {Kind.DOUBLE: codes.TYPE_DOUBLE, Kind.STRING: codes.TYPE_STRING}.get(of.kind, codes.TYPE_INT)


def _cells_and_result(
    aggregator: Aggregator, argument: Type | None, sliding: bool
) -> tuple[tuple[Cell, ...], int]:
    """The cells, and the op code of the result.

    The first cell is the count, except for count_distinct. The last cell has the values that the result is made of.
    """
    if aggregator is Aggregator.COUNT or argument is None:
        return (_COUNT,), codes.RESULT_COUNT
    if aggregator is Aggregator.COUNT_DISTINCT:
        op = codes.MULTISET if sliding else codes.VALUE_SET
        return (Cell(op, distinct.WORDS, tree_words=1),), codes.RESULT_DISTINCT
    if aggregator in (Aggregator.LAST, Aggregator.PREV):
        last = aggregator is Aggregator.LAST
        return (_COUNT, _LATEST), codes.RESULT_LAST if last else codes.RESULT_PREV
    if aggregator in (Aggregator.MIN, Aggregator.MAX, Aggregator.FIRST):
        return _chosen(aggregator, argument, sliding)
    of_double = argument.kind is Kind.DOUBLE
    total = _SUM_DOUBLE if of_double else _SUM_LONG
    if aggregator is Aggregator.SUM:
        return (_COUNT, total), codes.RESULT_SUM_DOUBLE if of_double else codes.RESULT_SUM_LONG
    if aggregator is Aggregator.AVG:
        of_long = codes.RESULT_AVG_DECIMAL if argument.kind is Kind.DECIMAL else codes.RESULT_AVG_LONG
        return (_COUNT, total), codes.RESULT_AVG_DOUBLE if of_double else of_long
    squares = _SQUARES_DOUBLE if of_double else _SQUARES_LONG
    return (_COUNT, total, squares), _SPREADS[aggregator][0 if of_double else 1]


def _chosen(aggregator: Aggregator, argument: Type, sliding: bool) -> tuple[tuple[Cell, ...], int]:
    """The cells of `min`, `max` and `first`: a map of values if they leave the window, otherwise one value."""
    if sliding:
        op = {Aggregator.MIN: codes.DEQUE_MIN, Aggregator.MAX: codes.DEQUE_MAX}.get(aggregator, codes.QUEUE)
        tree = Cell(op, trees.WORDS, tree_words=2 if argument.kind is Kind.STRING else 1)
        return (_COUNT, tree), codes.RESULT_FRONT
    if aggregator is Aggregator.FIRST:
        return (_COUNT, Cell(codes.EARLIEST, earliest.WORDS)), codes.RESULT_EARLIEST
    op = codes.LEAST if aggregator is Aggregator.MIN else codes.GREATEST
    return (_COUNT, Cell(op, extreme.WORDS)), codes.RESULT_EXTREME
