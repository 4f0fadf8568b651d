"""The executor of a process, for work beside a task's own thread: each lane (queue of work) has a thread of its own."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent import futures
from concurrent.futures import Future
from typing import TypeVar, cast

from reservoir.executor import Job, Queued, cancel_all, run_job

T = TypeVar("T")

# After work at leisure (work that may wait for other work) a lane rests, for this multiple of the time of that work.
_REST_SHARE = 3.0
# A rest takes at most this long.
_REST_MOST_S = 0.01
# If many jobs wait, all rests together take about this long, so that no caller gives up waiting for the last job.
_REST_ALL_S = 0.2


class ThreadExecutor:
    """Makes lanes with threads. It is an `Executor`."""

    def lane(self, name: str) -> "ThreadLane":
        """Return a lane whose thread has this name."""
        return ThreadLane(name)

    def wait(self, jobs: Iterable[Job[object]], timeout_s: float) -> None:
        """Wait until these jobs have ended, for so long at most."""
        futures.wait(cast("Iterable[Future[object]]", jobs), timeout_s)


class ThreadLane:
    """A queue of work with a thread. It is a `Lane`.

    The thread starts at once, so a process that can have no more threads fails before events come.
    """

    def __init__(self, name: str) -> None:
        self._changed = threading.Condition()
        self._queue: deque[Queued] = deque()
        self._leisurely: deque[Queued] = deque()
        self._is_closing = False
        self._rest_until_s = 0.0
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, work: Callable[[], T], *, at_leisure: bool = False) -> Future[T]:
        """Queue work, as `Lane` says. Raises RuntimeError for a closed lane."""
        job: Future[T] = Future()
        with self._changed:
            if self._is_closing:
                raise RuntimeError(f"the lane {self._thread.name} is closed")
            (self._leisurely if at_leisure else self._queue).append((job, work))
            self._changed.notify()
        return job

    def close(self) -> None:
        """Wait for the job that runs, and cancel those that have not begun. Nothing can be submitted afterwards."""
        with self._changed:
            self._is_closing = True
            self._changed.notify()
        self._thread.join()
        cancel_all(self._queue)
        cancel_all(self._leisurely)

    def _run(self) -> None:
        while self._run_next():
            pass

    def _run_next(self) -> bool:
        """Wait for the next job and run it. False if the lane closes. No variable holds the job afterwards."""
        with self._changed:
            rest_s = self._rest_until_s - time.monotonic()
            if rest_s > 0:
                self._changed.wait_for(lambda: self._queue or self._is_closing, rest_s)
            self._changed.wait_for(lambda: self._queue or self._leisurely or self._is_closing)
            if self._is_closing:
                return False
            is_leisurely = not self._queue
            job, work = (self._queue or self._leisurely).popleft()
        started_s = time.monotonic()
        run_job(job, work)
        if is_leisurely:
            now_s, most_s = time.monotonic(), min(_REST_MOST_S, _REST_ALL_S / (1 + len(self._leisurely)))
            self._rest_until_s = now_s + min(_REST_SHARE * (now_s - started_s), most_s)
        return True
