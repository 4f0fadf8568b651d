"""Checks the records of one stream's input topics, each by the mapping that holds at its offset."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from confluent_kafka import Message

from frontend.exchange.streams import StreamIntake
from frontend.formats.values import RecordValues
from frontend.topics.route import Means, Route
from railgun.catalog.model import StreamDefinition
from railgun.messaging.errors import TransportUnavailableError
from railgun.messaging.transport import TopicPartition
from railgun.registry.input_topics import InputTopic

# A message without an error has one.
_offset: Any = Message.offset


class MappedIntake(NamedTuple):
    """What reads records by one mapping: their values, then the events."""

    values: RecordValues
    intake: StreamIntake


class MappedIntakes:
    """The intakes of one stream's input. One thread uses it.

    topics: the stream's topics, by name.
    """

    def __init__(self, route: Route, topics: Mapping[str, InputTopic], means: Means) -> None:
        self._route, self._topics, self._means = route, topics, means
        # The definition by which all of them are made, and one of them: its ids and arrival times go on.
        self._definition: StreamDefinition | None = None
        self._last: StreamIntake | None = None
        self._made: dict[int, MappedIntake] = {}

    def of(self, where: TopicPartition, offset: int) -> MappedIntake:
        """Return what reads a record by the stream's present definition, with the mapping that holds at its offset.

        Raises TransportUnavailableError if the stream was dropped.
        """
        stream = self._route.stream
        entry = self._means.intakes.now.catalog.streams.get(stream)
        if entry is None or entry.created != self._route.created:
            raise TransportUnavailableError(stream, "the stream was dropped", "nothing is to be done")
        if self._definition != entry.stream:
            self._definition = entry.stream
            self._made.clear()
        place = self._topics[where.topic].mapping_at(where.partition, offset)
        found = self._made.get(place)
        if found is None:
            mapped = replace(entry, stream=entry.mapped_at(place))
            self._last = StreamIntake(mapped, self._last, selects=True)
            found = self._made[place] = MappedIntake(RecordValues(self._means.schemas), self._last)
        return found

    def parts(self, where: TopicPartition, messages: Sequence[Message]) -> Iterator[Sequence[Message]]:
        """Yield messages of one partition, in order, in parts that are each read by one mapping."""
        begin = 0
        for start in self._topics[where.topic].mapping_starts(where.partition):
            end = bisect_left(messages, start, begin, key=_offset)
            if end > begin:
                yield messages[begin:end]
                begin = end
        if begin < len(messages):
            yield messages[begin:]
