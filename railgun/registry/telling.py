"""What a change of the catalogue does to topics: they are made, their tasks are told, they are deleted."""

from collections.abc import Mapping, Sequence
from itertools import groupby

from railgun.catalog.changes import Change, DropStream, PutStream, change_to_json
from railgun.catalog.model import StreamDefinition
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.messaging.transport import Entry, TopicSettings
from railgun.registry.entries import change_stream
from railgun.registry.errors import DefinitionsError
from railgun.registry.topics import Topics
from railgun.wire.control_records import encode_control
from railgun.wire.records import Records

# Nobody waits for the answer to an older one.
_QUERIES = TopicSettings(retention_ms=3_600_000)


class Telling:
    """Each step may be done again by whoever finishes another's change. Raises TransportError."""

    def __init__(self, transport: KafkaTransport, topics: Topics, settings: TopicSettings) -> None:
        self._transport, self._topics, self._settings = transport, topics, settings

    def check_free(self, stream: StreamDefinition) -> None:
        """Raise DefinitionsError where topics that a new stream needs are there already, with records."""
        existing = self._transport.topics()
        for topic, partitions in self._topics.of_tasks(stream).items():
            if topic not in existing:
                continue
            ends = [self._transport.end_offset(topic, each) for each in range(existing[topic])]
            if existing[topic] != partitions or any(ends):
                raise DefinitionsError(
                    f"{stream.name}: the topic {topic} is there already and is not of this cluster; delete it, or "
                    "choose another name for the stream or another topic_prefix"
                )

    def tell(
        self,
        changes: Sequence[Change],
        streams: Mapping[str, StreamDefinition],
        dropped: Mapping[int, StreamDefinition],
    ) -> None:
        """Write changes to every task of their streams, in order, and wait until they are there.

        streams: by name, as they are after the changes.  dropped: by the place of their DropStream.
        """
        for name, group in groupby(changes, change_stream):
            own = list(group)
            while own:
                end = next((i for i, each in enumerate(own) if isinstance(each, DropStream)), len(own) - 1)
                self._tell(own[: end + 1], streams.get(name), dropped)
                own = own[end + 1 :]

    def _tell(
        self, changes: list[Change], stream: StreamDefinition | None, dropped: Mapping[int, StreamDefinition]
    ) -> None:
        last = changes[-1]
        layout = dropped.get(last.place) if isinstance(last, DropStream) else _layout(changes, stream)
        if layout is None:
            # Dropped by a later change of those pending, which has the last word.
            return
        existing = self._transport.topics()
        for topic, partitions in self._topics.of_tasks(layout).items():
            if topic not in existing:
                self._transport.create_topic(topic, partitions, self._settings)
        self.make_query_topics(layout, existing)
        records = Records.of([encode_control(change_to_json(change)) for change in changes])
        self._transport.submit([Entry(where, records) for where in self._topics.partitions(layout)]).result()

    def make_query_topics(self, stream: StreamDefinition, existing: Mapping[str, int]) -> None:
        """Make the topics for a stream's value queries that are not there. existing: partitions of all topics."""
        for topic, partitions in self._topics.of_queries(stream).items():
            if existing.get(topic, partitions) != partitions:
                # Left behind by another stream of this name. Nobody waits for what is in it.
                self._transport.delete_topic(topic)
                self._transport.create_topic(topic, partitions, _QUERIES)
            elif topic not in existing:
                self._transport.create_topic(topic, partitions, _QUERIES)

    def delete(self, stream: StreamDefinition) -> None:
        """Delete the topics of a stream's tasks, and of queries to them."""
        for topic in (*self._topics.of_tasks(stream), *self._topics.of_queries(stream)):
            self._transport.delete_topic(topic)


def _layout(changes: Sequence[Change], stream: StreamDefinition | None) -> StreamDefinition | None:
    """Partitioners and partitions are fixed at creation: any definition of the stream will do."""
    return next((each.stream for each in changes if isinstance(each, PutStream)), stream)
