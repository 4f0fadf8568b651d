"""A lock that is given in the order in which it was asked for.

A plain lock may be taken again by the thread that has just let go of it: whoever loops over it, as waiting for
a fill does, would keep everyone else out.
"""

import threading
from collections import deque
from types import TracebackType
from typing import Self


class FairLock:
    """First come, first served. Not reentrant."""

    def __init__(self) -> None:
        self._inner = threading.Lock()
        self._held = False
        self._waiting: deque[threading.Event] = deque()

    @property
    def is_wanted(self) -> bool:
        """Does anyone wait for it?"""
        return bool(self._waiting)

    def acquire(self, blocking: bool = True) -> bool:
        """Take the lock, after all who asked before; without `blocking` only where nobody holds it or waits."""
        with self._inner:
            if not self._held and not self._waiting:
                self._held = True
                return True
            if not blocking:
                return False
            turn = threading.Event()
            self._waiting.append(turn)
        try:
            turn.wait()
        except BaseException:
            self._give_up(turn)
            raise
        return True

    def release(self) -> None:
        """Let go: the lock is that of whoever has waited longest."""
        with self._inner:
            if self._waiting:
                self._waiting.popleft().set()
            else:
                self._held = False

    def _give_up(self, turn: threading.Event) -> None:
        """Leave the queue (an interrupt came while waiting), or pass the turn on where it has come already."""
        with self._inner:
            if turn in self._waiting:
                self._waiting.remove(turn)
                return
        self.release()

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
