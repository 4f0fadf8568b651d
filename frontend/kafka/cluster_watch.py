"""Has a front-end note every few seconds what happens in its cluster, whether or not anybody looks at it."""

import logging
import threading
from collections.abc import Callable

from frontend.kafka.cluster_state import ClusterState
from railgun.messaging.errors import TransportClosedError, TransportError

_EVERY_S = 5.0
# Until reports from before the start are read.
_AT_FIRST_S = 0.1
_log = logging.getLogger("railgun.frontend")


class ClusterWatch:
    """Notes in a thread of its own, until it is closed.

    is_away: returns whether the broker is known not to answer. It is not asked then.
    """

    def __init__(self, state: ClusterState, is_away: Callable[[], bool]) -> None:
        self._state, self._is_away = state, is_away
        self._stopped = threading.Event()
        threading.Thread(target=self._run, name="lately", daemon=True).start()

    def close(self) -> None:
        """Note no more. A question to the broker that is under way goes on in its thread."""
        self._stopped.set()

    def _run(self) -> None:
        while not self._stopped.is_set():
            wait_s = _EVERY_S
            if not self._is_away():
                try:
                    wait_s = _EVERY_S if self._state.note() else _AT_FIRST_S
                except TransportClosedError:
                    return
                except TransportError as error:
                    # Who asks for the cluster is told, and others log it.
                    _log.debug("the cluster cannot be looked at: %s", error)
                except Exception:  # noqa: BLE001 - the next look may do
                    _log.exception("a defect: what happens in the cluster was not noted")
            self._stopped.wait(wait_s)
