"""Computes hot columns of rows that were stored without them, from columns that they have or from their raw records.

Hot columns are the values that metrics need of an event. The reservoir calls the task's `ColumnComputer` when a newer
metric needs a column that stored rows lack.
"""

import threading
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from railgun.plan.hot import HotPlan
from railgun.task.arrivals import Arrivals
from railgun.task.recipes import recipe_for
from railgun.wire.records import Records
from railgun.wire.schema import Schema
from reservoir.columns import ColumnData, ColumnKind, HotColumn, Recipe

# How many rows are computed at once. The vectors of a hundred expressions then take a few MB and stay in the
# processor's caches. For whole chunks they would take tens of MB, and be allocated again with every change of metrics
# while events wait.
_BLOCK_ROWS = 1_024
# Chunks of different ages lack different columns.
_KEPT_MAX = 8


class ColumnComputer:
    """Gives the reservoir hot columns of rows that were stored without them. Any number of threads may use it at
    once.

    Only the columns that are asked for are computed. So a metric that is added to a hundred others adds one column to
    rows that have the others' columns.
    """

    def __init__(self) -> None:
        self._plan: _Plan | None = None

    def follow(self, schemas: Sequence[Schema], hot: HotPlan, key: bytes) -> None:
        """Set the plan whose columns are computed from now on. Any thread may call this."""
        plan = self._plan
        if plan is None or (plan.schemas, plan.hot) != (schemas, hot):
            self._plan = _Plan(schemas, hot, key)

    def __call__(
        self, payload: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], columns: Sequence[HotColumn]
    ) -> list[ColumnData]:
        """Return columns of rows, computed from their raw records. This is `compute_columns` of `Reservoir.open`."""
        # Read once, because another thread may set the next plan meanwhile.
        plan = self._plan
        assert plan is not None
        needed = tuple(columns)
        arrivals = plan.take(needed)
        rows = len(offsets) - 1
        # Strings are references into their batch, so with strings all rows are read as one batch.
        block = rows if any(column.kind is ColumnKind.STRING for column in columns) else _BLOCK_ROWS
        parts: list[list[ColumnData]] = []
        for first in range(0, max(rows, 1), max(block, 1)):
            after = min(rows, first + block)
            begin, end = offsets[first], offsets[after]
            bounds = np.ascontiguousarray(offsets[first : after + 1] - begin)
            arrivals.read(Records(np.ascontiguousarray(payload[begin:end]), bounds))
            parts.append(arrivals.data(columns, after - first))
        plan.give_back(needed, arrivals)
        return parts[0] if len(parts) == 1 else [_joined(each) for each in zip(*parts)]

    def find_recipe(self, columns: Sequence[HotColumn]) -> Recipe | None:
        """Return how to compute columns from other columns; None if there is no way. See `find_recipe` of
        `Reservoir.open`.

        There are recipes for columns of numbers that are computed from fields alone.
        """
        plan = self._plan
        assert plan is not None
        return plan.recipe(tuple(columns))


class _Plan:
    """A plan, with the readers of its columns. Each call gets a reader that no other call uses."""

    def __init__(self, schemas: Sequence[Schema], hot: HotPlan, key: bytes) -> None:
        self.schemas, self.hot, self._key = schemas, hot, key
        self._lock = threading.Lock()
        self._idle: dict[tuple[HotColumn, ...], Arrivals] = {}
        # Any thread may call this, so two threads may both make a recipe.
        self.recipe = lru_cache(_KEPT_MAX)(partial(recipe_for, hot))

    def take(self, columns: tuple[HotColumn, ...]) -> Arrivals:
        """Return a reader of these columns, for one call. Raises KeyError for a column that is not in this plan."""
        with self._lock:
            idle = self._idle.pop(columns, None)
        return idle or Arrivals(self.schemas, self.hot.only(columns), self._key)

    def give_back(self, columns: tuple[HotColumn, ...], arrivals: Arrivals) -> None:
        """Take back a reader after its call."""
        with self._lock:
            if len(self._idle) == _KEPT_MAX:
                del self._idle[next(iter(self._idle))]
            self._idle[columns] = arrivals


def _joined(parts: Sequence[ColumnData]) -> ColumnData:
    """Join the values of successive rows."""
    return ColumnData(
        words=_end_to_end([each.words for each in parts]),
        nulls=_end_to_end([each.nulls for each in parts]),
        hi=_end_to_end([each.hi for each in parts]),
        lo=_end_to_end([each.lo for each in parts]),
    )


def _end_to_end(parts: Sequence[npt.NDArray[np.generic] | None]) -> Any:
    held = [each for each in parts if each is not None]
    return np.concatenate(held) if held else None
