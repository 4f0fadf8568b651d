"""One librdkafka consumer and the set of partitions that are assigned to it. It talks to the broker.

`KafkaConsumer` (consumer.py) has up to two: one for partitions near their ends, one for those far behind.
"""

from confluent_kafka import Message
from confluent_kafka import TopicPartition as KafkaTopicPartition

from railgun.messaging.kafka.clients import Consumer
from railgun.messaging.kafka.errors import ClientErrors, create_client
from railgun.messaging.kafka.settings import KafkaSettings
from railgun.messaging.transport import TopicPartition

# Messages that are taken from librdkafka with one call. More would leave the processor's caches before they are read.
POLL_RECORDS = 1_000


class ConsumerQueue:
    """One consumer of librdkafka. The messages of all its partitions are in one queue, first in, first out.

    partitions: those that are assigned. While one thread is in `poll`, no other may call `unassign`.
    """

    def __init__(self, settings: KafkaSettings, client_errors: ClientErrors) -> None:
        configuration = {**settings.consumer(), "error_cb": client_errors}
        self.consumer = create_client(settings.broker, lambda: Consumer(configuration))
        self.partitions: set[TopicPartition] = set()

    def assign(self, where: TopicPartition, offset: int) -> None:
        """Begin to fetch a partition at an offset."""
        self.consumer.incremental_assign([KafkaTopicPartition(*where, offset)])
        self.partitions.add(where)

    def unassign(self, where: TopicPartition) -> None:
        """Stop fetching a partition. No later `poll` returns messages of it."""
        self.consumer.incremental_unassign([KafkaTopicPartition(*where)])
        self.partitions.discard(where)

    def poll(self, timeout_s: float) -> list[Message]:
        """Return the messages that have come, POLL_RECORDS at most. If there are none, wait for the first."""
        if not timeout_s:
            return self.consumer.consume(POLL_RECORDS, 0)
        first = self.consumer.poll(timeout_s)
        if first is None:
            return []
        # `consume` with a timeout would wait for as many messages as it may return.
        return [first, *self.consumer.consume(POLL_RECORDS - 1, 0)]

    def known_end(self, where: TopicPartition) -> int:
        """Return the end of a partition as of its last fetch; 0 if there was none."""
        known = self.consumer.get_watermark_offsets(KafkaTopicPartition(*where), cached=True)
        return 0 if known is None else max(0, known[1])

    def close(self) -> None:
        """Close the consumer."""
        self.consumer.close()
