"""The topics to which a front-end writes the replies and dead letters of one stream, and what replies have there."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from frontend.problems import Problem
from railgun.catalog.model import LatePolicy, ReplyKey, StreamDefinition
from railgun.ingest.accepted import AcceptedBatch
from railgun.ingest.derived import DerivedMetrics
from railgun.ingest.replies import Reply, repeat_fields
from railgun.language.derive import ResolvedDerived, field_as_derived
from railgun.messaging.errors import TopicExistsError, TopicSettingsError
from railgun.messaging.kafka.settings import MESSAGE_LIMIT_BYTES
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.messaging.transport import FOREVER, TopicSettings
from railgun.registry.topics import Topics

_encode = msgspec.json.Encoder().encode

# Replies are read as they come. To keep them longer, make the topic before the first reply.
_REPLIES = TopicSettings(retention_ms=7 * 24 * 3_600_000)
# The room for headers, and for an id.
_HEADERS_BYTES = 1 << 17


@dataclass(frozen=True, slots=True)
class StreamOutput:
    """The output of a stream, as its definition says it. Equal ones write the same records to the same topics.

    topic, dead: the topics of replies and of dead letters.
    key: the key of replies to records of the input topic.
    fields: the fields that replies repeat.
    discards_late: whether late events are discarded, and have dead letters.
    """

    topic: str
    dead: str
    key: ReplyKey
    fields: tuple[ResolvedDerived, ...]
    discards_late: bool

    @property
    def needs_records(self) -> bool:
        """Whether replies and letters need the records beside their events."""
        return self.discards_late or self.key is ReplyKey.INPUT

    @classmethod
    def of(cls, stream: StreamDefinition, topics: Topics) -> "StreamOutput":
        """Return a stream's."""
        fields = (field_as_derived(name, stream.readable, stream.name) for name in stream.output.include)
        discards = stream.late_policy is LatePolicy.DISCARD
        return cls(
            topics.output_of(stream), topics.dead_of(stream), stream.output.key, tuple(fields), discards
        )

    def make_topics(self, transport: KafkaTransport, partitions: int, *, with_dead: bool = True) -> None:
        """Make the topics that are missing. One that somebody has made is used as it is. Raises TransportError."""
        existing = transport.topics()
        wanted = {self.topic: _REPLIES} | ({self.dead: FOREVER} if with_dead else {})
        for topic, settings in wanted.items():
            if topic not in existing:
                # Another front-end may make it at the same time.
                with contextlib.suppress(TopicExistsError, TopicSettingsError):
                    transport.create_topic(topic, partitions, settings)


class ReplyEncoder:
    """Encodes replies as they are in the output topic. Threads may share it."""

    def __init__(self, output: StreamOutput) -> None:
        self._fields = DerivedMetrics(output.fields)

    def encoded(self, replies: Sequence[Reply | Problem], accepted: AcceptedBatch) -> list[bytes]:
        """Return the JSON of the replies to all accepted events, and of the problems that stand in place of some.

        Fields with which a reply would be larger than a record may be are null.
        """
        fields = self._fields.answers(accepted.events, accepted.schema, {})
        if fields is None:
            return list(map(_encode, replies))
        repeat_fields(replies, fields.block())
        values = list(map(_encode, replies))
        for row, value in enumerate(values):
            reply = replies[row]
            if len(value) > MESSAGE_LIMIT_BYTES - _HEADERS_BYTES and isinstance(reply, Reply):
                reply.fields = None
                values[row] = _encode(reply)
        return values


def fitting_key(key: bytes | None, value: bytes) -> bytes | None:
    """Return the key of a reply; None where the record would be larger than one may be."""
    return key if key is None or len(key) + len(value) <= MESSAGE_LIMIT_BYTES - _HEADERS_BYTES else None
