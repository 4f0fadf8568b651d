"""Brings changes of the catalogue to the tasks: makes topics, writes changes to the tasks' logs, deletes topics."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from railgun.catalog.changes import Change, DropStream, PutStream, change_to_json
from railgun.catalog.model import LOGS_FOREVER, StreamDefinition
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.messaging.transport import Entry, TopicSettings
from railgun.registry.entries import change_stream
from railgun.registry.errors import DefinitionsError
from railgun.registry.topics import Topics
from railgun.wire.control_records import encode_control
from railgun.wire.records import Records

# Nobody waits longer for the answer to a query.
_QUERIES = TopicSettings(retention_ms=3_600_000)


class Telling:
    """Makes and deletes the topics of tasks, and tells tasks of changes. `KafkaRegistry` makes one.

    settings: of the logs of streams that do not say how long they are kept.
    Each step may be repeated, by a process that finishes another one's change. Raises TransportError.
    """

    def __init__(self, transport: KafkaTransport, topics: Topics, settings: TopicSettings) -> None:
        self._transport, self._topics, self._settings = transport, topics, settings

    def check_free(self, stream: StreamDefinition) -> None:
        """Raise DefinitionsError if a new stream's topic exists, and has records or another number of partitions."""
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
        """Write changes to every task of their streams, in order, and wait until the logs have them.

        streams: by name, the streams after the changes.
        dropped: by the place of a DropStream, the stream that it drops.
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
            # A later one of the pending changes drops the stream, and has the last word.
            return
        existing = self._transport.topics()
        for topic, partitions in self._topics.of_tasks(layout).items():
            if topic not in existing:
                self._transport.create_topic(topic, partitions, self._settings_of(layout))
        self.make_query_topics(layout, existing)
        records = Records.of([encode_control(change_to_json(change)) for change in changes])
        self._transport.submit([Entry(where, records) for where in self._topics.partitions(layout)]).result()

    def keep_logs(self, stream: StreamDefinition) -> None:
        """Have the broker keep the logs of a stream's tasks as long as the stream says."""
        existing = self._transport.topics()
        for topic in self._topics.of_tasks(stream):
            if topic in existing:
                self._transport.set_retention(topic, self._settings_of(stream).retention_ms)

    def _settings_of(self, stream: StreamDefinition) -> TopicSettings:
        kept_ms = stream.log_retention_ms
        if kept_ms is None:
            return self._settings
        return replace(self._settings, retention_ms=None if kept_ms == LOGS_FOREVER else kept_ms)

    def make_query_topics(self, stream: StreamDefinition, existing: Mapping[str, int]) -> None:
        """Make the missing topics for a stream's value queries. existing: the number of partitions of every topic."""
        for topic, partitions in self._topics.of_queries(stream).items():
            if existing.get(topic, partitions) != partitions:
                # Another stream of this name has left the topic behind. Nobody waits for its records.
                self._transport.delete_topic(topic)
                self._transport.create_topic(topic, partitions, _QUERIES)
            elif topic not in existing:
                self._transport.create_topic(topic, partitions, _QUERIES)

    def delete(self, stream: StreamDefinition) -> None:
        """Delete the topics of a stream's tasks, and the topics of queries to them."""
        for topic in (*self._topics.of_tasks(stream), *self._topics.of_queries(stream)):
            self._transport.delete_topic(topic)


def _layout(changes: Sequence[Change], stream: StreamDefinition | None) -> StreamDefinition | None:
    """Return the newest definition of the stream: it says how long its logs are kept. All else here is fixed."""
    return next((each.stream for each in reversed(changes) if isinstance(each, PutStream)), stream)
