"""Records that are read together are told apart by topic and partition, and stay in order."""

import pytest
from confluent_kafka import Message

from frontend.topics.stream_input import by_partition
from railgun.messaging.transport import TopicPartition


@pytest.mark.parametrize(("topics", "partitions"), [(1, 1), (1, 3), (3, 1), (3, 3)])
def test_each_record_is_with_those_of_its_partition(topics: int, partitions: int) -> None:
    wheres = [
        TopicPartition(f"t{topic}", partition) for topic in range(topics) for partition in range(partitions)
    ]
    # Neighbours are of different partitions.
    messages = [
        Message(topic=where.topic, partition=where.partition, offset=offset)
        for offset in range(5)
        for where in wheres
    ]
    found = [(where, [each.offset() for each in own]) for where, own in by_partition(messages)]
    assert found == [(where, [0, 1, 2, 3, 4]) for where in wheres]
