"""Brings changes of the catalogue to the tasks, for `KafkaRegistry`: makes topics, writes changes to the tasks' logs,
deletes topics.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from railgun.catalog.changes import Change, DropStream, PutStream, change_to_json
from railgun.catalog.model import LOGS_FOREVER, StreamDefinition
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.messaging.transport import Entry, TopicPartition, TopicSettings
from railgun.registry.entries import change_stream
from railgun.registry.errors import DefinitionsError, TopicGoneError
from railgun.registry.task_topics import task_logs
from railgun.registry.topics import Topics
from railgun.wire.control_records import encode_control
from railgun.wire.records import Records

# Nobody waits longer for the answer to a query.
_QUERIES = TopicSettings(retention_ms=3_600_000)


class Telling:
    """Makes and deletes the topics of tasks, and tells tasks of changes. `KafkaRegistry` makes one.

    settings: those of the logs of streams that do not say how long they are kept.
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

    def check_there(self, changes: Sequence[Change], streams: Mapping[str, StreamDefinition]) -> None:
        """Raise DefinitionsError if a task's topic, by which it has read earlier changes, is gone.

        A new topic would be read as if it were the old one. A stream that is dropped does not need its topics.
        streams: by name, the streams before the changes.
        """
        dropped = {each.name for each in changes if isinstance(each, DropStream)}
        names = {change_stream(each) for each in changes} - dropped
        told = [streams[name] for name in names if name in streams]
        existing = self._transport.topics() if told else {}
        for stream in told:
            if gone := self._gone(stream, existing):
                raise DefinitionsError(f"nothing was changed: {gone}")

    def _gone(self, stream: StreamDefinition, existing: Mapping[str, int]) -> str | None:
        """Return which topic of a stream's tasks does not exist, with the remedy; None if all do."""
        for partitioner in stream.partitioners:
            topic = self._topics.tasks(stream.name, partitioner)
            if topic not in existing:
                return (
                    f"the topic {topic} is gone, and with it all events of its tasks; `railgun cluster accept-cut "
                    f"{stream.name}/{partitioner}/N` makes it anew and has task N begin anew"
                )
        return None

    def tell(
        self,
        changes: Sequence[Change],
        streams: Mapping[str, StreamDefinition],
        dropped: Mapping[int, StreamDefinition],
        new: Collection[str],
    ) -> None:
        """Write changes to every task of their streams, in order, and wait until the logs have them.

        streams: by name, the streams after the changes.
        dropped: by the place of a DropStream, the stream that it drops.
        new: the names of streams that these changes create. Their topics may have to be made.
        Raises TopicGoneError if a topic of another stream does not exist.
        """
        for name, group in groupby(changes, change_stream):
            own = list(group)
            while own:
                end = next((i for i, each in enumerate(own) if isinstance(each, DropStream)), len(own) - 1)
                self._tell(own[: end + 1], streams.get(name), dropped, makes_topics=name in new)
                own = own[end + 1 :]

    def _tell(
        self,
        changes: list[Change],
        stream: StreamDefinition | None,
        dropped: Mapping[int, StreamDefinition],
        *,
        makes_topics: bool,
    ) -> None:
        last = changes[-1]
        is_dropped = isinstance(last, DropStream)
        layout = dropped.get(last.place) if is_dropped else _layout(changes, stream)
        if layout is None:
            # A later one of the pending changes drops the stream, and has the last word.
            return
        existing, wheres = self._transport.topics(), task_logs(self._topics, layout)
        if is_dropped:
            # Nobody is told by a topic that is gone.
            wheres = [where for where in wheres if where.topic in existing]
        elif makes_topics:
            self._make_topics(layout, existing)
        elif gone := self._gone(layout, existing):
            raise TopicGoneError(layout.name, gone)
        self.make_query_topics(layout, existing)
        records = Records.of([encode_control(change_to_json(change)) for change in changes])
        if wheres:
            self._transport.submit([Entry(where, records) for where in wheres]).result()

    def _make_topics(self, stream: StreamDefinition, existing: Mapping[str, int]) -> None:
        for topic, partitions in self._topics.of_tasks(stream).items():
            if topic not in existing:
                self._transport.create_topic(topic, partitions, self._settings_of(stream))

    def make_task_topic(self, stream: StreamDefinition, partitioner: str) -> None:
        """Make the topic of a partitioner's tasks, if it is missing."""
        topic = self._topics.tasks(stream.name, partitioner)
        if topic not in self._transport.topics():
            self._transport.create_topic(topic, stream.partitions_of(partitioner), self._settings_of(stream))

    def tell_one(self, where: TopicPartition, changes: Sequence[Change]) -> int:
        """Write changes to the log of one task. Return the offset of the first."""
        records = Records.of([encode_control(change_to_json(change)) for change in changes])
        return self._transport.submit([Entry(where, records)]).result()[0]

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
