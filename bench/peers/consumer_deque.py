"""The peer that anyone writes first on Kafka: a consumer, the dictionary of deques, a producer. One event at a time.

Default settings of confluent-kafka, positions committed in the background. The deques are lost with the process.
"""

import json
import sys
import threading
from collections.abc import Iterator
from typing import Any

from confluent_kafka import Consumer, Producer

from bench.peers.dict_deque import Cards
from bench.peers.protocol import Task, reply, when_input_ends
from bench.process import end_in_order

_POLL_S = 0.2


def main(task: Task) -> None:
    """Answer events until the standard input ends."""
    ended = threading.Event()
    when_input_ends(ended.set)
    cards = Cards(task.windows_ms)
    common = {"bootstrap.servers": task.broker}
    producer = Producer(common)
    consumer = Consumer({**common, "group.id": task.prefix, "auto.offset.reset": "earliest"})
    consumer.subscribe([task.input])
    for event in events(consumer, task.input, ended):
        answer = json.dumps(reply(event["tx_id"], enumerate(cards.add(event))))
        while True:
            try:
                producer.produce(task.output, answer, event["tx_id"])
                break
            except BufferError:
                producer.poll(_POLL_S)
        producer.poll(0)
    producer.flush()
    consumer.close()


def events(consumer: Consumer, topic: str, ended: threading.Event) -> Iterator[dict[str, Any]]:
    """Yield each event that comes to a consumer of a topic, until `ended` is set. Ends the process on an error."""
    while not ended.is_set():
        message = consumer.poll(_POLL_S)
        if message is None:
            continue
        if error := message.error():
            raise SystemExit(f"{topic}: {error}")
        value = message.value()
        assert value is not None
        yield json.loads(value)


if __name__ == "__main__":
    end_in_order()
    main(Task.of_text(sys.argv[1]))
