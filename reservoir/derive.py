"""Hot columns that rows were stored without: computed of columns that they have, or else of their raw records."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reservoir.columns import ColumnData, HotColumn, StoredColumn

# (payload uint8[], offsets int64[n + 1], columns): the columns of n rows from their raw records, end to end.
Derive = Callable[[NDArray[np.uint8], NDArray[np.int64], Sequence[HotColumn]], list[ColumnData]]


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
class Derivation:
    """Makes columns that rows lack. A recipe saves reading, unpacking and parsing their records."""

    derive: Derive
    find_recipe: FindRecipe = no_recipe

    def computed(
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
