"""The end of a unit that was asked to stop: by when it gives up waiting, and by when it is over whatever holds it up.

Both lie within the time that the node gives it (`supervisor.STOP_S`): it ends by itself and says what was left.
"""

import logging
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass

_log = logging.getLogger("railgun.unit")


@dataclass(frozen=True, slots=True)
class Deadlines:
    """How long a unit that was asked to stop waits, in seconds.

    acknowledged_s: for replies that are on their way to the broker.  closed_s: for what is still on its way to a
    broker that was given up.  over_s: until the process is ended, whatever holds it up.
    """

    acknowledged_s: float = 20.0
    closed_s: float = 2.0
    over_s: float = 50.0


DEADLINES = Deadlines()
"""The ones in use; tests hand in shorter ones."""


class Ending:
    """Ends the process where it is not `over` so long after it was asked to stop: a call to a broker that is away can
    take longer than there is. That is no worse than being killed: the next start goes on from the last checkpoints."""

    def __init__(
        self,
        stopped: threading.Event,
        unit: int,
        within_s: float = DEADLINES.over_s,
        leave: Callable[[int], object] = os._exit,
    ) -> None:
        self._stopped, self._unit, self._within_s, self._leave = stopped, unit, within_s, leave
        self._over = threading.Event()
        threading.Thread(target=self._watch, name="ending", daemon=True).start()

    def over(self) -> None:
        """It has come to its end."""
        self._over.set()

    def _watch(self) -> None:
        self._stopped.wait()
        if self._over.wait(self._within_s):
            return
        _log.error(
            "unit %d ends as it is, %g s after it was asked to: something, most likely the broker, does not answer. "
            "The next start goes on from the last checkpoints; nothing is lost",
            self._unit,
            self._within_s,
        )
        for handler in logging.getLogger().handlers:
            handler.flush()
        self._leave(1)
