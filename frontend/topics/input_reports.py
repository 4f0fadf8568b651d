"""Records how far front-ends have read the input topics of streams, and hands on what others have recorded.

The records are in a topic of their own. FORMAT.md describes them. A broker forgets the positions of a group that rests
for long; these stay.
"""

import logging
import threading
import time
from collections.abc import Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Final

import msgspec

from railgun.messaging.errors import TransportError, UnreadableRecordError
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.messaging.tail import Tail, TailThread, each_record, logged
from railgun.messaging.transport import Entry, TopicPartition
from railgun.registry.cluster_topics import OVERWRITTEN
from railgun.registry.input_topics import InputTopic
from railgun.registry.topics import Topics
from railgun.wire.records import Records

VERSION: Final = 1
_WAIT_S, _AWAY_S = 0.1, 0.5

_log = logging.getLogger("railgun.frontend")


class InputReport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How far one partition of an input topic is read for a stream.

    created: the place of the stream's creation.
    id: of the topic, whose name is only for people.
    position: events before it are settled; −1: it is not known of any.
    time_ms: the event time up to which events are settled, or that of the next event; None: not known yet.
    behind: whether others have to wait for it: it has not reached its end since it was given to the front-end.
    asks: whether the front-end waits to hear of partitions that others read. They say again how these stand.
    """

    version: int = VERSION
    stream: str
    created: int
    topic: str
    id: str
    partition: int
    position: int = -1
    time_ms: int | None = None
    behind: bool = False
    asks: bool = False

    @property
    def key(self) -> bytes:
        """The key of its record."""
        return f"{self.created} {self.id} {self.partition}".encode()


@dataclass(frozen=True, slots=True)
class Heard:
    """The newest report of a partition. heard_s: when it came, by time.monotonic; −infinity: before this process."""

    report: InputReport
    heard_s: float


class InputReports:
    """Reads all reports, in a thread of its own, and writes some. Any thread may call every method.

    It has read all that there is when it is made. Raises TransportError.
    count: how many reports were read so far.
    """

    def __init__(self, transport: KafkaTransport, topics: Topics) -> None:
        self._transport, self._where = transport, TopicPartition(topics.inputs, 0)
        # By the place of the stream's creation and the id of the topic, then by partition.
        self._known: dict[tuple[int, str], dict[int, Heard]] = {}
        self._sent: dict[str, Future[list[int]]] = {}
        self._sending = threading.Lock()
        transport.create_topic(topics.inputs, 1, OVERWRITTEN)
        self._decoder = msgspec.json.Decoder(InputReport)
        self._is_read = False
        self.count = 0
        self._tail = Tail(transport, {self._where: each_record(self._take, logged(_log))})
        self._tail.read_to_the_end()
        self._is_read = True
        self._thread = TailThread(
            lambda: self._tail.look(_WAIT_S),
            "input-reports",
            lambda error: _log.warning("how far inputs are read cannot be read for now: %s", error),
            _AWAY_S,
        )
        self._thread.start()

    def close(self) -> None:
        """Read no more."""
        self._thread.close()

    def of(self, created: int, topic: InputTopic, partition: int) -> Heard | None:
        """Return the newest report of a partition; None if there is none."""
        return self._known.get((created, topic.id), {}).get(partition)

    def of_topic(self, created: int, topic: InputTopic) -> dict[int, Heard]:
        """Return the newest reports of a topic's partitions."""
        # A copy, as the thread that reads adds to it.
        return dict(self._known.get((created, topic.id), {}))

    def write(self, stream: str, reports: Iterable[InputReport]) -> bool:
        """Write reports of a stream; return False, and write none, while its earlier ones are on their way."""
        with self._sending:
            sent = self._sent.get(stream)
            if sent is not None and not sent.done():
                return False
            entries = list(reports)
            if not entries:
                return True
            records = Records.of([msgspec.json.encode(each) for each in entries])
            try:
                self._sent[stream] = self._transport.submit(
                    [Entry(self._where, records, [each.key for each in entries])]
                )
            except TransportError as error:
                _log.debug("how far inputs are read is not recorded for now: %s", error)
                return False
            return True

    def _take(self, offset: int, record: bytes) -> None:
        try:
            report = self._decoder.decode(record)
        except msgspec.MsgspecError as error:
            raise UnreadableRecordError(f"no report of an input: {error}") from error
        if report.version > VERSION:
            raise UnreadableRecordError(f"a report of version {report.version}; this release reads {VERSION}")
        heard_s = time.monotonic() if self._is_read else float("-inf")
        own = self._known.setdefault((report.created, report.id), {})
        own[report.partition] = Heard(report, heard_s)
        self.count += 1
