"""A stream's topics as its clients use them: events in, replies and dead letters out."""

import json
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, Message, Producer
from confluent_kafka import TopicPartition as KafkaTopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions

from railgun.messaging.kafka.transport import KafkaTransport
from railgun.registry.topics import Topics
from tests.frontend.serving import PATIENCE_S
from tests.unit.local_units import quick_settings


class TopicTail:
    """Everything that is committed in a topic, as it comes."""

    def __init__(self, broker: str, topic: str, partitions: int) -> None:
        self.messages: list[Message] = []
        self._consumer = Consumer(
            {
                "bootstrap.servers": broker,
                "group.id": "tail",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "fetch.wait.max.ms": 30,
            }
        )
        self._consumer.assign([KafkaTopicPartition(topic, each, 0) for each in range(partitions)])

    def read(self, timeout_s: float = 0.05) -> None:
        """Take what is there."""
        for message in self._consumer.consume(10_000, timeout_s):
            error = message.error()
            if error is None:
                self.messages.append(message)
            else:
                assert error.code() in (KafkaError._PARTITION_EOF, KafkaError._UNKNOWN_TOPIC), error

    def read_all(self) -> None:
        """Take everything that is there by now."""
        ends = [
            (each, self._consumer.get_watermark_offsets(each, timeout=PATIENCE_S)[1])
            for each in self._consumer.assignment()
        ]
        deadline = time.monotonic() + PATIENCE_S
        while any(self._consumer.position([each])[0].offset < end for each, end in ends if end):
            assert time.monotonic() < deadline
            self.read()

    def close(self) -> None:
        self._consumer.close()


class InputTopic:
    """There from the start; closed with the block.

    name: the input topic's; None: the default one.  makes: whether that has to be made.
    out, dead: the other topics, if the stream names others.
    """

    def __init__(
        self,
        broker: str,
        prefix: str,
        stream: str,
        partitions: int = 1,
        name: str | None = None,
        *,
        makes: bool = True,
        out: str = "",
        dead: str = "",
    ) -> None:
        self.broker, self.partitions = broker, partitions
        self.topics = Topics(prefix)
        self.input = name or self.topics.input(stream)
        self._dead, self._out = dead or self.topics.dead(stream), out or self.topics.output(stream)
        self._producer = self._made_producer()
        self._transport = KafkaTransport(quick_settings(broker))
        if makes:
            self.make()
        self._tails: dict[str, TopicTail] = {}

    def __enter__(self) -> "InputTopic":
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        for tail in self._tails.values():
            tail.close()
        self._producer.close()
        self._transport.close()

    def make(self) -> None:
        """Have the input topic."""
        self._transport.create_topic(self.input, self.partitions)

    def delete(self) -> None:
        """Have it no more."""
        self._transport.delete_topic(self.input)

    def grow(self, partitions: int) -> None:
        """Give it more partitions."""
        admin = AdminClient({"bootstrap.servers": self.broker})
        admin.create_partitions([NewPartitions(self.input, partitions)])[self.input].result(PATIENCE_S)
        self.partitions = partitions
        # It would look for new partitions only after minutes.
        self._producer = self._made_producer()

    def _made_producer(self) -> Producer:
        return Producer({"bootstrap.servers": self.broker, "linger.ms": 0, "message.max.bytes": 20_000_000})

    def send(self, values: Iterable[Any], partition: int = 0, **more: Any) -> list[int]:
        """Write values, JSON unless they are bytes or None; their offsets."""
        offsets: list[int] = []

        def report(error: KafkaError | None, message: Message) -> None:
            assert error is None, error
            offset = message.offset()
            assert offset is not None
            offsets.append(offset)

        for value in values:
            body = value if value is None or isinstance(value, bytes) else json.dumps(value).encode()
            self._producer.produce(self.input, body, partition=partition, on_delivery=report, **more)
        self._producer.flush()
        return offsets

    def read_all(self) -> None:
        """Take all replies and letters that there are by now."""
        for topic in (self._out, self._dead):
            self.tail(topic).read_all()

    @property
    def replies(self) -> list[dict[str, Any]]:
        """What the output topic holds."""
        return [json.loads(value) for _, value in self.answered]

    @property
    def written(self) -> list[Message]:
        """The records in the output topic."""
        return self.tail(self._out).messages

    @property
    def answered(self) -> list[tuple[bytes, bytes]]:
        """Keys and values of the records in the output topic."""
        return [(message.key() or b"", message.value() or b"") for message in self.written]

    @property
    def letters(self) -> list[Message]:
        """What the topic of dead letters holds."""
        return self.tail(self._dead).messages

    def tail(self, topic: str) -> TopicTail:
        if topic not in self._tails:
            self._await(lambda: topic in self._transport.topics(), topic)
            self._tails[topic] = TopicTail(self.broker, topic, self._transport.topics()[topic])
        self._tails[topic].read()
        return self._tails[topic]

    def await_replies(self, n: int, wait_s: float = PATIENCE_S) -> list[dict[str, Any]]:
        """Once there are so many."""
        self._await(lambda: len(self.tail(self._out).messages) >= n, f"{n} replies", wait_s)
        return self.replies

    def await_letters(self, n: int, wait_s: float = PATIENCE_S) -> list[Message]:
        """Once there are so many."""
        self._await(lambda: len(self.tail(self._dead).messages) >= n, f"{n} letters", wait_s)
        return self.letters

    def _await(self, is_so: Callable[[], bool], what: str, wait_s: float = PATIENCE_S) -> None:
        deadline = time.monotonic() + wait_s
        while not is_so():
            there = {topic: len(tail.messages) for topic, tail in self._tails.items()}
            assert time.monotonic() < deadline, f"{what}: {there}"
            time.sleep(0.01)


def headers_of(message: Message) -> Mapping[str, str]:
    """As text."""
    found = message.headers()
    assert isinstance(found, list)
    return {name: value.decode() if isinstance(value, bytes) else "" for name, value in found}
