"""Computes columns of numbers that a chunk does not have from its other columns, without the raw records.

A chunk is a sealed block of stored events. `computed_columns.py` calls it for the reservoir.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np

from railgun.language.evaluator import Evaluator
from railgun.language.program import Program, compile_program
from railgun.language.typed import fields_of
from railgun.language.types import Kind
from railgun.plan.hot import HotPlan, field_column
from reservoir.columns import ColumnData, HotColumn, Recipe, StoredColumn
from reservoir.native.jit import address, array_at

# Rows are computed in blocks of about _BLOCK_VALUES values over all vectors, so that these stay in the processor's
# caches, but of at least _BLOCK_ROWS rows.
_BLOCK_ROWS, _BLOCK_VALUES = 1_024, 1 << 15
_NONE_NULL = np.zeros(_BLOCK_VALUES, np.uint8)


def recipe_for(hot: HotPlan, columns: Sequence[HotColumn]) -> Recipe | None:
    """Return how to compute these columns of a plan from the columns of the fields that they read; None if that is
    impossible.

    The program computes the same words as on arrival (docs/decisions/0002). Raises KeyError for a column that is not
    in this plan.
    """
    roots = hot.values(columns)
    if roots is None:
        return None
    names = frozenset[str]().union(*map(fields_of, roots))
    fields = [(name, type_) for name, type_ in hot.fields if name in names]
    if not fields or Kind.STRING in {
        type_.kind for type_ in (*(root.type for root in roots), *dict(fields).values())
    }:
        return None
    sources = tuple(field_column(name, type_) for name, type_ in fields)
    return Recipe(sources, partial(_made, compile_program(roots, fields)))


def _made(program: Program, rows: int, sources: Sequence[StoredColumn]) -> list[ColumnData]:
    block = max(_BLOCK_ROWS, _BLOCK_VALUES // program.vectors)
    evaluator = Evaluator(program, max(1, min(rows, block)))
    words = np.empty((len(program.roots), rows), np.uint64)
    nulls = np.empty((len(program.roots), rows), np.uint8)
    for first in range(0, rows, block):
        n = min(block, rows - first)
        for place, source in enumerate(sources):
            nulls_at = source.nulls_at + first if source.nulls_at else address(_NONE_NULL)
            evaluator.bind(place, source.words_at + 8 * first, nulls_at)
        evaluator.evaluate(n)
        for root in range(len(program.roots)):
            words_at, flags_at = evaluator.root_addresses(root)
            words[root, first : first + n] = array_at(words_at, n, np.uint64)
            nulls[root, first : first + n] = array_at(flags_at, n, np.uint8)
    return [ColumnData(words=words[root], nulls=nulls[root]) for root in range(len(program.roots))]
