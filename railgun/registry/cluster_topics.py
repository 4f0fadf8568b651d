"""Makes the topics through which the nodes of a cluster hear of one another."""

from railgun.messaging.transport import TopicSettings, Transport
from railgun.registry.topics import Topics

_COMPACTED = TopicSettings(is_compacted=True)


def make_topics(transport: Transport, topics: Topics) -> None:
    """Create the topics, unless they exist. Raises TransportError."""
    for topic in (topics.positions, topics.nodes, topics.assignment):
        transport.create_topic(topic, 1, _COMPACTED)
    transport.create_topic(topics.leader, 1)
