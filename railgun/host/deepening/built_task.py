"""Finds the task that was built with older history for a place (a task's log and folder), and opens it as a successor.

A deepening gives a live stream older events than its log has. `take_over.py` and `task_host.py` use this.
"""

import shutil
from collections.abc import Callable
from dataclasses import replace

from railgun.history.manifest import MANIFEST_PLACE, verified_manifest
from railgun.history.request_files import DeepeningRequest
from railgun.history.task_folder import beside, current_folder, take_in
from railgun.host.deepening.successor import Successor, close_all
from railgun.host.place import Place
from railgun.host.task_log import TaskLog
from railgun.task.errors import HistoryDamagedError
from railgun.task.processor import TaskProcessor
from railgun.task.settings import MIB, TaskSettings

# Successors get this share of the caches of the task that answers, because both are open for a while.
_CACHE_SHARE, _CACHE_BYTES_MIN = 4, 4 * MIB

Offered = Callable[[], DeepeningRequest | None]
"""Returns which successor is built for a task, if any. Raises OSError."""


class BuiltTask:
    """The built task of a place.

    settings, sync_log, position: those of the task that answers.
    is_wanted: False once the successor is not needed any more, even if it is just being opened.
    """

    def __init__(
        self,
        place: Place,
        log: TaskLog,
        settings: TaskSettings,
        sync_log: Callable[[int], None],
        position: Callable[[], int],
        offered: Offered,
    ) -> None:
        self._place, self._log, self._settings = place, log, _smaller(settings)
        self._sync_log, self._position, self._offered = sync_log, position, offered
        self.is_wanted = True

    def offer(self) -> DeepeningRequest | None:
        """Return which history is offered to this task; None if none is. An offer for an earlier stream of the same
        name does not count.

        Raises OSError.
        """
        offer = self._offered()
        return offer if offer is not None and offer.created == self._place.key.created else None

    def is_available(self, history: str) -> bool:
        """Whether a task with this history is built and does not answer yet. Raises HistoryDamagedError
        and OSError.
        """
        made = beside(self._place.folder, history)
        if made.is_dir():
            return current_folder(self._place.folder) != made
        return (self._place.built(history) / MANIFEST_PLACE).is_file()

    def open(self, history: str) -> Successor:
        """Copy the built task into the task's place, if that has not been done, and open it as a successor.

        Raises TransportError, OSError, and what tasks raise.
        """
        return Successor(self._recovered(history), self._log, self._position)

    def open_unless_given_up(self, history: str) -> Successor | None:
        """Open the successor, and read its first records ahead. Returns None if the deepening was given up meanwhile;
        nothing of it is left then.

        Runs in another thread than the task that answers.
        """
        made = beside(self._place.folder, history)
        is_new = not made.is_dir()
        successor: Successor | None = None
        try:
            successor = self.open(history)
            successor.read_ahead()
        except BaseException:
            close_all([] if successor is None else [successor])
            successor = None
            raise
        finally:
            # The process that gave the deepening up may not have seen this folder, so it is deleted here. If all tasks
            # have taken over, the folder was here before, and stays.
            if is_new and self._is_given_up(history):
                close_all([] if successor is None else [successor])
                successor = None
                shutil.rmtree(made, ignore_errors=True)
        return successor

    def _is_given_up(self, history: str) -> bool:
        if not self.is_wanted:
            return True
        try:
            offer = self.offer()
        except OSError:
            return False
        return offer is None or offer.history != history

    def _recovered(self, history: str) -> TaskProcessor:
        place = self._place
        made = beside(place.folder, history)
        if not made.is_dir():
            built = place.built(history)
            manifest = verified_manifest(built, place.identity, place.key.created)
            if manifest.history != history:
                raise HistoryDamagedError(
                    str(built), f"it was built for another deepening, {manifest.history}"
                )
            take_in(built, place.folder, history)
        try:
            return self._log.recover(made, place.identity, self._settings, self._sync_log)
        except BaseException:
            self._log.release_second_reader()
            raise


def _smaller(settings: TaskSettings) -> TaskSettings:
    names = ("row_cache_bytes", "page_cache_bytes", "chunk_cache_bytes", "block_cache_bytes")
    return replace(
        settings,
        **{
            name: max(_CACHE_BYTES_MIN, getattr(settings, name) // _CACHE_SHARE)
            for name in (*names, "write_buffer_bytes")
        },
    )
