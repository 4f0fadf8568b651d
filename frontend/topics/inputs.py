"""Begins an input for each stream that has an input topic, ends it with the topic, and begins it again if it failed."""

import logging
import threading
from collections.abc import Callable, Mapping
from time import monotonic

from frontend.topics.route import Means, Route
from frontend.topics.stream_input import StreamInput
from frontend.topics.stream_output import StreamOutput
from frontend.topics.windows import PARTITIONS_MAX
from railgun.messaging.errors import TransportClosedError, TransportError, TransportRefusedError
from railgun.messaging.kafka.output import Output, PlainOutput, TransactionalOutput
from railgun.messaging.kafka.transport import KafkaTransport

_LOOK_S = 1.0
_AGAIN_S, _AGAIN_MAX_S, _HEALTHY_S = 0.5, 10.0, 30.0
# The time for all inputs to finish what is under way, to leave their groups, and to give up transactions.
_END_S = 40.0

_log = logging.getLogger("railgun.frontend")


class Inputs:
    """Looks for input topics about once a second, in a thread of its own.

    is_transactional: whether each reply is in the output topic exactly once.
    """

    def __init__(self, means: Means, transport: KafkaTransport, *, is_transactional: bool = False) -> None:
        self._means, self._transport = means, transport
        self._is_transactional = is_transactional
        self._running: dict[str, StreamInput] = {}
        self._troubles: dict[str, _Trouble] = {}
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="inputs", daemon=True)
        self._thread.start()

    @property
    def running(self) -> dict[str, StreamInput]:
        """The inputs that run now, by stream."""
        return dict(self._running)

    def close(self) -> None:
        """End all inputs, after what is under way. An input that waits for the broker too long is not waited for."""
        self._stopped.set()
        self._thread.join()
        for each in self._running.values():
            each.stop()
        deadline = monotonic() + _END_S
        for each in self._running.values():
            each.join(max(0.0, deadline - monotonic()))

    def _run(self) -> None:
        while True:
            try:
                self._look()
            except TransportClosedError:
                return
            except TransportError as error:
                _log.warning("input topics cannot be looked for now: %s", error)
            if self._stopped.wait(_LOOK_S):
                return

    def _look(self) -> None:
        topics = self._transport.topics()
        streams = self._means.intakes.now.catalog.streams
        requested: dict[str, Route] = {}
        for name, entry in streams.items():
            topic = self._means.topics.input(name)
            if 0 < topics.get(topic, 0) <= PARTITIONS_MAX:
                output = StreamOutput.of(entry.stream, self._means.topics)
                requested[name] = Route(name, entry.created, self._transport.topic_id(topic), output)
        for name, running in list(self._running.items()):
            if running.is_over or running.route != requested.get(name):
                self._end(name, running)
        for name, route in requested.items():
            trouble = self._troubles.get(name)
            if name not in self._running and (trouble is None or trouble.again_s <= monotonic()):
                self._begin(route, topics)

    def _begin(self, route: Route, topics: Mapping[str, int]) -> None:
        topic = self._means.topics.input(route.stream)
        try:
            route.output.make_topics(self._transport, topics, topics[topic])
        except TransportRefusedError as error:
            # It is about this stream's topics. Others begin.
            self._failed(route.stream, str(error))
            return
        _log.info("events are read from %s", topic)
        self._running[route.stream] = StreamInput(route, self._means, self._output(route.stream))

    def _end(self, name: str, running: StreamInput) -> None:
        running.stop()
        running.join()
        del self._running[name]
        if running.failure is None:
            self._troubles.pop(name, None)
            return
        self._failed(name, running.failure)

    def _failed(self, name: str, why: str) -> None:
        """Note that the input of a stream does not run, and is to begin again soon."""
        self._troubles.setdefault(name, _Trouble()).failed()
        _log.error("%s is not read for now, and again soon: %s", self._means.topics.input(name), why)

    def _output(self, stream: str) -> Callable[[Callable[[], bool]], Output]:
        means = self._means
        if not self._is_transactional:
            return lambda is_stopping: PlainOutput(means.settings, is_stopping)
        name = f"{means.topics.input(stream)}.{means.exchange.front_end.name}"
        return lambda is_stopping: TransactionalOutput(means.settings, name)


class _Trouble:
    """The delay after the last failures of an input, and when the input may begin again."""

    def __init__(self) -> None:
        self._delay_s = 0.0
        self.again_s = 0.0

    def failed(self) -> None:
        """Note that the input failed now."""
        now_s = monotonic()
        is_new = now_s - self.again_s > _HEALTHY_S
        self._delay_s = _AGAIN_S if is_new else min(2 * self._delay_s, _AGAIN_MAX_S)
        self.again_s = now_s + self._delay_s
