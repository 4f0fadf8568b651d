"""Deletes the folders of dropped streams, some time after the drop. The loop of one unit of each node calls it.

The folders may hold hundreds of gigabytes, so they are deleted outside the loop.
"""

import logging
import shutil
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from railgun.catalog.catalog import Catalog
from railgun.history.durable_files import is_set_aside, set_aside
from railgun.history.request_files import created_of
from railgun.host.data_folder import TASKS, stream_folder
from railgun.state.lock import is_any_held
from railgun.unit.clock import Clock
from railgun.unit.moved_copies import in_a_thread

# How long to wait if a unit of this node has not closed its tasks yet.
_OPEN_S = 1.0

_log = logging.getLogger("railgun.unit")


class DroppedStreams:
    """The folders of dropped streams on a node. One thread of one of its units uses it.

    data: the node's data folder.
    grace_s: how long the folders are kept, in seconds.
    run: runs a function outside the unit's loop, and returns what tells whether it still runs.
    """

    def __init__(
        self,
        data: Path,
        grace_s: float,
        clock: Clock,
        run: Callable[[Callable[[], None]], Callable[[], bool]] = in_a_thread,
    ) -> None:
        self._data, self._grace_s, self._clock = data, grace_s, clock
        self._run = run
        self._is_deleting: Callable[[], bool] = lambda: False
        self._due_s: dict[Path, float] = {}

    def note(self, catalog: Catalog) -> None:
        """Note the folders of streams that a new catalogue does not have."""
        due_s = self._clock.now() + self._grace_s
        dropped = {folder for folder in self._folders() if _is_dropped(folder, catalog)}
        self._due_s = {folder: self._due_s.get(folder, due_s) for folder in dropped}

    def remove(self, catalog: Catalog) -> None:
        """Delete the folders whose time is over, and whose tasks are closed."""
        now_s = self._clock.now()
        if self._is_deleting():
            return
        gone: list[Path] = []
        for folder in [folder for folder, due_s in self._due_s.items() if due_s <= now_s]:
            # A deepening, which builds older history, may have begun there for another stream of that name.
            is_dropped = _is_dropped(folder, catalog)
            if is_dropped and is_any_held(folder):
                self._due_s[folder] = now_s + _OPEN_S
                continue
            del self._due_s[folder]
            if is_dropped and folder.is_dir():
                _log.info("the folder of a dropped stream is deleted: %s", folder)
                gone += _nameless(folder)
        if gone:
            self._is_deleting = self._run(partial(_delete, gone))

    def _folders(self) -> Iterator[Path]:
        for above in (self._data / TASKS, self._data / "backfill"):
            if above.is_dir():
                yield from above.iterdir()


def _nameless(folder: Path) -> list[Path]:
    """Take away a folder's name, so that nothing opens a part of it. Returns the new one; nothing if that fails."""
    if is_set_aside(folder):
        return [folder]
    try:
        return [set_aside(folder)]
    except OSError as error:
        _log.warning("%s: the folder of a dropped stream is not deleted: %s", folder, error)
        return []


def _delete(folders: Sequence[Path]) -> None:
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def _is_dropped(folder: Path, catalog: Catalog) -> bool:
    if is_set_aside(folder):
        # A crash has left it.
        return True
    owner = _owner(folder)
    return owner is not None and owner not in {
        stream_folder(name, entry.created) for name, entry in catalog.streams.items()
    }


def _owner(folder: Path) -> str | None:
    """Return the folder name of the stream that a folder of tasks or of a deepening belongs to; None if not known."""
    if folder.parent.name == TASKS:
        return folder.name
    created = created_of(folder)
    return None if created is None else stream_folder(folder.name, created)
