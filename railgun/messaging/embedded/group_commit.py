"""Group commit: what waits when the disk is free is written and synced together.

Whoever appends and waits does the work itself, for all that wait; what was only submitted is written by one
background thread.  So a lone append costs no change of threads, and many share one sync.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from railgun.messaging.errors import (
    TransportClosedError,
    TransportError,
    TransportFullError,
    TransportIOError,
)
from railgun.messaging.transport import Entry

COMMIT_LIMIT_BYTES = 8 << 20
PENDING_LIMIT_BYTES = 64 << 20


class Submission:
    """Entries that wait to be written, and where the offset of each goes once all are durable."""

    __slots__ = ("entries", "error", "future", "is_taken", "offsets", "size_bytes")

    def __init__(self, entries: Sequence[Entry], size_bytes: int) -> None:
        self.entries = entries
        self.size_bytes = size_bytes
        self.is_taken = False
        self.offsets: list[int] = []
        self.error: TransportError | None = None
        self.future: Future[list[int]] = Future()
        # Running from the start: a waiter that gives up cannot take back what may already be on its way.
        self.future.set_running_or_notify_cancel()

    def settle(self) -> None:
        """Tell whoever waits."""
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.offsets)


class GroupCommit:
    """Runs `write` over submissions, in order, one call at a time.

    write(submissions) makes them durable and sets each one's `offsets`, or `error` where it alone cannot be
    written.  An error that it raises is for good: all that waits and all that comes later gets it.
    """

    def __init__(self, place: str, write: Callable[[list[Submission]], None]) -> None:
        self._place = place
        self._write = write
        self._waiting: deque[Submission] = deque()
        self._waiting_bytes = 0
        self._arrived = threading.Condition()
        self._writing = threading.Lock()
        self._failure: TransportError | None = None
        self._closed = False
        self._thread: threading.Thread | None = None

    def submit(self, submission: Submission) -> None:
        """Have it written in the background."""
        with self._arrived:
            self._enqueue(submission)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="log-commit", daemon=True)
                self._thread.start()
            self._arrived.notify()

    def submit_here(self, submission: Submission) -> None:
        """Have it written by this thread, after whatever waits: where that takes less than waking another one."""
        with self._arrived:
            self._enqueue(submission)
        while not submission.is_taken:
            self._commit()

    def append(self, submission: Submission) -> list[int]:
        """Write it, with whatever waits before it; returns its offsets."""
        self.submit_here(submission)
        return submission.future.result()

    @property
    def has_failed(self) -> bool:
        """A write failed: nothing more is taken."""
        return self._failure is not None

    def exclusive(self) -> threading.Lock:
        """Held while nothing is being written."""
        return self._writing

    def close(self) -> None:
        """Write what waits and take nothing more."""
        with self._arrived:
            self._closed = True
            self._arrived.notify_all()
        if self._thread is not None:
            self._thread.join()
        while self._waiting:
            self._commit()

    def _enqueue(self, submission: Submission) -> None:
        if self._closed:
            raise TransportClosedError(self._place)
        if self._failure is not None:
            raise self._failure
        if self._waiting_bytes and self._waiting_bytes + submission.size_bytes > PENDING_LIMIT_BYTES:
            raise TransportFullError(self._place, self._waiting_bytes)
        self._waiting.append(submission)
        self._waiting_bytes += submission.size_bytes

    def _run(self) -> None:
        while True:
            with self._arrived:
                while not self._waiting and not self._closed:
                    self._arrived.wait()
                if not self._waiting:
                    return
            self._commit()

    def _commit(self) -> None:
        taken: list[Submission] = []
        try:
            with self._writing:
                taken = self._take()
                if taken:
                    self._attempt(taken)
        finally:
            for submission in taken:
                submission.settle()

    def _attempt(self, taken: list[Submission]) -> None:
        failure = self._failure
        if failure is None:
            failure = TransportIOError(self._place, "a defect stopped the writing", "Report it; start again")
            try:
                self._write(taken)
                failure = None
            except TransportError as error:
                failure = error
            finally:
                self._note(taken, failure)
        else:
            self._note(taken, failure)

    def _note(self, taken: list[Submission], failure: TransportError | None) -> None:
        self._failure = failure
        for submission in taken:
            submission.error = submission.error or failure

    def _take(self) -> list[Submission]:
        with self._arrived:
            taken: list[Submission] = []
            size_bytes = 0
            while self._waiting and size_bytes < COMMIT_LIMIT_BYTES:
                submission = self._waiting.popleft()
                submission.is_taken = True
                size_bytes += submission.size_bytes
                taken.append(submission)
            self._waiting_bytes -= size_bytes
        return taken
