"""Reads the newest records of a topic by itself: without a group, and without committing anything."""

from collections.abc import Mapping
from time import monotonic

from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from railgun.messaging.errors import TopicMissingError, TransportUnavailableError
from railgun.messaging.kafka.clients import Consumer
from railgun.messaging.kafka.errors import (
    ClientErrors,
    as_transport_error,
    create_client,
    is_missing,
    is_transient,
)
from railgun.messaging.kafka.settings import KafkaSettings

_POLL_S = 0.2
_MAKE_IT = "Check its name; `railgun broker topic NAME` makes one on a local broker, your broker's own tool on others"


def newest_records(settings: KafkaSettings, topic: str, most: int, most_bytes: int) -> list[Message]:
    """Return the newest records of a topic, of each partition in order.

    most: how many offsets are read, divided among the partitions.  most_bytes: of the values.
    Raises TransportError; TopicMissingError if there is no such topic.
    """
    reported = ClientErrors(logs=False)
    consumer = create_client(settings.broker, lambda: Consumer({**settings.consumer(), "error_cb": reported}))
    try:
        starts = _starts(consumer, settings, topic, most)
        consumer.assign([TopicPartition(topic, partition, start) for partition, start in starts.items()])
        return _read(consumer, settings, topic, len(starts), most_bytes)
    except KafkaException as error:
        place = f"{settings.broker}: {topic}"
        if is_missing(error.args[0]):
            raise TopicMissingError(place, _MAKE_IT) from error
        # A client reports its errors when it is polled.
        consumer.poll(0)
        raise as_transport_error(place, error.args[0], reported.last, "Read") from error
    finally:
        consumer.close()


def _starts(consumer: Consumer, settings: KafkaSettings, topic: str, most: int) -> Mapping[int, int]:
    """Return the first offset to read of each partition that has records."""
    timeout_s = settings.answer_timeout_s
    found = consumer.list_topics(topic, timeout=timeout_s).topics[topic]
    if found.error is not None:
        raise KafkaException(found.error)
    bounds = {
        partition: consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=timeout_s)
        for partition in found.partitions
    }
    sizes = {partition: end - first for partition, (first, end) in bounds.items() if end > first}
    starts, left = {}, most
    # The smaller ones first: what they lack is left to the others.
    for number, (partition, size) in enumerate(sorted(sizes.items(), key=lambda each: each[1])):
        share = min(size, max(1, left // (len(sizes) - number)))
        starts[partition] = bounds[partition][1] - share
        left -= share
    return starts


def _read(
    consumer: Consumer, settings: KafkaSettings, topic: str, partitions: int, most_bytes: int
) -> list[Message]:
    """Read the assigned partitions to their ends."""
    records: list[Message] = []
    ended: set[int | None] = set()
    size, deadline_s = 0, monotonic() + settings.answer_timeout_s
    while len(ended) < partitions and size < most_bytes:
        message = consumer.poll(_POLL_S)
        if message is None:
            if monotonic() > deadline_s:
                remedy = "Check that all partitions of the topic have leaders"
                raise TransportUnavailableError(topic, "its records did not come in time", remedy)
            continue
        error = message.error()
        if error is None:
            records.append(message)
            size += len(message.value() or b"")
        elif error.code() == KafkaError._PARTITION_EOF:
            ended.add(message.partition())
        # librdkafka asks for the group of every consumer. None is used here, so no right on it is needed.
        elif error.code() != KafkaError.GROUP_AUTHORIZATION_FAILED and not is_transient(error):
            raise KafkaException(error)
    return sorted(records, key=lambda each: each.partition() or 0)
