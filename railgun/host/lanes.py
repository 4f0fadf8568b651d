"""Lanes (queues with one worker each) for long work of the hosts of a process: to open, close, copy and delete.

Engines and units make one `HostLanes`. One more lane is for small questions to the broker, which must not wait behind
long work.
"""

from itertools import cycle
from typing import Final

from reservoir.executor import Executor, Lane

QUESTION_S: Final = 2.0
"""The time limit of a question to the broker about one log. Others wait behind it, and one without an answer is asked
again.
"""


class HostLanes:
    """A fixed number of an executor's lanes, shared by all hosts of a process. It limits how many hosts open or close
    at a time.

    questions: the lane for questions to the broker.
    """

    def __init__(self, executor: Executor, count: int) -> None:
        self._lanes = [executor.lane("hosts") for _ in range(count)]
        self._turns = cycle(self._lanes)
        self.questions = executor.lane("questions")

    def next(self) -> Lane:
        """Return the lane of the next host, in turn."""
        return next(self._turns)

    def close(self) -> None:
        """Wait for all submitted work, and close the lanes."""
        for lane in (*self._lanes, self.questions):
            lane.submit(_nothing).exception()
            lane.close()


def _nothing() -> None:
    """Do nothing. This runs after all work that was submitted earlier."""
