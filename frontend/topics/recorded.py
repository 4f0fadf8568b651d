"""Writes replies to HTTP clients to the output topic too, for streams whose definition says so."""

from concurrent.futures import Future
from functools import partial
from itertools import count
from typing import NamedTuple

from frontend.exchange.pending import PendingRequest
from frontend.exchange.streams import StreamIntakes
from frontend.topics.stream_output import ReplyEncoder, StreamOutput
from railgun.catalog.model import ReplyKey, StreamDefinition
from railgun.ingest.replies import Reply
from railgun.messaging.errors import TransportError, TransportUnavailableError
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.messaging.transport import Entry, TopicPartition
from railgun.registry.topics import Topics
from railgun.wire.partition import partition_of
from railgun.wire.records import Records


class _Recording(NamedTuple):
    """How the replies of a stream are recorded. definition: that of the stream."""

    definition: StreamDefinition
    output: StreamOutput
    encoder: ReplyEncoder


class RecordedReplies:
    """Writes the replies of requests to output topics. Any thread may call every method."""

    def __init__(self, transport: KafkaTransport, topics: Topics, intakes: StreamIntakes) -> None:
        self._transport, self._topics, self._intakes = transport, topics, intakes
        self._recordings: dict[str, _Recording] = {}
        self._partitions: dict[str, int] = {}
        self._without_key = count()

    def prepare(self, stream: str) -> None:
        """Make the output topic if the stream's replies are recorded. Raises TransportError."""
        recording = self._recording(stream)
        if recording is not None and recording.output.topic not in self._partitions:
            topic = recording.output.topic
            recording.output.make_topics(self._transport, 1, with_dead=False)
            self._partitions[topic] = self._transport.topics()[topic]

    def record(self, pending: PendingRequest) -> Future[list[int]] | None:
        """Write the replies of a request. Return None if none are recorded; else the future is done once they are
        durable. Raises TransportError."""
        recording = self._recording(pending.stream)
        if recording is None:
            return None
        topic = recording.output.topic
        partitions = self._partitions.get(topic, 0)
        if not partitions:
            # Another topic than when the event came, or that one is gone. The next request makes it.
            raise TransportUnavailableError(topic, "the topic is new", "Send it again")
        replies = pending.answers()
        by_partition: dict[int, tuple[list[bytes], list[bytes | None]]] = {}
        for reply, value in zip(replies, recording.encoder.encoded(replies, pending.accepted)):
            if isinstance(reply, Reply):
                key, partition = self._key(recording.output.key, reply, partitions)
                values, keys = by_partition.setdefault(partition, ([], []))
                values.append(value)
                keys.append(key)
        entries = [
            Entry(TopicPartition(topic, partition), Records.of(values), keys)
            for partition, (values, keys) in by_partition.items()
        ]
        if not entries:
            return None
        written = self._transport.submit(entries)
        written.add_done_callback(partial(self._note, topic))
        return written

    def _key(self, kind: ReplyKey, reply: Reply, partitions: int) -> tuple[bytes | None, int]:
        """Return the key of a reply, and its partition. There is no record of the input topic with a key."""
        if kind is ReplyKey.INPUT:
            return None, next(self._without_key) % partitions
        key = str(reply.id).encode()
        return key, partition_of(key, partitions)

    def _recording(self, stream: str) -> _Recording | None:
        """Return how a stream's replies are recorded; None if they are not."""
        entry = self._intakes.now.catalog.streams.get(stream)
        if entry is None or not entry.stream.record_replies:
            return None
        known = self._recordings.get(stream)
        if known is None or known.definition is not entry.stream:
            output = StreamOutput.of(entry.stream, self._topics)
            known = self._recordings[stream] = _Recording(entry.stream, output, ReplyEncoder(output))
        return known

    def _note(self, topic: str, written: Future[list[int]]) -> None:
        if isinstance(written.exception(), TransportError):
            # The topic may be gone. The next request makes it again.
            self._partitions.pop(topic, None)
