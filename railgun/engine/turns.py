"""A fair lock, which `Engine` holds for each call: threads get it in the order in which they asked for it.

With a plain lock, a thread that takes the lock in a loop (as waiting for a fill does) could keep all other threads out.
"""

import threading
from collections import deque
from types import TracebackType
from typing import Self


class FairLock:
    """A lock that threads get in the order of their requests. It is not reentrant."""

    def __init__(self) -> None:
        self._inner = threading.Lock()
        self._held = False
        self._waiting: deque[threading.Event] = deque()

    @property
    def is_wanted(self) -> bool:
        """Whether any thread waits for the lock."""
        return bool(self._waiting)

    def acquire(self, blocking: bool = True) -> bool:
        """Take the lock, after all threads that asked earlier. Without `blocking`, take it only if nobody holds it or
        waits.
        """
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
        """Release the lock. It goes to the thread that has waited longest."""
        with self._inner:
            if self._waiting:
                self._waiting.popleft().set()
            else:
                self._held = False

    def _give_up(self, turn: threading.Event) -> None:
        """Leave the queue after an interrupt. If this thread has the turn already, pass it on."""
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
