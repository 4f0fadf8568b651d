"""Counts the stored events that cross the windows' edges while a task processes events."""

from collections.abc import Callable
from typing import Any

import numpy as np

from railgun.task.processor import TaskProcessor


class CrossingCount:
    """While it is entered: counts the entries that each advance of the reservoir gives, by edge.

    Metrics must not change meanwhile.
    """

    def __init__(self, task: TaskProcessor) -> None:
        edges = task.runtime.edges
        self._reservoir, self._deltas_ms = task.reservoir, list(edges)
        self._edges = np.array(list(edges.values()), np.int64)
        self._crossed = np.zeros(len(edges), np.int64)

    @property
    def by_delta_ms(self) -> dict[int, int]:
        """How many events have crossed each edge, by how far it is behind the clock."""
        return dict(zip(self._deltas_ms, self._crossed.tolist()))

    def __enter__(self) -> None:
        advance: Callable[..., int] = self._reservoir.advance

        def counting(*arguments: Any) -> int:
            complete = advance(*arguments)
            log = self._reservoir.changelog
            self._crossed += log.end[self._edges] - log.start[self._edges]
            return complete

        setattr(self._reservoir, "advance", counting)  # noqa: B010 - a method is put before the class's own

    def __exit__(self, *error: object) -> None:
        del self._reservoir.advance
