"""Makes the topics through which the nodes of a cluster hear of one another."""

from railgun.messaging.transport import TopicSettings, Transport
from railgun.registry.topics import Topics

_COMPACTED = TopicSettings(is_compacted=True)
POSITIONS = TopicSettings(is_compacted=True, is_overwritten=True)
"""The settings of the topic of reports."""


def make_topics(transport: Transport, topics: Topics) -> None:
    """Create the topics, unless they exist. Raises TransportError."""
    transport.create_topic(topics.positions, 1, POSITIONS)
    for topic in (topics.nodes, topics.assignment):
        transport.create_topic(topic, 1, _COMPACTED)
    transport.create_topic(topics.leader, 1)
