"""Deletes the data of copies that have moved to other nodes.

The data is kept for a while: the copy may come back, and would have less to catch up.
"""

import logging
import math
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

from railgun.catalog.task_key import TaskKey
from railgun.host.fetched import fetching_folder, replaced_folder
from railgun.host.place import task_folder
from railgun.unit.clock import Clock

# How long other nodes must have had all copies of a task, caught up, before its data here is deleted.
KEPT_S = 3_600.0
_LOOK_S = 60.0
_GONE = ".gone"

_log = logging.getLogger("railgun.unit")


class MovedCopies:
    """The data of moved copies on a node. One thread of one of its units uses it.

    data: the node's data folder.
    is_elsewhere: returns whether other nodes have all wanted copies of a task, caught up, and none is planned here.
    """

    def __init__(self, data: Path, is_elsewhere: Callable[[TaskKey], bool], clock: Clock) -> None:
        self._data, self._is_elsewhere, self._clock = data, is_elsewhere, clock
        self._looked_s = -math.inf
        self._since_s: dict[TaskKey, float] = {}

    def look(self, tasks: Iterable[TaskKey]) -> None:
        """Look once a minute which of these tasks have moved, and delete their data when their time is over."""
        now_s = self._clock.now()
        if now_s - self._looked_s < _LOOK_S:
            return
        self._looked_s = now_s
        moved = {key for key in tasks if any(self._folders(key)) and self._is_elsewhere(key)}
        self._since_s = {key: self._since_s.get(key, now_s) for key in moved}
        for key, since_s in self._since_s.items():
            if now_s - since_s >= KEPT_S:
                for folder in self._folders(key):
                    self._delete(key, folder)

    def _folders(self, key: TaskKey) -> list[Path]:
        """The folders of a task that are there: its own, and those beside it that a fetch has left."""
        own = self._folder(key)
        return [each for each in (own, fetching_folder(own), replaced_folder(own)) if each.is_dir()]

    def _folder(self, key: TaskKey) -> Path:
        return task_folder(self._data, key.stream, key.created, key.partitioner, key.partition)

    def _delete(self, key: TaskKey, folder: Path) -> None:
        gone = folder.with_name(folder.name + _GONE)
        try:
            shutil.rmtree(gone, ignore_errors=True)
            # Renaming is one step. A host that opens the task from now on begins anew.
            folder.rename(gone)
            shutil.rmtree(gone)
        except OSError as error:
            _log.warning(
                "%s: the data of a copy that has moved to other nodes is not deleted: %s", key, error
            )
        else:
            _log.info("%s: the data of a copy that has moved to other nodes is deleted", key)
