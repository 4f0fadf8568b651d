"""Hot columns: what the task asks the reservoir to keep beside each row, as plain 64-bit words.

A column that rows were stored without is computed of columns that they have, or else of their raw records.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray


class ColumnKind(IntEnum):
    """How the values of a hot column are laid out."""

    WORD = 1  # uint64 words + uint8 nulls (1 = null, its word 0)
    STRING = 2  # uint64 references (offset << 24 | length) into a byte heap + uint8 nulls
    ENTITY = 3  # 128-bit hashes (hi, lo); never null


@dataclass(frozen=True, slots=True)
class HotColumn:
    """A hot column. `name` is its canonical text ("amount", "entity:card"): same name, same values."""

    name: str
    kind: ColumnKind

    def __hash__(self) -> int:
        # Sets of a hundred of them are looked at for every frame where hot columns change: a text knows its hash.
        return hash(self.name)


@dataclass(frozen=True, slots=True)
class ColumnData:
    """The values of one hot column for n rows, as `compute_columns` gives them.

    WORD: words uint64[n], nulls uint8[n] or None.  ENTITY: hi, lo uint64[n].
    STRING: words uint64[n], references heap << 62 | offset << 24 | length into heaps[heap] (uint8 arrays).
    """

    words: NDArray[np.uint64] | None = None
    nulls: NDArray[np.uint8] | None = None
    heaps: tuple[NDArray[np.uint8], ...] = ()
    hi: NDArray[np.uint64] | None = None
    lo: NDArray[np.uint64] | None = None


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """The values of one hot column in a sealed chunk, by address; `keep` holds the memory alive.

    words_at: uint64[rows] (WORD, STRING; else 0).  nulls_at: uint8[rows], 0 where no value is null.
    heap_at: bytes that STRING references point into.  ENTITY: codes_at uint32[rows] (0: the row is the code)
    and pairs_at uint64[count][2] (hi, lo) per code.  size_bytes: memory held.
    """

    column: HotColumn
    words_at: int
    nulls_at: int
    heap_at: int
    heap_bytes: int
    codes_at: int
    pairs_at: int
    count: int
    size_bytes: int
    keep: tuple[Any, ...]


# (payload uint8[], offsets int64[n + 1], columns): the columns of n rows from their raw records, end to end.
ComputeColumns = Callable[[NDArray[np.uint8], NDArray[np.int64], Sequence[HotColumn]], list[ColumnData]]


@dataclass(frozen=True, slots=True)
class Recipe:
    """How columns are made of others. make(rows, sources): of these columns, in their order; on any thread."""

    sources: tuple[HotColumn, ...]
    make: Callable[[int, Sequence[StoredColumn]], list[ColumnData]]


# The recipe of all these columns; None where one of them can only be had from raw records.
FindRecipe = Callable[[Sequence[HotColumn]], Recipe | None]


def no_recipe(_: Sequence[HotColumn]) -> None:
    """Everything comes from raw records."""


@dataclass(frozen=True, slots=True)
class ColumnMaker:
    """Makes columns that rows lack. A recipe saves reading, unpacking and parsing their records."""

    from_records: ComputeColumns
    find_recipe: FindRecipe = no_recipe

    def from_columns(
        self,
        columns: Sequence[HotColumn],
        rows: int,
        known: Collection[HotColumn],
        stored: Callable[[Sequence[HotColumn]], Sequence[StoredColumn]],
    ) -> list[ColumnData] | None:
        """Columns made of those that the rows have: `known`, which stored() gives. None where these do not do."""
        recipe = self.find_recipe(columns) if known else None
        if recipe is None or not all(source in known for source in recipe.sources):
            return None
        return recipe.make(rows, stored(recipe.sources))
