"""How the tasks of a stream stand that is deepened, as the topic of positions tells it."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from railgun.messaging.transport import TopicPartition, Transport
from railgun.spark.errors import HistoryError

_ASK_S = 0.1
_READ_RECORDS, _READ_BYTES = 1_000, 1 << 20

StreamKey = tuple[str, int]


class TaskStandings:
    """positions: the topic.  stream: with the place of its first definition.  history, offer: which deepening, and
    which offer of it, failures are to be of.

    What was said before this was made does not count: units say everything again every few seconds.
    """

    def __init__(
        self, transport: Transport, positions: str, stream: StreamKey, history: str, offer: str = ""
    ) -> None:
        self._transport, self._where = transport, TopicPartition(positions, 0)
        self._stream, self._history, self._offer = stream, history, offer
        self._next = transport.end_offset(*self._where)
        self._standing: dict[tuple[str, int], dict[str, Any]] = {}
        self._failures: dict[tuple[str, int], str] = {}

    def wait(self, tasks: Sequence[tuple[str, int]], is_so: Callable[[dict[str, Any]], bool]) -> None:
        """Until something is so of all of them. Raises HistoryError for one that says why it cannot be."""
        while True:
            self.check()
            if all(is_so(self._standing.get(task, {})) for task in tasks):
                return
            time.sleep(_ASK_S)

    def check(self) -> None:
        """Read to the end: what was wrong may be mended since.

        Raises HistoryError where a task says that it cannot be deepened.
        """
        while self._read():
            pass
        for (name, at), failure in self._failures.items():
            raise HistoryError(f"{self._stream[0]}/{name}/{at} cannot be deepened: {failure}")

    def _read(self) -> bool:
        if self._transport.end_offset(*self._where) <= self._next:
            return False
        fetched = self._transport.read(*self._where, self._next, _READ_RECORDS, _READ_BYTES)
        for value in fetched.values():
            standing = msgspec.json.decode(value)
            if (standing["stream"], standing["created"]) == self._stream:
                self._take(standing)
        self._next = fetched.next_offset
        return True

    def _take(self, standing: dict[str, Any]) -> None:
        task = standing["partitioner"], standing["partition"]
        self._standing[task] = standing
        failure = self._failure(standing)
        if failure:
            self._failures[task] = failure
        else:
            self._failures.pop(task, None)

    def _failure(self, standing: dict[str, Any]) -> str:
        following = standing.get("following") or {}
        of = following.get("history"), following.get("offer", "")
        if of == (self._history, self._offer) and following.get("failure"):
            return str(following["failure"])
        state = str(standing.get("state", ""))
        return state if state.startswith("failed") else ""
