"""A lane that keeps what is submitted until a test lets it run."""

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from reservoir.executor import run_job


class KeptLane:
    """See `Lane`. waiting: what was submitted and has not run."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Future[Any], Callable[[], Any]]] = []

    def submit(self, work: Callable[[], Any], *, at_leisure: bool = False) -> Any:
        job: Future[Any] = Future()
        self.waiting.append((job, work))
        return job

    def run(self) -> None:
        """Run all that waits."""
        waiting, self.waiting = self.waiting, []
        for job, work in waiting:
            run_job(job, work)
