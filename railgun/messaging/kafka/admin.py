"""One administrator's client for all transports of a process to the same brokers: each has threads and connections."""

import os
import threading
from weakref import WeakValueDictionary

from railgun.messaging.kafka.clients import AdminClient
from railgun.messaging.kafka.errors import Complaints, made
from railgun.messaging.kafka.settings import KafkaSettings


class KafkaAdmin:
    """Its threads end when nobody has it any more, however that came: whoever is asking still has it."""

    __slots__ = ("__weakref__", "client", "complaints")

    def __init__(self, settings: KafkaSettings) -> None:
        self.complaints = Complaints()
        configuration = {**settings.admin(), "error_cb": self.complaints}
        self.client = made(settings.broker, lambda: AdminClient(configuration))


_shared: WeakValueDictionary[str, KafkaAdmin] = WeakValueDictionary()
_sharing = threading.Lock()


def shared_admin(settings: KafkaSettings) -> KafkaAdmin:
    """The one for these settings. Raises TransportRefusedError where they are wrong."""
    # A forked process has the client, but none of its threads.
    key = f"{os.getpid()} {sorted(settings.admin().items(), key=str)}"
    with _sharing:
        found = _shared.get(key)
        if found is None:
            found = _shared[key] = KafkaAdmin(settings)
        return found
