"""Sends a unit's replies to front-ends, and records that cannot be read to the stream's dead-letter topic.

The tasks' sinks (hosting.py) and the query server hand them over. The unit's loop calls `look` and asks for room.
"""

import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter

from railgun.messaging.transport import Entry, TopicPartition, Transport
from railgun.registry.topics import Topics
from railgun.telemetry.recording import Buckets
from railgun.unit.clock import CLOCK, Clock
from railgun.unit.dead_letters import DeadLetters
from railgun.unit.figures import UnitFigures
from railgun.unit.held_replies import HeldReplies
from railgun.unit.outstanding import Outstanding
from railgun.unit.reply_partitions import ReplyPartitions, Sent
from railgun.wire.records import Records
from railgun.wording import counted

# Far less than a transport takes, which also counts the memory of each record. So the replies of one round have room.
_ROOM_BYTES = 16 << 20

_log = logging.getLogger("railgun.unit")


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record that could not be read: its offset, its bytes and the reason."""

    offset: int
    record: bytes
    reason: str


class Sending:
    """Sends records through the unit's producer.

    Back-pressure: replies that the transport has no room for are held. Dead letters wait in a thread of their own, and
    count as unacknowledged from the start. Four questions look alike:

    - `has_room_for`: before a task that answers processes a batch. What a slow partition has not taken stops only the
      tasks that have sent it replies.
    - `has_room_beside_slow`: before value queries are answered. A slow partition does not stop them.
    - `has_room`: whether anything at all has to wait.
    - `drops_replies`: whether replies are lost at present, which other copies might bring to their front-ends.

    held: the replies that wait for the topics of their front-ends.
    Raises TransportError.
    """

    def __init__(self, transport: Transport, topics: Topics, clock: Clock = CLOCK) -> None:
        self._transport, self._topics = transport, topics
        self._dead_letters = DeadLetters(transport, clock)
        self._partitions = ReplyPartitions(self._submit, self._gone, clock)
        self.held = HeldReplies(self._send, self._gone, clock)
        self.figures = UnitFigures()
        self._lock = threading.Lock()
        self._unacknowledged_bytes = 0

    @property
    def has_room(self) -> bool:
        """Whether so little is unacknowledged that the replies to another batch need not wait for room."""
        return self._unacknowledged_bytes < _ROOM_BYTES and not self.held.is_full

    @property
    def has_room_beside_slow(self) -> bool:
        """Whether so little is unacknowledged, but for what slow partitions have not taken, that more may be sent."""
        others_bytes = self._unacknowledged_bytes - self._partitions.slow_bytes
        return others_bytes < _ROOM_BYTES and not self.held.is_full

    @property
    def drops_replies(self) -> bool:
        """Whether replies to some partition are dropped at present."""
        return self._partitions.drops_replies

    def has_room_for(self, outstanding: Outstanding) -> bool:
        """Whether the replies of a task to another batch need not wait for room.

        outstanding: its replies. If a partition is slow to take replies, only the tasks that have sent it some wait.
        """
        if self.has_room:
            return True
        return self.has_room_beside_slow and not outstanding.has_sent_to(self._partitions.slow)

    def look(self, reached_since_s: float) -> None:
        """Give up the replies to partitions that take none. Called in every round, by the thread of the loop.

        reached_since_s: since when the broker has taken other records without a pause; infinity if it does not now.
        """
        self._partitions.look(reached_since_s)

    def answer(
        self, outstanding: Outstanding, stream: str, first: int, records: Sequence[tuple[int, bytes]]
    ) -> None:
        """Send reply records.

        first: the log offset of the first event that these replies answer.
        records: pairs of (front-end, reply record).
        """
        acknowledged = self.figures.stream(stream).stages["reply"]
        for front_end, record in records:
            started_s = perf_counter()
            where = TopicPartition(self._topics.replies(front_end), 0)
            entry = Entry(where, Records.of([record]))
            sent = self.held.send(front_end, entry)
            outstanding.add(first, where, sent)
            sent.add_done_callback(partial(_note, acknowledged, started_s))
            self.figures.replies += 1

    def answer_query(self, front_end: int, record: bytes) -> None:
        """Send the answer to a value query. Nobody waits until it is acknowledged: the front-end asks again."""
        self.held.send(
            front_end, Entry(TopicPartition(self._topics.replies(front_end), 0), Records.of([record]))
        )
        self.figures.query_answers += 1

    def retry(self) -> None:
        """Send replies that are held until their front-ends' topics are there. Raises TransportError."""
        self.held.retry()

    def dead_letter(
        self, outstanding: Outstanding, stream: str, where: TopicPartition, letters: Sequence[DeadLetter]
    ) -> None:
        """Write records that could not be read to the dead-letter topic. Headers say why, where, and whose they are."""
        topic = self._topics.dead(stream)
        headers = [
            [
                ("reason", letter.reason.encode()),
                ("topic", where.topic.encode()),
                ("partition", b"%d" % where.partition),
                ("offset", b"%d" % letter.offset),
                ("stream", stream.encode()),
            ]
            for letter in letters
        ]
        _log.warning(
            "%s: %s from offset %d on cannot be read (%s)",
            where,
            counted(len(letters), "record"),
            letters[0].offset,
            letters[0].reason,
        )
        records = Records.of([letter.record for letter in letters])
        entry = Entry(TopicPartition(topic, 0), records, None, headers)
        sent = self._counted(entry, self._dead_letters.write(entry))
        outstanding.add(letters[0].offset, entry.where, sent)

    def _send(self, entry: Entry) -> Sent:
        return self._counted(entry, self._partitions.send(entry))

    def _submit(self, entry: Entry) -> Sent:
        return self._transport.submit([entry])

    def _counted(self, entry: Entry, sent: Sent) -> Sent:
        """Count the bytes of an entry as unacknowledged until it has ended. One that was given up has ended."""
        size_bytes = entry.records.size_bytes
        self._count(size_bytes)
        sent.add_done_callback(lambda _: self._count(-size_bytes))
        return sent

    def _count(self, size_bytes: int) -> None:
        with self._lock:
            self._unacknowledged_bytes += size_bytes

    def _gone(self, replies: int) -> None:
        self.figures.dropped += replies


def _note(stage: Buckets, started_s: float, sent: Sent) -> None:
    """Count the time until an acknowledgement. Runs in the producer's thread."""
    if sent.exception() is None:
        stage.add(perf_counter() - started_s)
