"""librdkafka's clients, kept in a register of the process, and a call that enqueues many records.

Every client of the process is made from these classes, so that `ClientWatchdog` can ask each whether it has brokers.
"""

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

# Guarded by `_register_lock`.
_register: "WeakSet[Client]" = WeakSet()
_register_lock = threading.Lock()


class _Registered:
    """A base class of clients, which registers them.

    broker: the bootstrap address.  asking: held while `brokers_of` asks the client, and while it is closed: a closed
    client must not be asked.
    """

    broker: str
    asking: threading.Lock

    def __init__(self, configuration: dict[str, Any]) -> None:
        super().__init__(configuration)  # type: ignore[call-arg]
        self.broker, self.asking = str(configuration["bootstrap.servers"]), threading.Lock()
        with _register_lock:
            _register.add(self)  # type: ignore[arg-type]


class _Closable(_Registered):
    """A base class of clients that have a `close`: it waits until nobody asks the client."""

    def close(self) -> Any:
        """Close the client as its own `close` does."""
        with self.asking:
            return super().close()  # type: ignore[misc]


class Consumer(_Closable, confluent_kafka.Consumer):
    """confluent_kafka's consumer, registered."""


class Producer(_Closable, confluent_kafka.Producer):
    """confluent_kafka's producer, registered."""


class AdminClient(_Registered, confluent_admin.AdminClient):
    """confluent_kafka's admin client, registered."""

    def close(self) -> None:
        """End the client, its threads and connections, once nobody asks it."""
        with self.asking:
            # The only call that ends it at once. A client that is let go of may live on, held by an exception.
            self.__exit__(None, None, None)


Client = AdminClient | Consumer | Producer


def clients(broker: str) -> list[Client]:
    """Return the clients of this process that have this bootstrap address."""
    with _register_lock:
        registered = list(_register)
    return [each for each in registered if each.broker == broker]


def brokers_of(client: Client, topic: str, within_s: float) -> int | None:
    """Ask a client for the metadata of a topic, and return how many brokers the answer names.

    None: the client knew no broker to ask, for `within_s` seconds.
    Raises KafkaException if there is no answer for another reason. Its code is _DESTROY if the client is closed, being
    closed, or being asked by another thread.
    """
    if not client.asking.acquire(blocking=False):
        raise KafkaException(KafkaError(KafkaError._DESTROY))
    try:
        return len(client.list_topics(topic, within_s).brokers)
    except KafkaException as error:
        if error.args[0].code() != KafkaError._TRANSPORT:
            raise
        return None
    except RuntimeError as error:
        # confluent_kafka raises this for a closed client.
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
    on_delivery: is called for each record that was taken. None: the producer's own callback is.
    """
    if headers is not None:
        return _produce_each(producer, topic, partition, values, keys, headers, on_delivery)
    callback: dict[str, Any] = {} if on_delivery is None else {"on_delivery": on_delivery}
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
    on_delivery: Report | None,
) -> list[KafkaError]:
    """Enqueue records one by one, up to the first that is not taken: `produce_batch` takes no headers."""
    taken, produce = 0, producer.produce
    try:
        for value, key, each in zip(values, keys or [None] * len(values), headers):
            own = each if isinstance(each, list) else list(each)
            # By place: arguments by name would take longer than all the rest.
            produce(topic, value, key, partition, on_delivery, None, 0, own)
            taken += 1
    except BufferError:
        return [KafkaError(KafkaError._QUEUE_FULL)] * (len(values) - taken)
    except KafkaException as error:
        return [error.args[0]] * (len(values) - taken)
    return []
