"""The newest records of a topic, of each partition as many as there are and fit."""

import time
from pathlib import Path

import pytest
from confluent_kafka import Producer

from railgun.messaging.errors import TopicMissingError, TransportRefusedError
from railgun.messaging.kafka.newest import newest_records
from railgun.messaging.kafka.transport import KafkaTransport
from tests.broker.own_topics import own_prefix
from tests.broker.secured_broker import Right, SecuredBroker
from tests.unit.local_units import quick_settings

_S = 30.0
_MANY = 1 << 20


def topic_with(broker: str, counts: list[int], transactional: bool = False) -> str:
    """A topic whose partitions have so many records, numbered from 0 on."""
    topic = own_prefix("newest-")
    transport = KafkaTransport(quick_settings(broker))
    try:
        transport.create_topic(topic, len(counts))
    finally:
        transport.close()
    producer = Producer(
        {"bootstrap.servers": broker} | ({"transactional.id": topic} if transactional else {})
    )
    if transactional:
        producer.init_transactions(_S)
        producer.begin_transaction()
    for partition, count in enumerate(counts):
        for number in range(count):
            producer.produce(topic, b"%d" % number, partition=partition)
    if transactional:
        producer.commit_transaction(_S)
    assert producer.flush(_S) == 0
    return topic


def read(broker: str, topic: str, most: int, most_bytes: int = _MANY) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for message in newest_records(quick_settings(broker), topic, most, most_bytes):
        found.setdefault(message.partition() or 0, []).append(int(message.value() or b""))
    return found


def test_what_small_partitions_lack_is_left_to_the_others(kafka: str) -> None:
    topic = topic_with(kafka, [50, 0, 2, 40])
    assert read(kafka, topic, 22) == {0: [*range(40, 50)], 2: [0, 1], 3: [*range(30, 40)]}
    assert read(kafka, topic, 10_000) == {0: [*range(50)], 2: [0, 1], 3: [*range(40)]}
    assert sum(map(len, read(kafka, topic, 10_000, 20).values())) < 92


def test_the_end_of_a_transaction_is_no_record(kafka: str) -> None:
    topic = topic_with(kafka, [5], transactional=True)
    # The broker writes the end after it has answered.
    deadline_s = time.monotonic() + _S
    while not (found := read(kafka, topic, 3)):
        assert time.monotonic() < deadline_s
    assert found == {0: [3, 4]}


def test_a_topic_without_records_or_none(kafka: str) -> None:
    assert read(kafka, topic_with(kafka, [0, 0]), 10) == {}
    with pytest.raises(TopicMissingError):
        newest_records(quick_settings(kafka), own_prefix("none-"), 10, _MANY)


def test_the_right_to_read_the_topic_is_enough(tmp_path: Path) -> None:
    broker = SecuredBroker(tmp_path / "broker")
    try:
        broker.begin()
        topic = topic_with(broker.open_address, [3])
        broker.add_user("u", "pw")
        settings = broker.settings("u", "pw")
        with pytest.raises(
            TransportRefusedError, match=f"{topic}: .* Give this user the right Read on the topic"
        ):
            newest_records(settings, topic, 10, _MANY)
        broker.grant("u", [Right("Read", "topic", topic)])
        deadline_s = time.monotonic() + _S
        while True:
            try:
                assert len(newest_records(settings, topic, 10, _MANY)) == 3
                break
            except TransportRefusedError:
                # The broker hears of a right a moment after it was given.
                assert time.monotonic() < deadline_s
    finally:
        broker.stop()
