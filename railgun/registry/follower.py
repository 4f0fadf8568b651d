"""Tells listeners of every change of the catalogue, when it begins and when it is done, in a thread of its own.

`KafkaRegistry.follow` makes one for a unit, a front-end or a leader. The thread reads the catalogue's topic.
"""

import logging
import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from railgun.catalog.catalog import Catalog
from railgun.catalog.changes import Change
from railgun.messaging.errors import TransportClosedError, TransportError, TransportIOError
from railgun.registry.errors import RegistryError


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The catalogue at one moment. It must not be changed.

    catalog: the catalogue with the changes that are done: all tasks were told of them.
    keys: the 16 secret bytes of each stream, by name.
    pending: the changes that began and are not done.
    begun: the catalogue with the pending changes too. Some tasks may have been told of them.
    """

    catalog: Catalog
    keys: Mapping[str, bytes]
    pending: tuple[Change, ...]
    begun: Catalog


_WAIT_S = 0.25
_AWAY_S = 0.5
# Each follower looks this often for topics that are due to be deleted. The first one that sees them deletes them.
_SWEEP_S = 1.0

_log = logging.getLogger("railgun.registry")


class Follower:
    """Calls back, in a thread of its own, after each change of the catalogue. `KafkaRegistry.follow` makes it.

    error: why it stopped following; None while it follows.
    """

    def __init__(
        self,
        wait: Callable[[float], bool],
        snapshot: Callable[[], Snapshot],
        callback: Callable[[Snapshot], None],
        sweep: Callable[[], None],
    ) -> None:
        self._wait, self._snapshot, self._callback, self._sweep = wait, snapshot, callback, sweep
        self.error: Exception | None = None
        self._stopped = threading.Event()
        self._places = (-1, -1)
        self._tell()
        self._thread = threading.Thread(target=self._follow, name="catalogue", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop following, without waiting. The callback may be called once more."""
        self._stopped.set()

    def close(self) -> None:
        """Stop following, and return when the callback is not running any more."""
        self.stop()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _tell(self) -> None:
        snapshot = self._snapshot()
        places = snapshot.catalog.last_place, snapshot.begun.last_place
        if places != self._places:
            self._places = places
            self._callback(snapshot)

    def _follow(self) -> None:
        sweep_at = time.monotonic() + _SWEEP_S
        while not self._stopped.is_set():
            try:
                self._wait(_WAIT_S)
                self._tell()
                if time.monotonic() >= sweep_at:
                    self._sweep()
                    sweep_at = time.monotonic() + _SWEEP_S * (1 + random.random())
            except TransportClosedError:
                return
            except TransportIOError as error:
                _log.warning("the catalogue cannot be followed for now: %s", error)
                self._stopped.wait(_AWAY_S)
            except (TransportError, RegistryError) as error:
                _log.error("the catalogue is followed no more: %s", error)
                self.error = error
                return
