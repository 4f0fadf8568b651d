"""Stands for kcat where it is not installed: -P writes lines as records, -C prints a topic's records as -f says."""

import argparse
import sys

from confluent_kafka import Consumer, Message, Producer, TopicPartition

_ANSWER_S = 30.0


def _write(broker: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": broker})
    failures: list[str] = []

    def note(error: object, message: Message) -> None:
        if error is not None:
            failures.append(str(error))

    for line in sys.stdin.buffer:
        producer.produce(topic, line.rstrip(b"\n"), on_delivery=note)
    producer.flush(_ANSWER_S)
    if failures:
        sys.exit(failures[0])


def _follow(broker: str, topic: str, pattern: str) -> None:
    consumer = Consumer({"bootstrap.servers": broker, "group.id": "kcat", "enable.auto.commit": False})
    found = consumer.list_topics(topic, _ANSWER_S).topics[topic]
    if found.error is not None:
        sys.exit(str(found.error))
    consumer.assign([TopicPartition(topic, each, 0) for each in found.partitions])
    while True:
        message = consumer.poll(1.0)
        if message is not None and message.error() is None:
            headers = ",".join(f"{name}={_text(value)}" for name, value in message.headers() or [])
            shown = pattern.replace(r"\n", "\n").replace("%h", headers)
            sys.stdout.write(shown.replace("%s", _text(message.value())))
            sys.stdout.flush()


def _text(value: bytes | str | None) -> str:
    return value.decode() if isinstance(value, bytes) else value or ""


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("-P", dest="writes", action="store_true")
    parser.add_argument("-C", dest="reads", action="store_true")
    parser.add_argument("-u", dest="unbuffered", action="store_true")
    parser.add_argument("-b", dest="broker", required=True)
    parser.add_argument("-t", dest="topic", required=True)
    parser.add_argument("-f", dest="pattern", default=r"%s\n")
    given = parser.parse_args()
    if given.writes:
        _write(given.broker, given.topic)
    else:
        _follow(given.broker, given.topic, given.pattern)
