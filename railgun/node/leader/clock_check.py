"""Compares the clock of this machine with the brokers'."""

import logging
from typing import Final

from railgun.cluster.records import NodeRecord
from railgun.wording import span_text

MOST_MS: Final = 300_000
"""Clocks that differ by more are warned of. A record may wait for its broker for a while, so small differences mean
nothing.
"""

_log = logging.getLogger("railgun.node")


class ClockCheck:
    """Warns once while the clock of this machine is wrong, or the brokers' is.

    ahead_ms: how far the clock of this machine is ahead of the brokers', at the last record; None before the first one.
    """

    def __init__(self) -> None:
        self.ahead_ms: int | None = None
        self._is_wrong = False

    def take(self, said: NodeRecord, appended_ms: int) -> None:
        """Take a record that this node has just written. appended_ms: when a broker appended it."""
        ahead_ms = self.ahead_ms = said.said_ms - appended_ms
        was_wrong, self._is_wrong = self._is_wrong, abs(ahead_ms) > MOST_MS
        if self._is_wrong and not was_wrong:
            _log.warning(
                "the clock of this machine is %s %s the broker's: set the one that is wrong; certificates, and the "
                "times of logs and of gaps, go by it",
                span_text(abs(ahead_ms)),
                "ahead of" if ahead_ms > 0 else "behind",
            )
