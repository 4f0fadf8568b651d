"""librdkafka's clients as every part of a process makes them: known as long as they are there, so that each can be
asked whether it still has brokers."""

import threading
from typing import Any
from weakref import WeakSet

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import admin as confluent_admin

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
