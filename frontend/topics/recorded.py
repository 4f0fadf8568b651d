"""Writes replies to HTTP clients to the output topic too, for streams whose definition says so."""

import contextlib
from concurrent.futures import Future
from functools import partial

import msgspec

from frontend.exchange.pending import PendingRequest
from frontend.exchange.streams import StreamIntakes
from railgun.ingest.replies import Reply
from railgun.messaging.errors import TopicExistsError, TopicSettingsError, TransportError
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.messaging.transport import Entry, TopicPartition, TopicSettings
from railgun.registry.topics import Topics
from railgun.wire.partition import partition_of
from railgun.wire.records import Records

_encode = msgspec.json.Encoder().encode

# Replies are read as they come. To keep them longer, make the topic before the first reply.
OUT = TopicSettings(retention_ms=7 * 24 * 3_600_000)


class RecordedReplies:
    """Writes the replies of requests to output topics. Any thread may call every method."""

    def __init__(self, transport: KafkaTransport, topics: Topics, intakes: StreamIntakes) -> None:
        self._transport, self._topics, self._intakes = transport, topics, intakes
        self._partitions: dict[str, int] = {}

    def prepare(self, stream: str) -> None:
        """Make the output topic if the stream's replies are recorded. Raises TransportError."""
        topic = self._topics.output(stream)
        if self._wants(stream) and topic not in self._partitions:
            # A topic that somebody has made is used as it is.
            with contextlib.suppress(TopicExistsError, TopicSettingsError):
                self._transport.create_topic(topic, 1, OUT)
            self._partitions[topic] = self._transport.topics()[topic]

    def record(self, pending: PendingRequest) -> Future[list[int]] | None:
        """Write the replies of a request, keyed by their ids. Return None if none are recorded; else the future is done
        once they are durable. Raises TransportError."""
        topic = self._topics.output(pending.stream)
        partitions = self._partitions.get(topic, 0)
        if not partitions or not self._wants(pending.stream):
            return None
        by_partition: dict[int, tuple[list[bytes], list[bytes | None]]] = {}
        for reply in pending.answers():
            if isinstance(reply, Reply):
                key = str(reply.id).encode()
                values, keys = by_partition.setdefault(partition_of(key, partitions), ([], []))
                values.append(_encode(reply))
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

    def _wants(self, stream: str) -> bool:
        entry = self._intakes.now.catalog.streams.get(stream)
        return entry is not None and entry.stream.record_replies

    def _note(self, topic: str, written: Future[list[int]]) -> None:
        if isinstance(written.exception(), TransportError):
            # The topic may be gone. The next request makes it again.
            self._partitions.pop(topic, None)
