"""Shares one admin client, with its threads and connections, among all transports of a process with equal settings."""

import os
import threading
from weakref import WeakValueDictionary

from railgun.messaging.kafka.clients import AdminClient
from railgun.messaging.kafka.errors import ClientErrors, create_client
from railgun.messaging.kafka.settings import KafkaSettings


class KafkaAdmin:
    """An admin client and the errors that it reports. Its threads end with it: closed, or when the last reference goes.

    client_errors: those of an earlier client that this one replaces; None if there is none.
    """

    __slots__ = ("__weakref__", "client", "client_errors")

    def __init__(self, settings: KafkaSettings, client_errors: ClientErrors | None = None) -> None:
        self.client_errors = client_errors or ClientErrors()
        configuration = {**settings.admin(), "error_cb": self.client_errors}
        self.client = create_client(settings.broker, lambda: AdminClient(configuration))


# Guarded by `_lock`.
_shared: WeakValueDictionary[str, KafkaAdmin] = WeakValueDictionary()
_lock = threading.Lock()


def shared_admin(settings: KafkaSettings) -> KafkaAdmin:
    """Return the process's admin client for these settings. Raises TransportRefusedError if a setting is wrong."""
    # A forked process inherits the client, but none of its threads, so it gets its own.
    key = f"{os.getpid()} {sorted(settings.admin().items(), key=str)}"
    with _lock:
        found = _shared.get(key)
        if found is None:
            found = _shared[key] = KafkaAdmin(settings)
        return found
