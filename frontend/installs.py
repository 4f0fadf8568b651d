"""Deepenings that are being installed: in threads of their own, since they follow the log for as long as it takes."""

import logging
import threading
from collections.abc import Callable

from railgun.host.faults import one_line

_log = logging.getLogger("railgun.frontend")


class Installs:
    """By stream: under way, or how the last one ended. Used in one event loop."""

    def __init__(self) -> None:
        self._threads: dict[str, threading.Thread] = {}
        self._failures: dict[str, str] = {}

    def begin(self, stream: str, install: Callable[[], None]) -> None:
        """Let one begin, unless one is under way."""
        known = self._threads.get(stream)
        if known is not None and known.is_alive():
            return
        self._failures.pop(stream, None)
        thread = threading.Thread(
            target=self._run, args=(stream, install), name="railgun-install", daemon=True
        )
        self._threads[stream] = thread
        thread.start()

    def failure(self, stream: str) -> str | None:
        """Why the last one of a stream came to nothing."""
        return self._failures.get(stream)

    def _run(self, stream: str, install: Callable[[], None]) -> None:
        try:
            install()
        except Exception as error:  # noqa: BLE001 - whoever asks how it stands is told
            self._failures[stream] = one_line(error)
            _log.error("the deepening of %s was not installed: %s", stream, error)
