"""Whether a client of this process has lost all its brokers for good: then only a new one helps, and so a new process.

Where the only broker leaves itself out of what it says of the cluster, as one does that was halted for longer than its
session or that is about to stop, a client forgets it and is to begin with the addresses that it was given again.
librdkafka (2.10 to 2.16; its issue 5301) calls that off where it looks at such an answer just after the connection
went, and does not try again: the client has no broker from then on, whatever its settings.
"""

import logging
import threading
from collections.abc import Callable
from time import monotonic
from weakref import ReferenceType, ref

from confluent_kafka import KafkaError, KafkaException

from railgun.messaging.errors import TransportError
from railgun.messaging.kafka.clients import AdminClient, Client, brokers_of, clients
from railgun.messaging.kafka.errors import Complaints, made
from railgun.messaging.kafka.settings import KafkaSettings

_LOOK_S, _ANSWER_S = 5.0, 2.0
# So often in a row, and for so many times the longest pause between attempts to connect, one client has nobody to ask
# and another one, made anew, is answered.
_LOST = 3
_BACKOFF_MS = 10_000
_log = logging.getLogger("railgun.kafka")


class LostBrokers:
    """Looks in a thread of its own, where clients complain. topic: that all may ask for; it need not be there.

    reason: why the process has to end; None while it has not.  on_lost: called once, in that thread.
    """

    def __init__(
        self, settings: KafkaSettings, topic: str, on_lost: Callable[[], object] = lambda: None
    ) -> None:
        self._settings, self._topic, self._on_lost = settings, topic, on_lost
        self._stopped = threading.Event()
        self._suspect: ReferenceType[Client] | None = None
        self._misses, self._since_s = 0, 0.0
        backoff_ms = float(settings.pass_through.get("reconnect.backoff.max.ms", _BACKOFF_MS))
        self._patience_s = _LOST * backoff_ms / 1000
        self.reason: str | None = None

    def watch(self) -> None:
        """From now on, until it is stopped or one is lost."""
        threading.Thread(target=self._watch, name="lost-brokers", daemon=True).start()

    def stop(self) -> None:
        """Look no more. From any thread."""
        self._stopped.set()

    def _watch(self) -> None:
        heard = 0
        while not self._stopped.wait(_LOOK_S):
            told = Complaints.told
            if told == heard:
                continue
            # Asked until all have answered: nobody complains of what does not change.
            if self.look():
                heard = told
            elif self.reason is not None:
                _log.error("%s", self.reason)
                self._on_lost()
                return

    def look(self) -> bool:
        """Whether every client is told of brokers; else what is wrong has to be looked at again."""
        silent, are_well = self._asked()
        if silent is None or not self._new_one_has_brokers():
            self._misses = 0
        else:
            self._missed(silent)
        return are_well

    def _asked(self) -> tuple[Client | None, bool]:
        """A client that has nobody to ask, the one that had none the last time before others; whether there is no such
        one and all are told of brokers."""
        suspect, are_well = self._last(), True
        for client in sorted(clients(self._settings.broker), key=lambda each: each is not suspect):
            try:
                brokers = brokers_of(client, self._topic, _ANSWER_S)
            except KafkaException as error:
                if error.args[0].code() == KafkaError._DESTROY:
                    continue
                # One that has somebody to ask is not lost.
                brokers = 0
            if brokers is None:
                return client, False
            are_well = are_well and brokers > 0
        return None, are_well

    def _last(self) -> Client | None:
        return None if self._suspect is None else self._suspect()

    def _missed(self, client: Client) -> None:
        if client is not self._last() or not self._misses:
            self._suspect, self._misses, self._since_s = ref(client), 0, monotonic()
        self._misses += 1
        if self._misses >= _LOST and monotonic() - self._since_s >= self._patience_s:
            self.reason = (
                f"a client has lost the brokers for good, which a new one reaches ({self._settings.broker}; "
                "https://github.com/confluentinc/librdkafka/issues/5301): this process ends, to be started again"
            )

    def _new_one_has_brokers(self) -> bool:
        try:
            anew = made(self._settings.broker, lambda: AdminClient(self._settings.admin()))
            return bool(brokers_of(anew, self._topic, _ANSWER_S))
        except (KafkaException, TransportError):
            return False
