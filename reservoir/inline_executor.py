"""An executor without threads, for tests and simulators: the same calls run the same work in the same order.

Its lanes are queues of work. Nothing runs by itself: a job runs when the caller waits for it, or calls `run_next`.
"""

from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import TypeVar

from reservoir.executor import Job, Queued, cancel_all, run_job

T = TypeVar("T")


def _first(_: int) -> int:
    return 0


class InlineExecutor:
    """Runs work when `run_next` is called, and while somebody waits. One thread uses it.

    choose(n): returns a number below n. It picks the next lane among n that have work. With a seeded source of random
    numbers, each seed gives one order of the work, again and again.
    """

    def __init__(self, choose: Callable[[int], int] = _first) -> None:
        self._choose = choose
        self._lanes: list[InlineLane] = []

    def lane(self, name: str) -> "InlineLane":
        """Make a lane, as `Executor` says."""
        lane = InlineLane(name, self)
        self._lanes.append(lane)
        return lane

    def wait(self, jobs: Iterable[Job[object]], timeout_s: float) -> None:
        """Run work until all these jobs have ended. No time passes."""
        for job in jobs:
            self.run_until(job)

    def run_next(self) -> bool:
        """Run one job. False if there is none, except in lanes that are already running a job."""
        ready = [lane for lane in self._lanes if lane.is_ready]
        if not ready:
            return False
        ready[self._choose(len(ready))].run_next()
        return True

    def run_until(self, job: Job[object], lane: "InlineLane | None" = None) -> None:
        """Run work until a job has ended. Raises RuntimeError if a job waits for itself.

        lane: the lane of the job, if it is known. A job that waits runs this lane alone, because another lane's work
            might close the lane of the job that waits.
        """
        while not job.done():
            if lane is not None and lane.is_ready and any(each.is_running for each in self._lanes):
                lane.run_next()
            elif not self.run_next():
                running = ", ".join(lane.name for lane in self._lanes if lane.is_running)
                raise RuntimeError(
                    f"what is waited for cannot run: jobs of these lanes wait for it: {running}"
                )

    def forget(self, lane: "InlineLane") -> None:
        """Remove a closed lane."""
        if lane in self._lanes:
            self._lanes.remove(lane)


class InlineLane:
    """A queue of work without a thread. It is a `Lane`."""

    def __init__(self, name: str, executor: InlineExecutor) -> None:
        self.name = name
        self.is_running = False
        self._executor = executor
        self._queue: deque[Queued] = deque()
        self._leisurely: deque[Queued] = deque()
        self._is_closed = False

    @property
    def is_ready(self) -> bool:
        """Whether it has work that can begin."""
        return not self.is_running and bool(self._queue or self._leisurely)

    def submit(self, work: Callable[[], T], *, at_leisure: bool = False) -> "InlineJob[T]":
        """Queue work, as `Lane` says. Raises RuntimeError for a closed lane."""
        if self._is_closed:
            raise RuntimeError(f"the lane {self.name} is closed")
        job: InlineJob[T] = InlineJob(self._executor, self)
        (self._leisurely if at_leisure else self._queue).append((job, work))
        return job

    def run_next(self) -> None:
        """Run the next job."""
        job, work = (self._queue or self._leisurely).popleft()
        self.is_running = True
        try:
            run_job(job, work)
        finally:
            self.is_running = False

    def close(self) -> None:
        """Cancel the jobs that have not begun. Nothing can be submitted afterwards."""
        assert not self.is_running, "a lane cannot be closed from within its own work"
        self._is_closed = True
        self._executor.forget(self)
        cancel_all(self._queue)
        cancel_all(self._leisurely)


class InlineJob(Future[T]):
    """A job. Waiting for it runs work until it has ended."""

    def __init__(self, executor: InlineExecutor, lane: InlineLane) -> None:
        super().__init__()
        self._executor, self._lane = executor, lane

    def result(self, timeout: float | None = None) -> T:
        """Run work until the job has ended, and return or raise its result."""
        self._executor.run_until(self, self._lane)
        return super().result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Run work until the job has ended, and return what it raised."""
        self._executor.run_until(self, self._lane)
        return super().exception(timeout)
