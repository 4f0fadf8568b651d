"""Lines of the process log about who was refused: so many a second, since anybody may ask as often as they like."""

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

LINES_PER_S = 10
PERIOD_S = 1.0


class RefusalLog:
    """Writes at most `LINES_PER_S` lines in a period, and one that says how many were left out. From any thread.

    later: calls a function once, after so many seconds.
    """

    def __init__(
        self,
        now_s: Callable[[], float] = time.monotonic,
        later: Callable[[float, Callable[[], None]], None] | None = None,
    ) -> None:
        self._now_s, self._later = now_s, later or _later
        self._log = logging.getLogger("railgun.audit")
        self._lock = threading.Lock()
        self._began_s, self._lines, self._left_out = now_s(), 0, 0
        # Whether the count of those that were left out will be told.
        self._is_awaited = False

    def note(self, why: str, extra: dict[str, Any]) -> None:
        """Write a line about a refusal, or count it. extra: its figures and names, as `fields` gives them."""
        if self._may_write():
            self._log.warning("refused: %s", why, extra=extra)

    def _may_write(self) -> bool:
        with self._lock:
            now_s = self._now_s()
            if now_s - self._began_s >= PERIOD_S:
                self._began_s, self._lines = now_s, 0
            self._lines += 1
            if self._lines <= LINES_PER_S:
                return True
            self._left_out += 1
            if self._is_awaited:
                return False
            self._is_awaited = True
        try:
            self._later(PERIOD_S, self._tell_left_out)
        except RuntimeError:
            # No thread can be had: the next refusal tries again.
            with self._lock:
                self._is_awaited = False
        return False

    def _tell_left_out(self) -> None:
        with self._lock:
            left_out, self._left_out, self._is_awaited = self._left_out, 0, False
        self._log.warning(
            "refused: %d more within %g s, which have no lines of their own", left_out, PERIOD_S
        )


def _later(after_s: float, function: Callable[[], None]) -> None:
    timer = threading.Timer(after_s, function)
    timer.daemon = True
    timer.start()


refusals = RefusalLog()
"""That of the process."""
