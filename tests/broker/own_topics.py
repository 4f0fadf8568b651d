"""Prefixes for topics on the broker that all tests of a run share, and an end to these topics.

Whoever asks a broker for its topics gets all of them. So a module's topics go once all its tests have run.
"""

import uuid
from concurrent.futures import wait
from contextlib import suppress

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from tests.broker import shared_broker

_LIMIT_S = 30.0
_prefixes: list[str] = []


def own_prefix(start: str) -> str:
    """A prefix that no other test has, for names of topics, groups and the like."""
    made = f"{start}{uuid.uuid4().hex[:12]}"
    _prefixes.append(made)
    return made


def delete_own() -> None:
    """Delete what this process's tests have made on the shared broker since it was last called."""
    prefixes = tuple(_prefixes)
    _prefixes.clear()
    address = shared_broker.known_address()
    if not prefixes or address is None:
        return
    client = AdminClient({"bootstrap.servers": address, "log_level": 0})
    # What is left over makes the broker slower, and harms no test.
    with suppress(KafkaException):
        topics = [name for name in client.list_topics(timeout=_LIMIT_S).topics if name.startswith(prefixes)]
        if topics:
            wait(client.delete_topics(topics, request_timeout=_LIMIT_S).values(), _LIMIT_S)
