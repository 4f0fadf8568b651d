"""Hot columns: values that the task has the reservoir keep beside each row, as plain 64-bit words.

Rows may have been stored without a column that is asked for later. It is then computed from columns that these rows
have, or from their raw records.
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
        # When hot columns change, sets of a hundred of them are compared for each frame. A str caches its hash.
        return hash(self.name)


@dataclass(frozen=True, slots=True)
class ColumnData:
    """The values of one hot column for n rows, as `ComputeColumns` and `Recipe.make` return them.

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
    """The addresses of the values of one hot column in a sealed chunk. `keep` holds their memory alive.

    words_at: of uint64[rows] (WORD, STRING); 0 for ENTITY.
    nulls_at: of uint8[rows]; 0 if no value is null.
    heap_at: of the `heap_bytes` bytes to which the references of a STRING point.
    codes_at: of uint32[rows] (ENTITY), the code of each row; 0 if each row's number is its code.
    count: how many codes there are, which is the number of different entities (ENTITY).
    pairs_at: of uint64[count][2] (ENTITY), the hash (hi, lo) of each code.
    size_bytes: the memory that is held.
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


# (payload uint8[], offsets int64[n + 1], columns) -> the columns of n rows, computed from their raw records. The
# records lie end to end in the payload, and `offsets` says where each begins.
ComputeColumns = Callable[[NDArray[np.uint8], NDArray[np.int64], Sequence[HotColumn]], list[ColumnData]]


@dataclass(frozen=True, slots=True)
class Recipe:
    """How some columns are computed from others.

    make(rows, values): returns the columns. `values` are those of `sources`, in their order. Any thread may call it.
    """

    sources: tuple[HotColumn, ...]
    make: Callable[[int, Sequence[StoredColumn]], list[ColumnData]]


# Returns the recipe for these columns; None if one of them can only be computed from raw records.
FindRecipe = Callable[[Sequence[HotColumn]], Recipe | None]


def no_recipe(_: Sequence[HotColumn]) -> None:
    """Return no recipe, so that every column is computed from raw records."""


@dataclass(frozen=True, slots=True)
class ColumnMaker:
    """Computes columns that rows lack. A recipe saves reading, unpacking and parsing the raw records of the rows."""

    from_records: ComputeColumns
    find_recipe: FindRecipe = no_recipe

    def from_columns(
        self,
        columns: Sequence[HotColumn],
        rows: int,
        known: Collection[HotColumn],
        stored: Callable[[Sequence[HotColumn]], Sequence[StoredColumn]],
    ) -> list[ColumnData] | None:
        """Compute columns from columns that the rows have. Returns None if those are not enough.

        known: the columns that the rows have. stored(columns): returns their values.
        """
        recipe = self.find_recipe(columns) if known else None
        if recipe is None or not all(source in known for source in recipe.sources):
            return None
        return recipe.make(rows, stored(recipe.sources))
