"""Reads the topics through which nodes hear of one another in a thread of its own, so that what they say is heard in
time whatever the unit does.
"""

import logging
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple, Self

from railgun.messaging.tail import Tail, TailThread
from railgun.messaging.transport import Fetched, TopicPartition, Transport
from railgun.unit.clock import CLOCK, Clock

# The thread looks at least this often. Whoever follows it notices a pause by that.
_LOOK_S = 0.05
_AWAY_S = 0.1

_log = logging.getLogger("railgun.unit")


class Heard(NamedTuple):
    """What was read at one look, which may be nothing. at_s: when, by the monotonic clock."""

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
        """Read what is new, waiting a moment for it. Only one thread may call this. Raises TransportError."""
        self._found = []
        try:
            self._tail.look(_LOOK_S)
        finally:
            # Looking without success is not hearing: the unit's own reports do not come back meanwhile.
            self._heard.append(Heard(self._clock.now(), self._found))

    def drain(self) -> list[Heard]:
        """Return what was read since the last call, in order. One thread calls this."""
        heard = []
        while self._heard:
            heard.append(self._heard.popleft())
        return heard

    def _take(self, fetched: Fetched) -> None:
        self._found.append(fetched)
