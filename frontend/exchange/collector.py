"""The thread that reads a front-end's reply topic and finishes pending requests. `Exchange` has one."""

import logging
import threading
from collections import deque
from collections.abc import Sequence
from time import monotonic

from frontend.exchange.pending import OnAnswered, PendingRequest
from frontend.exchange.pending_table import PendingTable
from railgun.messaging.errors import (
    OffsetOutOfRangeError,
    TopicMissingError,
    TransportClosedError,
    TransportError,
    TransportIOError,
)
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.messaging.transport import Fetched, TopicPartition, TopicSettings
from railgun.wire.query_record import QueryRecordError, decode_refusal
from railgun.wire.reply import ReplyRecordError, decode_reply

REPLIES = TopicSettings(retention_ms=3_600_000)
_RECORDS, _BYTES = 1_000, 8 << 20
_WAIT_S = 0.05
_AWAY_S = 0.2

_log = logging.getLogger("railgun.frontend")


class Collector:
    """Reads replies that come after the constructor, which makes a missing topic, and starts the thread.

    failure: why it stopped by itself; None while it reads.
    """

    def __init__(self, transport: KafkaTransport, topic: str, waiting: PendingTable) -> None:
        self._transport, self._pending_table = transport, waiting
        self._where = TopicPartition(topic, 0)
        self.failure: str | None = None
        # The requests that `finish` has passed on. Most of them have failed.
        self._passed_on: deque[PendingRequest] = deque()
        transport.create_topic(topic, 1, REPLIES)
        self._position = transport.end_offset(topic, 0)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="replies", daemon=True)
        self._thread.start()

    def finish(self, pending: PendingRequest) -> None:
        """Pass on a request that needs no more replies to its callback. Any thread may call it."""
        self._passed_on.append(pending)

    def close(self) -> None:
        """Read no more, and wait for the thread to end."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                fetched = self._transport.fetch({self._where: self._position}, _RECORDS, _BYTES, _WAIT_S)
                finished = [pending for each in fetched for pending in self._gather(each)]
            except TransportClosedError:
                return
            except TransportError as error:
                finished = []
                self._mend(error)
            while self._passed_on:
                finished.append(self._passed_on.popleft())
            finished += self._pending_table.overdue(monotonic())
            _tell(finished)

    def _gather(self, fetched: Fetched) -> list[PendingRequest]:
        finished: list[PendingRequest] = []
        for record in fetched.values():
            try:
                refusal = decode_refusal(record)
                if refusal is not None:
                    finished += self._pending_table.refuse(refusal)
                    continue
                batch = decode_reply(record)
            except (ReplyRecordError, QueryRecordError) as error:
                self._pending_table.counts["unreadable"] += 1
                _log.warning("%s: %s", self._where, error)
                continue
            finished += self._pending_table.gather(batch)
        self._position = fetched.next_offset
        return finished

    def _mend(self, error: TransportError) -> None:
        """Recover from an error of reading, if that is possible, and pause; else stop for good with `failure`."""
        _log.warning("replies cannot be read for now: %s", error)
        try:
            if isinstance(error, TopicMissingError):
                self._transport.create_topic(self._where.topic, 1, REPLIES)
                self._position = self._transport.start_offset(*self._where)
            elif isinstance(error, OffsetOutOfRangeError):
                self._position = self._transport.start_offset(*self._where)
            elif not isinstance(error, TransportIOError):
                self.failure = str(error)
                self._stopped.set()
        except TransportClosedError:
            self._stopped.set()
        except TransportError as again:
            _log.warning("the reply topic cannot be had for now: %s", again)
        self._stopped.wait(_AWAY_S)


def _tell(finished: Sequence[PendingRequest]) -> None:
    """Call each callback once, with all of its requests."""
    by_callback: dict[OnAnswered, list[PendingRequest]] = {}
    for pending in finished:
        by_callback.setdefault(pending.on_answered, []).append(pending)
    for on_answered, own in by_callback.items():
        try:
            on_answered(own)
        except Exception:  # noqa: BLE001 - the others are told nevertheless
            _log.exception("a defect: answers were not passed on")
