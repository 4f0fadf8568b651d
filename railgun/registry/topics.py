"""The names of all topics: promises, since other programs use them too."""

from dataclasses import dataclass

from railgun.catalog.model import StreamDefinition
from railgun.catalog.names import column_name
from railgun.messaging.transport import TopicPartition, Transport

PREFIX = "railgun"


@dataclass(frozen=True, slots=True)
class Topics:
    """The topics of one cluster. prefix: what sets it apart from others on the same broker."""

    prefix: str = PREFIX

    @property
    def catalog(self) -> str:
        """Changes of the catalogue: one partition, compacted."""
        return f"{self.prefix}.catalog"

    @property
    def positions(self) -> str:
        """How the tasks stand: one partition, compacted."""
        return f"{self.prefix}.positions"

    @property
    def nodes(self) -> str:
        """What nodes say of themselves: one partition, compacted."""
        return f"{self.prefix}.nodes"

    @property
    def assignment(self) -> str:
        """The plan of where copies of tasks are: one partition, compacted."""
        return f"{self.prefix}.assignment"

    @property
    def leader(self) -> str:
        """Whoever is assigned its one partition leads the nodes; it has no records."""
        return f"{self.prefix}.leader"

    def replies(self, front_end: int) -> str:
        """The reply records for one front-end, by its number: one partition."""
        return f"{self.prefix}.replies.{front_end}"

    def tasks(self, stream: str, partitioner: str) -> str:
        """The event and control records of a partitioner's tasks, a partition each."""
        name = column_name(partitioner)
        return (
            f"{self.prefix}.{stream}.{name}" if name != partitioner else f"{self.prefix}.{stream}.by.{name}"
        )

    def queries(self, stream: str, partitioner: str) -> str:
        """The value queries to a partitioner's tasks, a partition each."""
        return f"{self.prefix}.{stream}.ask.{column_name(partitioner)}"

    def input(self, stream: str) -> str:
        """Where clients write events."""
        return f"{self.prefix}.{stream}.in"

    def output(self, stream: str) -> str:
        """The replies to what came from `input`."""
        return f"{self.prefix}.{stream}.out"

    def dead(self, stream: str) -> str:
        """What could not be used, with the reason in the headers."""
        return f"{self.prefix}.{stream}.dead"

    def of_tasks(self, stream: StreamDefinition) -> dict[str, int]:
        """All task topics of a stream, with their numbers of partitions."""
        return {self.tasks(stream.name, each): stream.partitions_of(each) for each in stream.partitioners}

    def of_queries(self, stream: StreamDefinition) -> dict[str, int]:
        """All topics of value queries of a stream, with their numbers of partitions."""
        return {self.queries(stream.name, each): stream.partitions_of(each) for each in stream.partitioners}

    def partitions(self, stream: StreamDefinition) -> list[TopicPartition]:
        """The logs of all tasks of a stream."""
        return [TopicPartition(topic, at) for topic, n in self.of_tasks(stream).items() for at in range(n)]


def topic_of(stream: str, partitioner: str) -> str:
    """The topic that a partitioner's tasks read, in an embedded log."""
    return Topics().tasks(stream, partitioner)


def topics_of_stream(log: Transport, stream: str) -> list[str]:
    """All topics of a stream's tasks that there are in an embedded log."""
    own = f"{PREFIX}.{stream}."
    return [topic for topic in log.topics() if topic.startswith(own)]
