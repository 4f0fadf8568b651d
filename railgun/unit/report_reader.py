"""Reads the topics through which nodes hear of one another in a thread of its own, so that what they say is heard in
time whatever the unit does.
"""

import logging
import threading
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple, Self

from railgun.messaging.errors import TransportClosedError, TransportError
from railgun.messaging.transport import Fetched, TopicPartition, Transport
from railgun.unit.clock import CLOCK, Clock

_RECORDS, _BYTES = 10_000, 4 << 20
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
        self._transport, self._where, self._clock = transport, where, clock
        self._heard: deque[Heard] = deque()
        self._positions: dict[TopicPartition, int] = {}
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reports", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        """Stop reading. The transport stays open."""
        self._stopped.set()
        self._thread.join()

    def look(self) -> None:
        """Read what is new, waiting a moment for it. Only one thread may call this. Raises TransportError."""
        found: list[Fetched] = []
        try:
            if not self._positions:
                self._positions = {where: self._transport.start_offset(*where) for where in self._where}
            found = self._transport.fetch(self._positions, _RECORDS, _BYTES, _LOOK_S)
            self._positions |= {fetched.where: fetched.next_offset for fetched in found}
        finally:
            # Looking without success is not hearing: the unit's own reports do not come back meanwhile.
            self._heard.append(Heard(self._clock.now(), found))

    def drain(self) -> list[Heard]:
        """Return what was read since the last call, in order. One thread calls this."""
        heard = []
        while self._heard:
            heard.append(self._heard.popleft())
        return heard

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                self.look()
            except TransportClosedError:
                return
            except TransportError as error:
                _log.warning("reports of other units cannot be read for now: %s", error)
                self._stopped.wait(_AWAY_S)
