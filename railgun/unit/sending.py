"""Sends what a unit writes: reply records go to front-ends, and records that cannot be read to the stream's
dead-letter topic.
"""

import contextlib
import logging
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from time import perf_counter

from railgun.messaging.errors import TopicExistsError, TopicMissingError, TransportFullError
from railgun.messaging.transport import Entry, TopicPartition, Transport
from railgun.registry.topics import Topics
from railgun.telemetry.recording import Buckets
from railgun.unit.clock import CLOCK, Clock
from railgun.unit.figures import UnitFigures
from railgun.unit.outstanding import Outstanding
from railgun.wire.records import Records

_FULL_S = 0.002
# After this time the unit tries again to send to a front-end whose topic was missing.
_ABSENT_S = 5.0

_log = logging.getLogger("railgun.unit")


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record that could not be read: its offset, its bytes and the reason."""

    offset: int
    record: bytes
    reason: str


class Sending:
    """Sends records through the unit's producer. Back-pressure: if the transport is full, a call blocks until there is
    room.

    Raises TransportError.
    """

    def __init__(self, transport: Transport, topics: Topics, clock: Clock = CLOCK) -> None:
        self._transport, self._topics, self._clock = transport, topics, clock
        self._absent_until: dict[int, float] = {}
        self.figures = UnitFigures()

    def answer(
        self, outstanding: Outstanding, stream: str, first: int, records: Sequence[tuple[int, bytes]]
    ) -> None:
        """Send reply records.

        first: the log offset of the first event that these replies answer.
        records: pairs of (front-end, reply record).
        """
        acknowledged = self.figures.stream(stream).stages["reply"]
        for front_end, record in records:
            if self._absent_until and self._is_absent(front_end):
                self.figures.dropped += 1
                continue
            started_s = perf_counter()
            try:
                where = TopicPartition(self._topics.replies(front_end), 0)
                sent = self._submit(outstanding, first, Entry(where, Records.of([record])))
                sent.add_done_callback(partial(_note, acknowledged, started_s))
                self.figures.replies += 1
            except TopicMissingError:
                self.figures.dropped += 1
                self._absent_until[front_end] = self._clock.now() + _ABSENT_S

    def dead_letter(
        self, outstanding: Outstanding, stream: str, where: TopicPartition, letters: Sequence[DeadLetter]
    ) -> None:
        """Write records that could not be read to the dead-letter topic. Headers tell where each was,
        and the reason.
        """
        topic = self._topics.dead(stream)
        if topic not in self._transport.topics():
            # A front-end may just have created it with more partitions. Any of them can take the records.
            with contextlib.suppress(TopicExistsError):
                self._transport.create_topic(topic, 1)
        headers = [
            [
                ("reason", letter.reason.encode()),
                ("topic", where.topic.encode()),
                ("partition", b"%d" % where.partition),
                ("offset", b"%d" % letter.offset),
            ]
            for letter in letters
        ]
        _log.warning(
            "%s: %d records from offset %d on cannot be read (%s)",
            where,
            len(letters),
            letters[0].offset,
            letters[0].reason,
        )
        records = Records.of([letter.record for letter in letters])
        self._submit(outstanding, letters[0].offset, Entry(TopicPartition(topic, 0), records, None, headers))

    def _submit(self, outstanding: Outstanding, first: int, entry: Entry) -> Future[list[int]]:
        while True:
            try:
                sent = self._transport.submit([entry])
                outstanding.add(first, sent)
                return sent
            except TransportFullError:
                self._clock.sleep(_FULL_S)

    def _is_absent(self, front_end: int) -> bool:
        until = self._absent_until.get(front_end, 0.0)
        if until and self._clock.now() > until:
            del self._absent_until[front_end]
            return False
        return until > 0


def _note(stage: Buckets, started_s: float, sent: Future[list[int]]) -> None:
    """Count the time until an acknowledgement. Runs in the producer's thread."""
    if sent.exception() is None:
        stage.add(perf_counter() - started_s)
