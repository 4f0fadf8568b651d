"""When background work is done: by a thread of its own between calls, and by calls that leave it no turn."""

import math
import threading
import time
from collections.abc import Callable

from railgun.engine.turns import FairLock

# Between two slices: while there is more to do, while that waits for something (the disk), and when there is nothing.
_BUSY_S, _WAITING_S, _IDLE_S = 0.0003, 0.001, 0.05
# Where calls came lately, all the time that it has the interpreter is time that they may wait for it: what rests
# gets at most this share then. A slice that something held up for long, as a slow disk, is no reason to rest long.
_LATELY_S, _BESIDE_SHARE, _REST_MOST_S = 0.05, 0.15, 0.01
# A slice of the thread's own ends after this long, where a step had nothing to do, and where a call waits: an event
# loop that has yet to come to its call waits for the interpreter meanwhile, which does not show.
_OWN_SLICE_S, _NOTHING_S = 0.0004, 0.0001
# Where calls leave the thread no turn they do slices themselves, the first this long after it was due: of this share of
# the time that it is overdue, within these bounds. Short ones often, since a reply waits for each.
OVERDUE_S, _OVERDUE_SHARE, _SLICE_LEAST_S, _SLICE_MOST_S = 0.006, 0.15, 0.001, 0.003
STARVED_S = 0.02
"""Overdue for so long it is also done by calls that only look: many without a pause leave the thread no turn."""


class BackgroundWork:
    """lock: held during calls.  work: a brief step; True: there is more to do now.  run: does a slice of the thread's
    own, with the lock; False: it is over.  rests: whether the thread leaves calls most of the time.  has_time: whether
    what there is to do may take its time, so that calls need not do it either.
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
        """From now on."""
        self._thread.start()

    def end(self) -> None:
        """No slice begins any more."""
        self._ended.set()

    def join(self) -> None:
        """Wait for the thread, unless it is this one."""
        if self._thread is not threading.current_thread():
            self._thread.join()

    def catch_up(self, after_s: float = OVERDUE_S) -> None:
        """After a call, which holds the lock: a slice where it has been overdue for so long; where it has time, once it
        is starved.
        """
        self._called_s = time.monotonic()
        overdue_s = self._called_s - self._next_s
        if overdue_s >= after_s and (overdue_s >= STARVED_S or not self._is_deferrable()):
            limit_s = min(max(_OVERDUE_SHARE * overdue_s, _SLICE_LEAST_S), _SLICE_MOST_S)
            self._slice(limit_s, yields=False)

    def put_off(self) -> None:
        """After a long call, which holds the lock: what is due is due from now."""
        self._next_s = max(self._next_s, time.monotonic())

    def _work(self) -> None:
        # Whoever calls does not wait here for its turn: the thread takes the lock only while nobody has it.
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
