"""librdkafka's clients as every part of a process makes them: known as long as they are there, so that each can be
asked whether it still has brokers. And producing many records with one call."""

import threading
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakSet

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException, Message
from confluent_kafka import admin as confluent_admin

from railgun.messaging.transport import Headers

# The key in which `produce_batch` leaves why it did not take a record.
_ERROR = "_error"
Report = Callable[[KafkaError | None, Message], None]

_there: "WeakSet[Client]" = WeakSet()
_noting = threading.Lock()


class _Known:
    """Beneath a client: notes it. broker: the address it was given.  asking: held while it is asked."""

    broker: str
    asking: threading.Lock

    def __init__(self, configuration: dict[str, Any]) -> None:
        super().__init__(configuration)  # type: ignore[call-arg]
        self.broker, self.asking = str(configuration["bootstrap.servers"]), threading.Lock()
        with _noting:
            _there.add(self)  # type: ignore[arg-type]


class _Closed(_Known):
    """Of one that is closed: meanwhile it must not be asked, as what it is made of goes."""

    def close(self) -> Any:
        """As the client's own."""
        with self.asking:
            return super().close()  # type: ignore[misc]


class Consumer(_Closed, confluent_kafka.Consumer):
    """confluent_kafka's, known."""


class Producer(_Closed, confluent_kafka.Producer):
    """confluent_kafka's, known."""


class AdminClient(_Known, confluent_admin.AdminClient):
    """confluent_kafka's, known."""


Client = AdminClient | Consumer | Producer


def clients(broker: str) -> list[Client]:
    """Those that there are of a cluster, by the address that they were given."""
    with _noting:
        there = list(_there)
    return [each for each in there if each.broker == broker]


def brokers_of(client: Client, topic: str, within_s: float) -> int | None:
    """How many brokers a client is told of; None where it knows of none that it could ask, for so long. Raises
    KafkaException where that cannot be said now, as of one that is being closed."""
    if not client.asking.acquire(blocking=False):
        raise KafkaException(KafkaError(KafkaError._DESTROY))
    try:
        return len(client.list_topics(topic, within_s).brokers)
    except KafkaException as error:
        if error.args[0].code() != KafkaError._TRANSPORT:
            raise
        return None
    except RuntimeError as error:
        # It was closed.
        raise KafkaException(KafkaError(KafkaError._DESTROY)) from error
    finally:
        client.asking.release()


def produce_all(
    producer: confluent_kafka.Producer,
    topic: str,
    partition: int,
    values: Sequence[bytes | None],
    keys: Sequence[bytes | None] | None = None,
    headers: Sequence[Headers] | None = None,
    on_delivery: Report | None = None,
) -> list[KafkaError]:
    """Enqueue records in librdkafka, in order. Returns an error for each record that it did not take.

    Without headers it is one call, so that all go out together: librdkafka sends what is enqueued when its thread
    wakes, and wakes on the first record.

    partition: −1 for the one that the partitioner chooses by the key.
    on_delivery: called for each record that was taken. None: the producer's own callback is.
    """
    callback: dict[str, Any] = {} if on_delivery is None else {"on_delivery": on_delivery}
    if headers is not None:
        return _produce_each(producer, topic, partition, values, keys, headers, callback)
    messages: list[dict[str, Any]]
    if keys is None:
        messages = [{"value": value} for value in values]
    else:
        messages = [{"value": value, "key": key} for value, key in zip(values, keys)]
    try:
        if producer.produce_batch(topic, messages, partition, **callback) == len(messages):
            return []
    except KafkaException as error:
        return [error.args[0]] * len(messages)
    return [message[_ERROR] for message in messages if _ERROR in message]


def _produce_each(
    producer: confluent_kafka.Producer,
    topic: str,
    partition: int,
    values: Sequence[bytes | None],
    keys: Sequence[bytes | None] | None,
    headers: Sequence[Headers],
    callback: dict[str, Any],
) -> list[KafkaError]:
    """As `produce_all`, up to the first record that is not taken: `produce_batch` takes no headers."""
    taken = 0
    try:
        for value, key, each in zip(values, keys or [None] * len(values), headers):
            producer.produce(topic, value, key, partition, headers=list(each), **callback)
            taken += 1
    except BufferError:
        return [KafkaError(KafkaError._QUEUE_FULL)] * (len(values) - taken)
    except KafkaException as error:
        return [error.args[0]] * (len(values) - taken)
    return []
