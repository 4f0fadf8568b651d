"""Two ways to the broker: a few records go at once, more wait for what is under way and then go together.

librdkafka's idempotent producer sends no more of a partition while five of its records are under way. Until they have
arrived its thread turns in circles over what waits, which takes a core from whoever is to answer. So it gets no more
than it sends.
"""

import contextlib
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from railgun.messaging.kafka.handing import hand_over
from railgun.messaging.kafka.parts import TOGETHER_BYTES
from railgun.messaging.kafka.settings import LINGERING
from railgun.messaging.kafka.submission import Delivery
from railgun.messaging.transport import Entry, TopicPartition
from railgun.wire.encode import Records

AT_ONCE = 5
_LIMITS: dict[str, Any] = {"batch.size": 16 << 20, "batch.num.messages": 100_000}
# One broker that does not answer keeps what goes to others waiting for no longer than this.
_FLUSH_S = 0.05
_POLL_S = 0.1
_JOIN_S = 2.0
_log = logging.getLogger("railgun.kafka")


@dataclass(slots=True)
class _Way:
    """To one partition. records: under way, together where `is_together`.  waiting: what is not under way yet."""

    records: int = 0
    is_together: bool = False
    waiting: deque[tuple[Entry, Delivery]] = field(default_factory=deque)


class KafkaLanes:
    """make: a producer, with settings and the defaults of settings.  Any thread may send. Reports come in threads of
    its own; whoever gets the last one of a delivery calls `landed`.
    """

    def __init__(self, make: Callable[[Mapping[str, Any], Mapping[str, Any]], Producer]) -> None:
        self._make = make
        self._single = make({}, {})
        self._together: Producer | None = None
        self._changed = threading.Condition()
        self._ways: dict[TopicPartition, _Way] = {}
        self._due: set[TopicPartition] = set()
        self._ended = False
        self._threads = [threading.Thread(target=self._take_reports, name="kafka-delivery", daemon=True)]
        self._threads[0].start()

    def send(self, entry: Entry, delivery: Delivery) -> None:
        """Records of one partition go in the order of these calls. Of a submission that failed before they went none
        do: they would be in the log without those before them."""
        where = entry.where
        with self._changed:
            if len(self._threads) == 1:
                self._threads.append(threading.Thread(target=self._send, name="kafka-together", daemon=True))
                self._threads[1].start()
            way = self._ways.setdefault(where, _Way())
            is_full = way.is_together or way.records + delivery.records > AT_ONCE
            if way.waiting or is_full or delivery.submission.error is not None:
                way.waiting.append((entry, delivery))
                if not way.records:
                    self._have_sent(where)
            else:
                way.records += delivery.records
                _hand_over(self._single, entry, delivery)

    def landed(self, delivery: Delivery) -> None:
        """All records of an entry have arrived, or failed."""
        where = delivery.where
        with self._changed:
            way = self._ways[where]
            way.records -= delivery.records
            if way.records:
                return
            way.is_together = False
            if way.waiting:
                self._have_sent(where)
            else:
                del self._ways[where]
                if self._ended:
                    self._changed.notify_all()

    @property
    def unconfirmed(self) -> int:
        """The records of which it is not known whether the broker has them: on their way, or waiting."""
        with self._changed:
            return sum(
                way.records + sum(delivery.records for _, delivery in way.waiting)
                for way in self._ways.values()
            )

    def close(self, timeout_s: float) -> None:
        """Send what waits, or give up after a time: deliveries are told so. A thread that does not come back from
        librdkafka is left to it."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            self._ended = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._ways, timeout_s)
            given_up = self.unconfirmed
            for way in list(self._ways.values()):
                self._refuse(way, KafkaError(KafkaError._PURGE_QUEUE))
            self._due.clear()
        for producer in self._producers():
            producer.purge()
        with self._changed:
            self._changed.wait_for(lambda: not self._ways, max(_POLL_S, deadline - time.monotonic()))
        if given_up:
            _log.warning("%d records were given up: the broker did not confirm that it has them", given_up)
        for thread in self._threads:
            thread.join(_JOIN_S)
        if not any(thread.is_alive() for thread in self._threads):
            for producer in self._producers():
                producer.close()

    def _producers(self) -> list[Producer]:
        return [each for each in (self._single, self._together) if each is not None]

    def _have_sent(self, where: TopicPartition) -> None:
        """By the thread that sends together; the caller holds `_changed`."""
        self._due.add(where)
        self._changed.notify_all()

    def _send(self) -> None:
        # With the first record, not with the first that have to wait: it takes half a second until a producer that is
        # new may send, and all that waits would wait for that.
        with contextlib.suppress(Exception):
            self._together = self._make(LINGERING, _LIMITS)
        while True:
            with self._changed:
                producer = self._together
                if producer is None or not len(producer):
                    self._changed.wait_for(lambda: self._due or (self._ended and not self._ways))
                    if not self._due:
                        return
                due, self._due = self._due, set()
                producer = self._made_together(due)
                if producer is None:
                    continue
                dropped = [
                    delivery
                    for where in due
                    for delivery in self._hand_over_together(producer, self._ways[where])
                ]
            # Without the lock: whoever is told may send.
            for delivery in dropped:
                delivery.drop()
            producer.flush(_FLUSH_S)

    def _made_together(self, due: set[TopicPartition]) -> Producer | None:
        """The producer; where it cannot be made, whoever waits is told why, and the next ones try again."""
        if self._together is None:
            try:
                self._together = self._make(LINGERING, _LIMITS)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is what they have to know
                cause = KafkaError(KafkaError._FAIL, str(error))
                for where in due:
                    self._refuse(self._ways[where], cause)
                self._due = {
                    where for where in self._due if where in self._ways and self._ways[where].waiting
                }
        return self._together

    def _refuse(self, way: _Way, cause: KafkaError) -> None:
        """What waits is told why it is not sent."""
        while way.waiting:
            _, delivery = way.waiting.popleft()
            way.records += delivery.records
            delivery.not_sent(delivery.records, cause)

    def _hand_over_together(self, producer: Producer, way: _Way) -> list[Delivery]:
        """What is not sent, since its submission has failed: the caller drops it. It is under way until then."""
        taken: list[tuple[Entry, Delivery]] = []
        dropped: list[Delivery] = []
        size_bytes = 0
        # One request for all of it: what waits for a second one is what keeps a core busy.
        while way.waiting:
            entry, delivery = way.waiting[0]
            if delivery.submission.error is not None:
                dropped.append(delivery)
            elif not taken or size_bytes + delivery.held_bytes <= TOGETHER_BYTES:
                taken.append((entry, delivery))
                size_bytes += delivery.held_bytes
            else:
                break
            way.waiting.popleft()
        way.is_together = True
        way.records = sum(each.records for each in dropped) + sum(each.records for _, each in taken)
        for entry, delivery in taken:
            _hand_over(producer, entry, delivery)
        return dropped

    def _take_reports(self) -> None:
        while not self._ended or self._ways:
            self._single.poll(_POLL_S)


def _hand_over(producer: Producer, entry: Entry, delivery: Delivery) -> None:
    topic, partition = entry.where
    records = entry.records.to_list() if isinstance(entry.records, Records) else entry.records
    if entry.headers is None:
        refused = hand_over(producer, topic, records, entry.keys, partition, delivery)
        if refused:
            delivery.not_sent(len(refused), refused[0])
        return
    taken = 0
    keys = entry.keys or [None] * len(records)
    try:
        for record, key, headers in zip(records, keys, entry.headers):
            producer.produce(topic, record, key, partition, delivery, headers=list(headers))
            taken += 1
    except BufferError:
        delivery.not_sent(len(records) - taken, KafkaError(KafkaError._QUEUE_FULL))
    except KafkaException as error:
        delivery.not_sent(len(records) - taken, error.args[0])
