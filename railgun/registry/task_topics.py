"""Finds the logs of a stream's tasks. It is apart from the names of topics, which clients need too."""

from railgun.catalog.model import StreamDefinition
from railgun.messaging.transport import TopicPartition, Transport
from railgun.registry.topics import PREFIX, Topics


def task_logs(topics: Topics, stream: StreamDefinition) -> list[TopicPartition]:
    """Return the logs of all tasks of a stream in a cluster."""
    return [TopicPartition(topic, at) for topic, n in topics.of_tasks(stream).items() for at in range(n)]


def topics_of_stream(log: Transport, stream: str) -> list[str]:
    """Return all topics of a stream's tasks that an embedded log has."""
    own = f"{PREFIX}.{stream}."
    return [topic for topic in log.topics() if topic.startswith(own)]
