"""The end of a unit that was asked to stop: by when it gives up waiting, and by when it is over whatever holds it up.

Both lie within the time that the node gives it (`supervisor.STOP_S`): it ends by itself and says what was left.
"""

import logging
import os
import threading
from collections.abc import Callable

ACKNOWLEDGED_WITHIN_S = 20.0
"""For replies that are on their way to the broker."""
OVER_WITHIN_S = 50.0
CLOSED_WITHIN_S = 2.0
"""For what is still on its way to a broker that was given up."""

_log = logging.getLogger("railgun.unit")


class Ending:
    """Ends the process where it is not `over` so long after it was asked to stop: a call to a broker that is away can
    take longer than there is. That is no worse than being killed: the next start goes on from the last checkpoints."""

    def __init__(
        self,
        stopped: threading.Event,
        unit: int,
        within_s: float = OVER_WITHIN_S,
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
