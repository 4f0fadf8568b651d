"""The Kafka bench runs: each of its figures comes from as many records as were asked for."""

from bench.kafka import one_way_ms, read_per_s, task_per_s, write_per_s
from railgun.messaging.kafka.settings import KafkaSettings
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.messaging.transport import TopicPartition
from tests.broker.own_topics import own_prefix


def test_each_figure_is_measured(kafka: str) -> None:
    topic = own_prefix("bench-")
    near, bulk, unit = (TopicPartition(topic, partition) for partition in range(3))
    with KafkaTransport(KafkaSettings(kafka)) as log:
        log.create_topic(topic, 3)
        times_ms = one_way_ms(log, near, 50)
        assert len(times_ms) == 50
        assert min(times_ms) > 0
        assert write_per_s(log, bulk, 4_000) > 0
        assert log.end_offset(*bulk) == 4_000
        assert read_per_s(kafka, bulk, 4_000) > 0
        assert min(task_per_s(log, unit, 4_000)) > 0
        assert log.end_offset(*unit) > 4_000
