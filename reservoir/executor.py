"""The interface for work that runs beside a task's own thread: in other threads, or in an order that a test chooses."""

from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any, Protocol, TypeAlias, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Job(Protocol[T_co]):
    """Submitted work. A `concurrent.futures.Future` is one."""

    def done(self) -> bool:
        """Whether it has ended: it returned, raised or was cancelled. Does not wait."""

    def cancel(self) -> bool:
        """Cancel it. False if it has begun, or ended."""

    def cancelled(self) -> bool:
        """Whether it was cancelled before it began."""

    def result(self) -> T_co:
        """Wait until it has ended; return what the work returned.

        Raises what the work raised, and CancelledError for cancelled work.
        """

    def exception(self) -> BaseException | None:
        """Wait until it has ended; return what the work raised. Raises CancelledError for cancelled work."""


class Lane(Protocol):
    """A queue of work. One job runs at a time, in the order submitted."""

    def submit(self, work: Callable[[], T], *, at_leisure: bool = False) -> Job[T]:
        """Queue work. From any thread.

        What the work raises comes out of the job and goes nowhere else.
        at_leisure: the work runs behind all work that is not at leisure. A lane with a thread rests after it, so that
        threads that answer events find a processor free.
        """

    def close(self) -> None:
        """Wait for the job that runs, and cancel those that have not begun. Nothing can be submitted afterwards.

        A second call changes nothing.
        """


class Executor(Protocol):
    """Makes lanes. A job that blocks delays its own lane and no other.

    An executor may have no thread but the caller's: it then runs work when somebody waits for it. Three rules follow.
    Code waits for a job through the job or the executor, never through an event or a condition that the work would set.
    Code holds no lock while it waits. A job waits for jobs of other lanes only, and lanes do not wait in a circle.
    """

    def lane(self, name: str) -> Lane:
        """A new lane. Several may have one name. Whoever asked for a lane closes it."""

    def wait(self, jobs: Iterable[Job[object]], timeout_s: float) -> None:
        """Wait until jobs of this executor have ended, for so long at most. Raises nothing of what they raised."""


Queued: TypeAlias = tuple[Future[Any], Callable[[], Any]]


def cancel_all(queue: deque[Queued]) -> None:
    """Cancel the jobs of a queue that have not begun. For executors."""
    while queue:
        job, _ = queue.popleft()
        job.cancel()
        job.set_running_or_notify_cancel()


def run_job(job: Future[T], work: Callable[[], T]) -> None:
    """Run work that has not begun, unless its job was cancelled. For executors."""
    if not job.set_running_or_notify_cancel():
        return
    try:
        job.set_result(work())
    except BaseException as error:  # noqa: BLE001 - raised where the result is used
        job.set_exception(error)
