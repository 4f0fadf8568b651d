"""A system with hopping windows, for the tests of figure 8: `python -m tests.bench.planted_hops HOP_MS TASK`.

Like Flink's it answers each event with the oldest open window of its card, and rounds at each step.
"""

import json
import sys
import threading

from confluent_kafka import Consumer, Producer, TopicPartition

from bench.peers.consumer_deque import events
from bench.peers.protocol import Task, when_input_ends
from bench.process import end_in_order


def main(hop_ms: int, task: Task) -> None:
    """Answer events until the standard input ends."""
    ended = threading.Event()
    when_input_ends(ended.set)
    (window_ms,) = task.windows_ms
    cards: dict[str, list[tuple[int, float]]] = {}
    producer = Producer({"bootstrap.servers": task.broker, "linger.ms": 0})
    consumer = Consumer({"bootstrap.servers": task.broker, "group.id": "planted"})
    consumer.assign([TopicPartition(task.input, 0, 0)])
    for event in events(consumer, task.input, ended):
        opened_ms = event["ts"] // hop_ms * hop_ms + hop_ms - window_ms
        held = [each for each in cards.get(event["card"], []) if each[0] >= opened_ms]
        cards[event["card"]] = [*held, (event["ts"], event["amount"])]
        answer = {"id": event["tx_id"], "s": sum(amount for _, amount in cards[event["card"]])}
        producer.produce(task.output, json.dumps(answer), event["tx_id"], partition=0)
        producer.poll(0)
    producer.flush()
    consumer.close()


if __name__ == "__main__":
    end_in_order()
    hop, text = sys.argv[1:]
    main(int(hop), Task.of_text(text))
