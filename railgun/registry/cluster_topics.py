"""Makes the topics through which the nodes of a cluster tell one another what they have and what to do.

Nodes, units and front-ends call it when they start.
"""

from railgun.messaging.transport import TopicSettings, Transport
from railgun.registry.topics import Topics

OVERWRITTEN = TopicSettings(is_compacted=True, is_overwritten=True)
"""The settings of the topics that hold the newest record of each key."""


def make_topics(transport: Transport, topics: Topics) -> None:
    """Create the topics, unless they exist. Raises TransportError."""
    for topic in (topics.positions, topics.nodes, topics.assignment):
        transport.create_topic(topic, 1, OVERWRITTEN)
    transport.create_topic(topics.leader, 1)
