"""Begins an input for each stream that has input topics, ends it with them, and begins it again if it failed."""

import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from time import monotonic
from typing import Any

from frontend.topics.input_reports import InputReports
from frontend.topics.mappings import MappingPendingError, mapped_topics
from frontend.topics.route import Means, Route
from frontend.topics.same_topics import SameTopics
from frontend.topics.starts import start_offsets
from frontend.topics.stream_input import StreamInput
from frontend.topics.stream_output import StreamOutput
from railgun.catalog.model import StreamDefinition
from railgun.messaging.errors import TransportClosedError, TransportError
from railgun.messaging.kafka.output import Output, PlainOutput, TransactionalOutput
from railgun.messaging.kafka.topics import Described
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.messaging.transport import TopicPartition
from railgun.registry.errors import RegistryError
from railgun.registry.input_topics import PARTITIONS_MAX, InputTopic
from railgun.wording import listed

_LOOK_S = 0.5
_AGAIN_S, _AGAIN_MAX_S, _HEALTHY_S = 0.5, 10.0, 30.0
# The time for all inputs to finish what is under way, to leave their groups, and to give up transactions.
_END_S = 40.0

# How long leaders have to say where partitions end. A rebalance waits for it.
_ENDS_S = 5.0

_log = logging.getLogger("railgun.frontend")


class Inputs:
    """Looks for input topics about twice a second, in a thread of its own.

    is_transactional: whether each reply is in the output topic exactly once.
    """

    def __init__(self, means: Means, transport: KafkaTransport, *, is_transactional: bool = False) -> None:
        self._means, self._transport = means, transport
        self._is_transactional = is_transactional
        self._running: dict[str, StreamInput] = {}
        self._troubles: dict[str, _Trouble] = {}
        # By stream and topic, why the topic is not read. Each reason is logged once.
        self._unread: dict[tuple[str, str], str] = {}
        # Made with the first input: a cluster without input topics does not need them.
        self._reports: InputReports | None = None
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="inputs", daemon=True)
        self._thread.start()

    @property
    def running(self) -> dict[str, StreamInput]:
        """The inputs that run now, by stream."""
        return dict(self._running)

    def by_topic(self, stream: str) -> list[dict[str, Any]]:
        """Return how each topic of a stream stands, for people: also of those that are not read, with the reason."""
        running = self._running.get(stream)
        read = [] if running is None else running.by_topic()
        return read + [{"topic": topic, "not_read": why} for topic, why in self.not_read(stream).items()]

    def not_read(self, stream: str) -> dict[str, str]:
        """Return why topics of a stream are not read, by topic."""
        running, trouble = self._running.get(stream), self._troubles.get(stream)
        found = {topic: why for (of, topic), why in self._unread.items() if of == stream}
        if running is None:
            return found if trouble is None else dict.fromkeys(trouble.topics, trouble.why) | found
        return {topic: why for topic, why in found.items() if topic not in running.topics}

    def close(self) -> None:
        """End all inputs, after what is under way. An input that waits for the broker too long is not waited for."""
        self._stopped.set()
        self._thread.join()
        for each in self._running.values():
            each.stop()
        deadline = monotonic() + _END_S
        for each in self._running.values():
            each.join(max(0.0, deadline - monotonic()))
        if self._reports is not None:
            self._reports.close()

    def _run(self) -> None:
        while True:
            pause_s = _LOOK_S
            try:
                self._look()
            except TransportClosedError:
                return
            except (TransportError, RegistryError) as error:
                _log.warning("input topics cannot be looked for now: %s", error)
            except Exception:  # noqa: BLE001 - nobody else would begin an input again
                _log.exception("a defect keeps input topics from being looked for now")
                pause_s = _AGAIN_MAX_S
            if self._stopped.wait(pause_s):
                return

    def _look(self) -> None:
        streams = self._means.intakes.now.catalog.streams
        wanted = {name: self._means.topics.inputs_of(entry.stream) for name, entry in streams.items()}
        looked_s = monotonic()
        found = self._transport.described({topic for own in wanted.values() for topic in own})
        self._log_unread(wanted, found)
        there = {
            topic: each
            for topic, each in found.items()
            if isinstance(each, Described) and _why_unread(each) is None
        }
        requested: dict[str, Route] = {}
        for name, entry in streams.items():
            own = tuple((topic, there[topic].id) for topic in wanted[name] if topic in there)
            if own:
                output = StreamOutput.of(entry.stream, self._means.topics)
                requested[name] = Route(name, entry.created, own, output, entry.mapped)
        mapped = self._means.registry.mapped() if self._running else {}
        for running in self._running.values():
            if running.same_topics.are(found) and mapped.get(running.route.created) == running.route.mapped:
                running.same_topics.see(looked_s)
        for name in self._troubles.keys() - requested.keys():
            del self._troubles[name]
        for name, running in list(self._running.items()):
            if running.is_over or running.route != requested.get(name):
                self._end(name, running)
        for name, route in requested.items():
            trouble = self._troubles.get(name)
            is_due = trouble is None or trouble.again_s <= monotonic()
            if name not in self._running and is_due and not self._stopped.is_set():
                self._begin(route, {topic: there[topic].partitions for topic, _ in route.topics})

    def _log_unread(
        self, wanted: Mapping[str, tuple[str, ...]], found: Mapping[str, Described | TransportError]
    ) -> None:
        """Log which named topics are not read, and why, when that has changed."""
        unread: dict[tuple[str, str], str] = {}
        for name, topics in wanted.items():
            for topic in topics:
                why = _why_unread(found.get(topic))
                # Few streams have the topic that is not named.
                if why is not None and (topic in found or topic != self._means.topics.input(name)):
                    unread[name, topic] = why
                    if self._unread.get((name, topic)) != why:
                        _log.warning("%s: the topic %s is not read: %s", name, topic, why)
        self._unread = unread

    def _begin(self, route: Route, partitions: Mapping[str, int]) -> None:
        """Begin an input. What keeps it from that is about this stream: others begin."""
        entry = self._means.intakes.now.catalog.streams.get(route.stream)
        if entry is None or entry.created != route.created:
            return
        try:
            self._running[route.stream] = self._input(route, entry.stream, partitions)
        except TransportClosedError:
            raise
        except MappingPendingError as error:
            trouble = self._troubles.setdefault(route.stream, _Trouble())
            if trouble.why != str(error):
                _log.info("%s is read on soon: %s", route.stream, error)
            trouble.topics, trouble.why = list(partitions), str(error)
        except (TransportError, RegistryError) as error:
            self._failed(route.stream, partitions, str(error))
        except Exception as error:  # noqa: BLE001 - it is begun again
            _log.exception("a defect keeps %s from being read", route.stream)
            self._failed(route.stream, partitions, f"a defect: {type(error).__name__}")

    def _input(self, route: Route, stream: StreamDefinition, partitions: Mapping[str, int]) -> StreamInput:
        """Return an input that has begun. Raises MappingPendingError, TransportError, RegistryError."""
        route.output.make_topics(self._transport, max(partitions.values()))
        topics = self._means.registry.number_topics(
            route.created,
            route.topics,
            lambda topic: start_offsets(self._transport, topic, partitions[topic], stream.input.start),
            route.mapped,
        )
        topics = mapped_topics(route, topics, self._means, self._transport)
        self._reports = self._reports or InputReports(self._transport, self._means.topics)
        _log.info("events are read from %s", listed([each.name for each in topics]))
        return StreamInput(
            route,
            topics,
            self._means,
            self._reports,
            self._ends(self._reports, route, topics, partitions),
            self._present_ends,
            SameTopics(dict(route.topics), self._transport, partial(self._is_mapped_so, route)),
            self._output(route.stream),
        )

    def _is_mapped_so(self, route: Route) -> bool:
        return self._means.registry.mapped().get(route.created) == route.mapped

    def _ends(
        self, reports: InputReports, route: Route, topics: Sequence[InputTopic], partitions: Mapping[str, int]
    ) -> dict[TopicPartition, int]:
        """Return where partitions end: of those that have a leader, and that a front-end reads which reports it."""
        wheres = {
            TopicPartition(topic.name, each): reports.of(route.created, topic, each)
            for topic in topics
            for each in range(partitions[topic.name])
        }
        ends = self._present_ends(list(wheres))
        if None in wheres.values():
            # Front-ends of an earlier release read, and report nothing. Nobody waits for them.
            remade = {topic.name for topic in topics if topic.is_remade}
            read = self._transport.committed(self._means.topics.input(route.stream))
            ends = {
                where: end
                for where, end in ends.items()
                if wheres[where] is not None or where not in read or where.topic in remade
            }
        return ends

    def _present_ends(self, wheres: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        return {where: end for where, (_, end) in self._transport.bounds_of(wheres, _ENDS_S).items()}

    def _end(self, name: str, running: StreamInput) -> None:
        running.stop()
        running.join()
        del self._running[name]
        if running.failure is None:
            self._troubles.pop(name, None)
            return
        self._failed(name, running.topics, running.failure)

    def _failed(self, name: str, topics: Iterable[str], why: str) -> None:
        """Note that the topics of a stream are not read, and that this begins again soon."""
        self._troubles.setdefault(name, _Trouble()).failed(topics, why)
        _log.error("%s is not read for now, and again soon: %s", listed(list(topics)), why)

    def _output(self, stream: str) -> Callable[[Callable[[], bool]], Output]:
        means = self._means
        if not self._is_transactional:
            return lambda is_stopping: PlainOutput(means.settings, is_stopping)
        name = f"{means.topics.input(stream)}.{means.exchange.front_end.name}"
        return lambda is_stopping: TransactionalOutput(means.settings, name)


def _why_unread(found: Described | TransportError | None) -> str | None:
    """Return why a topic cannot be read; None if it can."""
    if found is None:
        return "it does not exist"
    if isinstance(found, TransportError):
        return f"{found.reason}. {found.remedy}"
    if found.partitions > PARTITIONS_MAX:
        return f"it has {found.partitions} partitions, more than {PARTITIONS_MAX}"
    return None


class _Trouble:
    """The delay after the last failures of an input, and when the input may begin again.

    topics: those that were to be read.
    why: why the input failed the last time.
    """

    def __init__(self) -> None:
        self._delay_s = 0.0
        self.again_s = 0.0
        self.topics, self.why = list[str](), ""

    def failed(self, topics: Iterable[str], why: str) -> None:
        """Note that the input failed now."""
        self.topics, self.why = list(topics), why
        now_s = monotonic()
        is_new = now_s - self.again_s > _HEALTHY_S
        self._delay_s = _AGAIN_S if is_new else min(2 * self._delay_s, _AGAIN_MAX_S)
        self.again_s = now_s + self._delay_s
