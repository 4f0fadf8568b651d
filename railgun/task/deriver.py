"""Hot columns of rows that were stored without them: of columns that they have, or from their raw records."""

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
from reservoir.columns import ColumnData, HotColumn, Kind, Recipe

# So many rows at once: the vectors of a hundred expressions then take a few MB, which stay in the processor's caches.
# For whole chunks they took tens, made anew with every change of metrics while events waited.
_BLOCK_ROWS = 1_024
# Chunks of different ages lack different columns.
_KEPT_MAX = 8


class Deriver:
    """Gives the reservoir hot columns of rows that were stored without them, on any number of threads at once.

    What is not asked for is not computed: a metric that is added to a hundred brings one column to rows that have the
    others.
    """

    def __init__(self) -> None:
        self._plan: _Plan | None = None

    def follow(self, schemas: Sequence[Schema], hot: HotPlan, key: bytes) -> None:
        """The plan whose columns are asked for from now on. From any thread."""
        plan = self._plan
        if plan is None or (plan.schemas, plan.hot) != (schemas, hot):
            self._plan = _Plan(schemas, hot, key)

    def __call__(
        self, payload: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], columns: Sequence[HotColumn]
    ) -> list[ColumnData]:
        """See Reservoir.open."""
        # Once: another thread may put the next plan in its place meanwhile.
        plan = self._plan
        assert plan is not None
        needed = tuple(columns)
        arrivals = plan.take(needed)
        rows = len(offsets) - 1
        # Strings refer to the batch that they are of.
        block = rows if any(column.kind is Kind.STRING for column in columns) else _BLOCK_ROWS
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
        """See Reservoir.open: of numbers that are computed of fields alone."""
        plan = self._plan
        assert plan is not None
        return plan.recipe(tuple(columns))


class _Plan:
    """A plan, and what was made to read its columns: for each call one that no other uses."""

    def __init__(self, schemas: Sequence[Schema], hot: HotPlan, key: bytes) -> None:
        self.schemas, self.hot, self._key = schemas, hot, key
        self._lock = threading.Lock()
        self._idle: dict[tuple[HotColumn, ...], Arrivals] = {}
        # On any thread: two may both make one.
        self.recipe = lru_cache(_KEPT_MAX)(partial(recipe_for, hot))

    def take(self, columns: tuple[HotColumn, ...]) -> Arrivals:
        """What reads these columns, for one call. Raises KeyError for one that is not of this plan."""
        with self._lock:
            idle = self._idle.pop(columns, None)
        return idle or Arrivals(self.schemas, self.hot.only(columns), self._key)

    def give_back(self, columns: tuple[HotColumn, ...], arrivals: Arrivals) -> None:
        """The call is over."""
        with self._lock:
            if len(self._idle) == _KEPT_MAX:
                del self._idle[next(iter(self._idle))]
            self._idle[columns] = arrivals


def _joined(parts: Sequence[ColumnData]) -> ColumnData:
    """Values of rows that follow each other."""
    return ColumnData(
        words=_end_to_end([each.words for each in parts]),
        nulls=_end_to_end([each.nulls for each in parts]),
        hi=_end_to_end([each.hi for each in parts]),
        lo=_end_to_end([each.lo for each in parts]),
    )


def _end_to_end(parts: Sequence[npt.NDArray[np.generic] | None]) -> Any:
    held = [each for each in parts if each is not None]
    return np.concatenate(held) if held else None
