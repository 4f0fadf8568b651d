"""Bounds the time that a child process of a node takes to stop: first it gives up waiting, then it is ended.

All limits are shorter than the time that the node gives a process (`STOP_S`). So the process ends by itself and can log
what was left.
"""

import logging
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

STOP_S = 60.0
"""A process that has not ended this long after it was asked to stop, or has said that it stops, is killed. Nothing is
lost, as its log has everything."""

_log = logging.getLogger("railgun.unit")


@dataclass(frozen=True, slots=True)
class Deadlines:
    """How long a unit that was asked to stop waits, in seconds.

    acknowledged_s: until replies that are on their way to the broker are given up.
    closed_s: until records on their way to a lost broker are given up.
    over_s: until the process is ended, whatever it still waits for.
    """

    acknowledged_s: float = 20.0
    closed_s: float = 2.0
    over_s: float = 50.0


DEADLINES = Deadlines()
"""The deadlines in use. Tests pass shorter ones."""


class Ending:
    """A watchdog: ends the process if its `with` block still runs some time after the process was asked to stop.

    A call to a broker that is away can take longer than a unit has. Ending the process is no worse than killing it,
    as the next start continues from the last checkpoints.

    name: what the process is called in the log.
    """

    def __init__(
        self,
        stopped: threading.Event,
        name: str,
        within_s: float = DEADLINES.over_s,
        leave: Callable[[int], object] = os._exit,
    ) -> None:
        self._stopped, self._name, self._within_s, self._leave = stopped, name, within_s, leave
        self._over = threading.Event()
        threading.Thread(target=self._watch, name="ending", daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.over()

    def over(self) -> None:
        """Note that the process ends by itself, so that it is not ended."""
        self._over.set()

    def _watch(self) -> None:
        self._stopped.wait()
        if self._over.wait(self._within_s):
            return
        _log.error(
            "%s ends as it is, %g s after it was asked to: something, most likely the broker, does not answer. "
            "The next start goes on from the last checkpoints; nothing is lost",
            self._name,
            self._within_s,
        )
        for handler in logging.getLogger().handlers:
            handler.flush()
        self._leave(1)
