"""The progress of opening several tasks. The threads that open them report to it."""

import logging
import threading
from collections.abc import Callable

from railgun.logs.setup import fields

_EVERY_S = 5.0
_log = logging.getLogger("railgun.engine")


class StartProgress:
    """Receives progress reports, and ignores them."""

    def opening(self, tasks: int) -> None:
        """Report how many tasks are being opened. Their last checkpoints are restored first."""

    def expect(self, records: int) -> None:
        """Report that a task is restored, and how many records of its log it has to process again."""

    def note(self, records: int) -> None:
        """Report that this many of the records have been processed."""


class LoggedStartProgress(StartProgress):
    """Logs when opening begins, and the progress every few seconds."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s, self._next_s = now_s, 0.0
        self._lock = threading.Lock()
        self._tasks = self._restored = self._records = self._done = 0

    def opening(self, tasks: int) -> None:
        self._tasks, self._next_s = tasks, self._now_s() + _EVERY_S
        _log.info("opening: checkpoints are restored", extra=fields(tasks=tasks))

    def expect(self, records: int) -> None:
        with self._lock:
            self._restored += 1
            self._records += records
            self._say()

    def note(self, records: int) -> None:
        with self._lock:
            self._done += records
            self._say()

    def _say(self) -> None:
        now_s = self._now_s()
        if now_s < self._next_s:
            return
        self._next_s = now_s + _EVERY_S
        figures = fields(restored=self._restored, tasks=self._tasks, records=self._done, of=self._records)
        _log.info("processing what came after the checkpoints", extra=figures)
