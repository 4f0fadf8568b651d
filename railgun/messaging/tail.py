"""Follows partitions of a log: hands on the records that they have, and those that are appended later, in order.

All processes read the reports of units and nodes by it: in a thread, in rounds of their own, or once to the end.
"""

import logging
import threading
from collections.abc import Callable, Mapping

from railgun.messaging.errors import TransportClosedError, TransportError, UnreadableRecordError
from railgun.messaging.to_the_end import read_to_the_end
from railgun.messaging.transport import Fetched, TopicPartition, Transport

_RECORDS, _BYTES = 10_000, 4 << 20

Taker = Callable[[Fetched], object]
OnUnreadable = Callable[[TopicPartition, UnreadableRecordError], object]
"""Called with a record that cannot be read, which is left out. It may raise an exception instead."""


def each_record(take: Callable[[int, bytes], object], on_unreadable: OnUnreadable) -> Taker:
    """Return a function that hands on each record with its offset. Empty records, which delete, are left out.

    take: may raise UnreadableRecordError.
    """

    def take_all(fetched: Fetched) -> None:
        for offset, record in zip(fetched.offsets.tolist(), fetched.values(), strict=True):
            if not record:
                continue
            try:
                take(offset, record)
            except UnreadableRecordError as error:
                on_unreadable(fetched.where, error)

    return take_all


def leave_out(where: TopicPartition, error: UnreadableRecordError) -> None:
    """Leave out a record that cannot be read without logging it, because another process logs it."""


def logged(log: logging.Logger) -> OnUnreadable:
    """Return a function that logs that a record cannot be read."""
    return lambda where, error: log.warning("%s: %s", where, error)


class Tail:
    """Follows some partitions. One thread uses it, and each method raises TransportError.

    takers: the function that takes the records of each partition. If it raises an exception, the next call reads the
        same records again.
    from_end: begin behind the present records. Otherwise it begins with the first one.
    """

    def __init__(
        self, transport: Transport, takers: Mapping[TopicPartition, Taker], *, from_end: bool = False
    ) -> None:
        self._transport, self._takers, self._from_end = transport, takers, from_end
        self._offsets: dict[TopicPartition, int] = {}

    @property
    def offsets(self) -> Mapping[TopicPartition, int]:
        """The offset at which each partition is read on; empty before the first call of `begin`."""
        return self._offsets

    def begin(self) -> None:
        """Find the offsets to begin at. The methods that read call it too. Later calls do nothing."""
        if not self._offsets:
            begin = self._transport.end_offset if self._from_end else self._transport.start_offset
            self._offsets = {where: begin(*where) for where in self._takers}

    def look(self, wait_s: float) -> None:
        """Take new records. If there are none, wait for some. wait_s: how long."""
        self.begin()
        for fetched in self._transport.fetch(self._offsets, _RECORDS, _BYTES, wait_s):
            self._take(fetched)

    def read_to_the_end(self) -> None:
        """Take all records that there are now, one partition after the other."""
        self.begin()
        for where, offset in list(self._offsets.items()):
            for fetched in read_to_the_end(self._transport, where, offset):
                self._take(fetched)

    def has_reached(self, ends: Mapping[TopicPartition, int]) -> bool:
        """Whether all records before these offsets were taken."""
        return all(self._offsets[where] >= end for where, end in ends.items())

    def _take(self, fetched: Fetched) -> None:
        self._takers[fetched.where](fetched)
        self._offsets[fetched.where] = fetched.next_offset


class TailThread:
    """Calls a function that reads, repeatedly, in a thread of its own, from `start` to `close`.

    look: reads new records, waiting a moment for them. Raises TransportError.
    name: the name of the thread.
    on_error: is called with the error if nothing can be read for now.
    away_s: the pause after an error, in seconds.
    """

    def __init__(
        self,
        look: Callable[[], object],
        name: str,
        on_error: Callable[[TransportError], object],
        away_s: float,
    ) -> None:
        self._look, self._on_error, self._away_s = look, on_error, away_s
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def close(self) -> None:
        """End the thread. The transport stays open."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                self._look()
            except TransportClosedError:
                return
            except TransportError as error:
                self._on_error(error)
                self._stopped.wait(self._away_s)
