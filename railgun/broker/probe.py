"""Asking a broker whether it answers, and which topics it has."""

from collections.abc import Mapping

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient


def topics(address: str, timeout_s: float) -> Mapping[str, int] | None:
    """The number of partitions by topic, without Kafka's own topics; None where nothing answers in time."""
    client = AdminClient(
        {
            "bootstrap.servers": address,
            "socket.timeout.ms": max(int(timeout_s * 1000), 10),
            # Refused connections are what one expects of a broker that is not there; nobody wants to read of them.
            "log_level": 0,
        }
    )
    try:
        cluster = client.list_topics(timeout=timeout_s)
    except KafkaException:
        return None
    if not cluster.brokers:
        return None
    return {name: len(topic.partitions) for name, topic in cluster.topics.items() if name[:2] != "__"}
