"""The names of all topics. They are promises, because other programs use them too."""

from dataclasses import dataclass

from railgun.catalog.model import StreamDefinition
from railgun.catalog.names import column_name

PREFIX = "railgun"


@dataclass(frozen=True, slots=True)
class Topics:
    """The names of the topics of one cluster. prefix: tells it apart from other clusters on the same broker."""

    prefix: str = PREFIX

    @property
    def catalog(self) -> str:
        """The topic of the catalogue's changes: one partition, compacted."""
        return f"{self.prefix}.catalog"

    @property
    def positions(self) -> str:
        """The topic of units' reports about their tasks: one partition, compacted."""
        return f"{self.prefix}.positions"

    @property
    def inputs(self) -> str:
        """The topic of how far front-ends have read input topics: one partition, compacted."""
        return f"{self.prefix}.inputs"

    @property
    def nodes(self) -> str:
        """The topic of what nodes say of themselves: one partition, compacted."""
        return f"{self.prefix}.nodes"

    @property
    def assignment(self) -> str:
        """The topic of the plan where copies of tasks are: one partition, compacted."""
        return f"{self.prefix}.assignment"

    @property
    def leader(self) -> str:
        """The topic that chooses the leader: the node that is assigned its one partition leads. It has no records."""
        return f"{self.prefix}.leader"

    def replies(self, front_end: int) -> str:
        """Return the topic of the replies for one front-end, by its number: one partition."""
        return f"{self.prefix}.replies.{front_end}"

    def is_of_replies(self, topic: str) -> bool:
        """Whether a topic is that of a front-end's replies."""
        before, _, number = topic.rpartition(".")
        return before == f"{self.prefix}.replies" and number.isascii() and number.isdecimal()

    def is_of_cluster(self, topic: str) -> bool:
        """Whether a topic is one of the cluster itself, and of no stream."""
        own = (self.catalog, self.positions, self.inputs, self.nodes, self.assignment, self.leader)
        return topic in own or self.is_of_replies(topic)

    def is_reserved(self, topic: str) -> bool:
        """Whether a name is kept for what the cluster writes: it begins with the prefix, and is not `input` of a
        stream."""
        before, _, stem = topic.removesuffix(".in").rpartition(".")
        is_input = topic.endswith(".in") and before == self.prefix and bool(stem)
        return topic.startswith(f"{self.prefix}.") and not is_input

    def tasks(self, stream: str, partitioner: str) -> str:
        """Return the topic of the event and control records of a partitioner's tasks: one partition for each."""
        name = column_name(partitioner)
        return (
            f"{self.prefix}.{stream}.{name}" if name != partitioner else f"{self.prefix}.{stream}.by.{name}"
        )

    def queries(self, stream: str, partitioner: str) -> str:
        """Return the topic of the value queries to a partitioner's tasks: one partition for each."""
        return f"{self.prefix}.{stream}.ask.{column_name(partitioner)}"

    def input(self, stream: str) -> str:
        """Return the topic to which clients write events, if the stream does not name others."""
        return f"{self.prefix}.{stream}.in"

    def inputs_of(self, stream: StreamDefinition) -> tuple[str, ...]:
        """Return the topics that a stream's events come from."""
        return stream.input.topics or (self.input(stream.name),)

    def output(self, stream: str) -> str:
        """Return the topic of the replies to events of `input`, if the stream does not name another one."""
        return f"{self.prefix}.{stream}.out"

    def output_of(self, stream: StreamDefinition) -> str:
        """Return the topic of a stream's replies."""
        return stream.output.topic or self.output(stream.name)

    def dead(self, stream: str) -> str:
        """Return the topic of records that could not be used, if the stream does not name another one.

        Records of tasks' logs go there in any case.
        """
        return f"{self.prefix}.{stream}.dead"

    def dead_of(self, stream: StreamDefinition) -> str:
        """Return the topic of records of `input` that could not be used, with the reason in their headers."""
        return stream.output.dead or self.dead(stream.name)

    def of_tasks(self, stream: StreamDefinition) -> dict[str, int]:
        """Return all task topics of a stream, with their numbers of partitions."""
        return {self.tasks(stream.name, each): stream.partitions_of(each) for each in stream.partitioners}

    def of_queries(self, stream: StreamDefinition) -> dict[str, int]:
        """Return all topics for value queries of a stream, with their numbers of partitions."""
        return {self.queries(stream.name, each): stream.partitions_of(each) for each in stream.partitioners}


def topic_of(stream: str, partitioner: str) -> str:
    """Return the topic of an embedded log that a partitioner's tasks read."""
    return Topics().tasks(stream, partitioner)
