"""Detects that a client of this process has lost all its brokers for good. Only a new process helps then.

The bug is in librdkafka (2.10 to 2.16; its issue 5301). When the only broker leaves itself out of the cluster's
metadata, a client forgets it and starts over with its bootstrap servers. A broker does so while it stops, or after it
was halted for longer than its session. If the connection breaks just before the client reads that metadata, the client
cancels the restart and never tries again: whatever its settings, it has no broker from then on.
"""

import logging
import threading
from collections.abc import Callable
from time import monotonic
from weakref import ReferenceType, ref

from confluent_kafka import KafkaError, KafkaException

from railgun.messaging.errors import TransportError
from railgun.messaging.kafka.clients import AdminClient, Client, brokers_of, clients
from railgun.messaging.kafka.errors import ClientErrors, create_client
from railgun.messaging.kafka.settings import RECONNECT_MAX_MS, KafkaSettings

_INTERVAL_S, _ANSWER_S = 5.0, 2.0
# A client is lost when this many checks in a row find it without brokers while a new client has some. The checks also
# have to span this many times the longest pause between attempts to connect.
_MISSES = 3
_log = logging.getLogger("railgun.kafka")


class ClientWatchdog:
    """Checks all clients of a cluster in its own thread, but only after one of them has reported an error.

    topic: the topic that clients ask a broker about; it need not exist.
    reason: why the process has to end; None while it need not.
    on_lost: is called once, in the thread, when `reason` is set.
    """

    def __init__(
        self, settings: KafkaSettings, topic: str, on_lost: Callable[[], object] = lambda: None
    ) -> None:
        self._settings, self._topic, self._on_lost = settings, topic, on_lost
        self._stopped = threading.Event()
        self._suspect: ReferenceType[Client] | None = None
        self._misses, self._first_miss_s = 0, 0.0
        backoff_ms = float(settings.pass_through.get("reconnect.backoff.max.ms", RECONNECT_MAX_MS))
        self._patience_s = _MISSES * backoff_ms / 1000
        self.reason: str | None = None

    def start(self) -> None:
        """Start the thread. It ends with `stop`, or once a client is lost."""
        threading.Thread(target=self._run, name="kafka-watchdog", daemon=True).start()

    def stop(self) -> None:
        """End the thread, without waiting for that. Any thread may call it."""
        self._stopped.set()

    def _run(self) -> None:
        checked = 0
        while not self._stopped.wait(_INTERVAL_S):
            reports = ClientErrors.reports
            if reports == checked:
                continue
            # The check is repeated until all clients are well, since a lost client reports no more errors.
            if self.check():
                checked = reports
            elif self.reason is not None:
                _log.error("%s", self.reason)
                self._on_lost()
                return

    def check(self) -> bool:
        """Return whether every client has brokers. If not, it has to be called again, and may set `reason`."""
        client, are_well = self._without_brokers()
        if client is None or not self._has_new_client_brokers():
            self._misses = 0
        else:
            self._count_miss(client)
        return are_well

    def _without_brokers(self) -> tuple[Client | None, bool]:
        """Return (a client that knows no broker to ask, or None; whether all clients have brokers).

        The suspect of the last check is asked first, so that misses in a row are of one client.
        """
        suspect, are_well = self._last_suspect(), True
        for client in sorted(clients(self._settings.broker), key=lambda each: each is not suspect):
            try:
                brokers = brokers_of(client, self._topic, _ANSWER_S)
            except KafkaException as error:
                if error.args[0].code() == KafkaError._DESTROY:
                    continue
                # It knows a broker to ask, so it is not lost.
                brokers = 0
            if brokers is None:
                return client, False
            are_well = are_well and brokers > 0
        return None, are_well

    def _last_suspect(self) -> Client | None:
        return None if self._suspect is None else self._suspect()

    def _count_miss(self, client: Client) -> None:
        if client is not self._last_suspect() or not self._misses:
            self._suspect, self._misses, self._first_miss_s = ref(client), 0, monotonic()
        self._misses += 1
        if self._misses >= _MISSES and monotonic() - self._first_miss_s >= self._patience_s:
            self.reason = (
                f"a client has lost the brokers for good, which a new one reaches ({self._settings.broker}; "
                "https://github.com/confluentinc/librdkafka/issues/5301): this process ends, to be started again"
            )

    def _has_new_client_brokers(self) -> bool:
        try:
            client = create_client(self._settings.broker, lambda: AdminClient(self._settings.admin()))
            return bool(brokers_of(client, self._topic, _ANSWER_S))
        except (KafkaException, TransportError):
            return False
