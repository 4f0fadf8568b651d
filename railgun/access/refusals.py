"""Counts and logs refused requests and clients. The lines per second are limited, because anybody can cause them."""

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from railgun.access.guard import AccessError
from railgun.logs.setup import fields

LINES_PER_S = 10
PERIOD_S = 1.0
STATUSES = (401, 403, 421)
"""The statuses of a refusal because of the caller (401, 403) or the Host name (421)."""
UNAUTHORIZED = 401
_PATH_MAX = 200


class RefusalLog:
    """Writes at most `LINES_PER_S` lines in a period, and one line with the number of those left out.

    Any thread may call it.
    requests: the number of refused requests by status.  later: calls a function once, after a number of seconds.
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
        # True if a timer is set that will log the number of lines left out.
        self._is_awaited = False
        self.requests: Counter[int] = Counter()

    def note_request(
        self, error: AccessError, method: str, path: bytes, client: str | None, *, is_logged: bool
    ) -> None:
        """Counts a refused request, and writes a line about it if `is_logged`.

        path: as it was sent, without the query. It is percent-encoded, so it holds no control codes of terminals.
        """
        with self._lock:
            self.requests[error.status] += 1
        if is_logged:
            asked = f"{method} {path.decode('ascii', 'backslashreplace')[:_PATH_MAX]}"
            self.note(error.detail, fields(request=asked, status=error.status, who=error.who, client=client))

    def note(self, why: str, extra: dict[str, Any]) -> None:
        """Writes a line about a refusal, or counts it as left out. extra: the fields of the line, made by `fields`."""
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
            # No thread could be started. The next refusal tries again.
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
"""The log of refusals of this process."""
