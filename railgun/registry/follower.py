"""Tells listeners of every change of the catalogue, when it begins and when it is done, in a thread of its own."""

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
    """The catalogue at one moment. Not to be changed.

    catalog: what is done: all tasks were told.  keys: the streams' 16 secret bytes, by name.  pending: what began
    and is not done.  begun: with that too, which some tasks may have been told of.
    """

    catalog: Catalog
    keys: Mapping[str, bytes]
    pending: tuple[Change, ...]
    begun: Catalog


_WAIT_S = 0.25
_AWAY_S = 0.5
# Removing what is due is looked at so often, by each follower at its own times: the first one does it for all.
_SWEEP_S = 1.0

_log = logging.getLogger("railgun.registry")


class Follower:
    """error: why it follows no more; None while it does."""

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
        """Follow no more, without waiting: the callback may be called once more."""
        self._stopped.set()

    def close(self) -> None:
        """Return once the callback is not called any more."""
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
