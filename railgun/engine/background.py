"""Schedules an engine's background work: a thread does it between calls, and calls do it themselves if they leave the
thread no time.
"""

import math
import threading
import time
from collections.abc import Callable

from railgun.engine.turns import FairLock

# Pauses between two slices: while there is more to do, while the work waits for something such as the disk, and while
# there is nothing to do.
_BUSY_S, _WAITING_S, _IDLE_S = 0.0003, 0.001, 0.05
# If calls came lately, a call may have to wait whenever the thread holds the interpreter lock. Throttled work gets at
# most this share of the time then. The pause is bounded: a slice that took long because of a slow disk must not cause
# a long pause.
_LATELY_S, _BESIDE_SHARE, _REST_MOST_S = 0.05, 0.15, 0.01
# A slice in the background thread ends after this time, after a step that had nothing to do, and when a call waits
# for the lock. An event loop that has not made its call yet waits for the interpreter lock, which cannot be seen here.
_OWN_SLICE_S, _NOTHING_S = 0.0004, 0.0001
# If calls leave the thread no time, they do slices themselves, the first one when the work is overdue by this time. A
# slice takes this share of the time by which the work is overdue, within these bounds. Short slices are frequent, as
# a reply waits for each.
OVERDUE_S, _OVERDUE_SHARE, _SLICE_LEAST_S, _SLICE_MOST_S = 0.006, 0.15, 0.001, 0.003
STARVED_S = 0.02
"""If the work is overdue by this time, calls that only look do it too. Many calls without a pause starve the thread."""


class BackgroundWork:
    """Runs background work in its own thread, and in calls.

    lock: the lock that is held during calls.
    work: does a brief step; returns whether there is more to do now.
    run: runs a slice in the background thread, while it holds the lock; returns False when the thread has to end.
    is_throttled: whether the thread leaves most of the time to calls.
    is_deferrable: whether the work may be delayed, so that calls do not do it until the thread is starved.
    """

    def __init__(
        self,
        lock: FairLock,
        work: Callable[[], bool],
        run: Callable[[Callable[[], None]], bool],
        is_throttled: Callable[[], bool],
        is_deferrable: Callable[[], bool],
    ) -> None:
        self._lock, self._step, self._run = lock, work, run
        self._is_throttled, self._is_deferrable = is_throttled, is_deferrable
        self._next_s = 0.0
        self._called_s = -math.inf
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, name="railgun-maintenance", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def end(self) -> None:
        """End the work: no further slice begins."""
        self._ended.set()

    def join(self) -> None:
        """Wait for the thread to end, unless it is the calling thread."""
        if self._thread is not threading.current_thread():
            self._thread.join()

    def catch_up(self, after_s: float = OVERDUE_S) -> None:
        """Do a slice at the end of a call if the work is overdue by `after_s`. The caller must hold the lock.

        Work that is deferrable has to be overdue by STARVED_S.
        """
        self._called_s = time.monotonic()
        overdue_s = self._called_s - self._next_s
        if overdue_s >= after_s and (overdue_s >= STARVED_S or not self._is_deferrable()):
            limit_s = min(max(_OVERDUE_SHARE * overdue_s, _SLICE_LEAST_S), _SLICE_MOST_S)
            self._slice(limit_s, yields=False)

    def put_off(self) -> None:
        """Count the work as due from now on, after a long call. The caller must hold the lock."""
        self._next_s = max(self._next_s, time.monotonic())

    def _work(self) -> None:
        # The thread takes the lock only while it is free, so that it never stands in the queue before a call.
        while not self._ended.wait(max(_BUSY_S, self._next_s - time.monotonic())):
            if not self._lock.acquire(blocking=False):
                continue
            try:
                if not self._run(lambda: self._slice(_OWN_SLICE_S, yields=True)):
                    return
            finally:
                self._lock.release()

    def _slice(self, limit_s: float, *, yields: bool) -> None:
        first_s = now_s = time.monotonic()
        end_s = now_s + limit_s
        more = worked = True
        while more and worked and now_s < end_s:
            started_s, more = now_s, self._step()
            now_s = time.monotonic()
            worked = now_s - started_s >= _NOTHING_S
            if yields and self._lock.is_wanted:
                break
        busy_s = _BUSY_S if worked else _WAITING_S
        if yields and now_s - self._called_s < _LATELY_S and self._is_throttled():
            busy_s = max(busy_s, min((now_s - first_s) * (1 / _BESIDE_SHARE - 1), _REST_MOST_S))
        self._next_s = now_s + (busy_s if more else _IDLE_S)
