"""Group commit: submissions that arrive during a write are then written and synced together.

A thread that calls `append` writes all waiting submissions itself, its own among them. A background thread writes the
submissions that no thread waits for. So a single append needs no switch of threads, and concurrent ones share a sync.
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
"""A commit takes no further submission once it has this much."""
PENDING_LIMIT_BYTES = 64 << 20
"""Back-pressure: a submission that would make more than this wait is refused."""


class Submission:
    """Entries to write, and the future that completes when they are durable.

    offsets: the offsets of each entry's first record.  is_taken: whether a thread is writing it, or has written it.
    future: gets the offsets or the error. It counts as running from the start: a caller that gives up cannot cancel
    what may be written already.
    """

    __slots__ = ("entries", "error", "future", "is_taken", "offsets", "size_bytes")

    def __init__(self, entries: Sequence[Entry], size_bytes: int) -> None:
        self.entries = entries
        self.size_bytes = size_bytes
        self.is_taken = False
        self.offsets: list[int] = []
        self.error: TransportError | None = None
        self.future: Future[list[int]] = Future()
        self.future.set_running_or_notify_cancel()

    def complete(self) -> None:
        """Complete the future."""
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.offsets)


class GroupCommit:
    """Calls `write` with submissions, in order, one call at a time.

    write(submissions): makes them durable and sets the `offsets` of each, or its `error` if it alone cannot be
    written. An error that it raises is final: all waiting and later submissions fail with it.
    Threads: any may call every method. Futures complete in the thread that writes, without a lock.
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
        """Enqueue a submission for the background thread. Raises TransportError if it is refused."""
        with self._arrived:
            self._enqueue(submission)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="log-commit", daemon=True)
                self._thread.start()
            self._arrived.notify()

    def submit_here(self, submission: Submission) -> None:
        """Write a submission in this thread, after all that wait. Raises TransportError if it is refused.

        It is for small submissions: waking the background thread would take longer.
        """
        with self._arrived:
            self._enqueue(submission)
        while not submission.is_taken:
            self._commit()

    def append(self, submission: Submission) -> list[int]:
        """Write a submission in this thread, after all that wait. Returns its offsets, or raises its error."""
        self.submit_here(submission)
        return submission.future.result()

    @property
    def has_failed(self) -> bool:
        """Whether a write has failed. Every later submission is refused with its error."""
        return self._failure is not None

    def exclusive(self) -> threading.Lock:
        """Return the lock that is held during each write. Holding it keeps writes out."""
        return self._writing

    def close(self) -> None:
        """Refuse further submissions, and write those that wait."""
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
                submission.complete()

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
                self._set_failure(taken, failure)
        else:
            self._set_failure(taken, failure)

    def _set_failure(self, taken: list[Submission], failure: TransportError | None) -> None:
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
