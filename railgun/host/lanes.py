"""Lanes for what hosts do beside the thread that feeds them: opening, closing, copying, removing."""

from itertools import cycle

from reservoir.executor import Executor, Lane


class HostLanes:
    """Some lanes of an executor, shared by all hosts of a process: so many open or close at a time."""

    def __init__(self, executor: Executor, count: int) -> None:
        self._lanes = [executor.lane("hosts") for _ in range(count)]
        self._turns = cycle(self._lanes)

    def next(self) -> Lane:
        """The lane of the next host."""
        return next(self._turns)

    def close(self) -> None:
        """Let what was submitted come to its end."""
        for lane in self._lanes:
            lane.submit(_nothing).exception()
            lane.close()


def _nothing() -> None:
    """Behind all that was submitted before."""
