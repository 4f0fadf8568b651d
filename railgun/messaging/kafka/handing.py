"""Many records to librdkafka in one call: it sends together what it has when it looks, and looks at the first."""

from collections.abc import Callable, Sequence
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

_ERROR = "_error"
Report = Callable[[KafkaError | None, Message], None]


def hand_over(
    producer: Producer,
    topic: str,
    values: Sequence[bytes | None],
    keys: Sequence[bytes | None] | None,
    partition: int,
    report: Report | None = None,
) -> list[KafkaError]:
    """Why records were not taken, one error for each; none where all were.

    partition: −1 for the one that each key says.  report: called for each that was taken; None: the producer's own.
    """
    messages: list[dict[str, Any]]
    if keys is None:
        messages = [{"value": value} for value in values]
    else:
        messages = [{"value": value, "key": key} for value, key in zip(values, keys)]
    more = {} if report is None else {"on_delivery": report}
    try:
        if producer.produce_batch(topic, messages, partition, **more) == len(messages):
            return []
    except KafkaException as error:
        return [error.args[0]] * len(messages)
    return [message[_ERROR] for message in messages if _ERROR in message]
