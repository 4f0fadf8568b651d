"""Finds the built histories in a node's data folder, from which copies could be made on the node."""

import math
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from railgun.catalog.catalog import Catalog
from railgun.host.place import has_built
from railgun.task.errors import HistoryDamagedError

_LOOK_S = 10.0
# How long the caller waits for the first look.
_FIRST_S = 2.0


class BuiltHistories:
    """Looks for histories now and then, in another thread, because a data folder on a network's file system may hang.

    Until a look ends, the result of the one before counts. One thread uses it. data: the node's data folder.
    """

    def __init__(self, data: Path) -> None:
        self._data = data
        self._looked_s = -math.inf
        self._look: threading.Thread | None = None
        self._found: list[str] = []

    def among(self, catalog: Catalog) -> list[str]:
        """Return the ids of those histories of the catalogue that are there for all tasks of their stream."""
        now_s = time.monotonic()
        is_idle = self._look is None or not self._look.is_alive()
        if is_idle and now_s - self._looked_s >= _LOOK_S:
            is_first, self._looked_s = self._look is None, now_s
            self._look = threading.Thread(target=self._look_for, args=(catalog,), daemon=True)
            self._look.start()
            self._look.join(_FIRST_S if is_first else 0.0)
        return self._found

    def _look_for(self, catalog: Catalog) -> None:
        self._found = sorted(self._there(catalog))

    def _there(self, catalog: Catalog) -> Iterator[str]:
        for entry in catalog.streams.values():
            history = entry.history
            if history is None:
                continue
            try:
                if all(has_built(self._data, key, history.history) for key in entry.task_keys):
                    yield history.history
            except (HistoryDamagedError, OSError):
                # No copy could be made from this history.
                continue
