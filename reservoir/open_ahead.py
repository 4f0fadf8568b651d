"""Hot columns that the open region will get, computed while it goes on: of the rows that it holds by then."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reservoir.columns import ColumnData, HotColumn, Kind
from reservoir.ring import OpenColumn, Ring


@dataclass(frozen=True, slots=True)
class OpenAhead:
    """generation: of the rings that the columns are for.  last_seq: rows behind that log position came later: what the
    columns have at their slots means nothing.
    """

    generation: int
    last_seq: int
    columns: dict[HotColumn, OpenColumn]

    def lacking(self, ring: Ring, slots: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """Those of these slots whose rows came later."""
        return slots[ring.seq[slots] > self.last_seq]


def put(
    column: OpenColumn, slots: NDArray[np.uint32], data: ColumnData, words: NDArray[np.uint64] | None
) -> None:
    """Put values into slots. words: of a column that has some, in place of the data's."""
    if column.kind is Kind.ENTITY:
        assert data.hi is not None
        assert data.lo is not None
        column.pairs[slots, 0], column.pairs[slots, 1] = data.hi, data.lo
    else:
        assert words is not None
        column.words[slots] = words
        column.nulls[slots] = 0 if data.nulls is None else data.nulls


def words_of(data: ColumnData) -> NDArray[np.uint64] | None:
    """The words of values, zeros where they are null."""
    if data.words is None or data.nulls is None:
        return data.words
    return np.where(data.nulls == 0, data.words, np.uint64(0))
