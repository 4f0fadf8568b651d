"""Reads the reports of units and the leader's plan in a thread of its own, for `UnitCopies`.

So they are read in time even while the unit's loop is busy.
"""

import logging
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple, Self

from railgun.messaging.tail import Tail, TailThread
from railgun.messaging.transport import Fetched, TopicPartition, Transport
from railgun.unit.clock import CLOCK, Clock

# The thread reads at least this often. A longer gap between two readings shows that the process was halted.
_LOOK_S = 0.05
# The pause after an error of reading, as when the broker is away.
_AWAY_S = 0.1

_log = logging.getLogger("railgun.unit")


class Heard(NamedTuple):
    """The records of one reading, which may be none. at_s: when they were read, by the monotonic clock."""

    at_s: float
    fetched: list[Fetched]


class ReportReader:
    """Reads topics from their beginning on, for as long as its `with` block runs.

    transport: used by nobody else, so that reports do not queue behind the logs of tasks.
    """

    def __init__(self, transport: Transport, where: Sequence[TopicPartition], clock: Clock = CLOCK) -> None:
        self._clock, self._found = clock, list[Fetched]()
        self._heard: deque[Heard] = deque()
        self._tail = Tail(transport, dict.fromkeys(where, self._take))
        self._thread = TailThread(
            self.look,
            "reports",
            lambda error: _log.warning("reports of other units cannot be read for now: %s", error),
            _AWAY_S,
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        """Stop reading. The transport stays open."""
        self._thread.close()

    def look(self) -> None:
        """Read new records, waiting a moment for them. Only one thread may call this. Raises TransportError."""
        self._found = []
        try:
            self._tail.look(_LOOK_S)
        finally:
            # A failed reading counts too, as an empty one: the unit notices that its own reports do not come back.
            self._heard.append(Heard(self._clock.now(), self._found))

    def drain(self) -> list[Heard]:
        """Return the readings since the last call, in order. One thread calls this."""
        heard = []
        while self._heard:
            heard.append(self._heard.popleft())
        return heard

    def _take(self, fetched: Fetched) -> None:
        self._found.append(fetched)
