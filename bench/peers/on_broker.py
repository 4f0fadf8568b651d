"""The measuring side of a peer that reads from one topic of a broker and writes to another."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import islice
from types import TracebackType
from typing import Self

import msgspec
import numpy as np
from confluent_kafka import Consumer, Producer, TopicPartition
from numpy.typing import NDArray

from bench.children import Child, ChildFailedError
from bench.kafka import running_local_broker
from bench.load.due import due_together
from bench.peers.process import Taken, Usage, usage_of
from bench.peers.protocol import Task, metric_names
from railgun.messaging.kafka.settings import KafkaSettings
from railgun.messaging.kafka.transport import KafkaTransport

LIMIT_S = 60.0
"""What has no result by then stays without one in this measurement."""
_START_S, _SILENT_S = 180.0, 10.0
_POLL_S, _FLUSH_S = 0.05, 60.0
_BLOCK = 5_000
_BEGIN_NS = 50_000_000
_SENDING = {"acks": "all", "enable.idempotence": True, "queue.buffering.max.messages": 0}
_READING = {
    "group.id": "bench",
    "enable.auto.commit": False,
    "isolation.level": "read_committed",
    "fetch.wait.max.ms": 100,
    "fetch.queue.backoff.ms": 5,
}


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker that runs."""

    address: str
    pid: int


@contextmanager
def broker_if(needed: bool) -> Iterator[Broker | None]:
    """Yield a broker with nothing on it, if one is needed."""
    with running_local_broker() if needed else nullcontext() as status:
        yield None if status is None else Broker(status.address, status.pid)


def make_topics(task: Task) -> None:
    """Make the topics of a task, of one partition each."""
    with KafkaTransport(KafkaSettings(task.broker)) as log:
        log.create_topic(task.input, 1)
        log.create_topic(task.output, 1)


class _Card(msgspec.Struct):
    card: str


class _Event(msgspec.Struct):
    tx_id: str


class _Reply(msgspec.Struct):
    id: str
    metrics: dict[str, float]


class RunningOnBroker:
    """A peer's process and its topics. Started by the `with` statement's expression, ended by leaving the block.

    records: how many of them make the result of an event.
    """

    def __init__(
        self, module: str, arguments: tuple[str, ...], task: Task, broker: Broker, records: int
    ) -> None:
        self._task, self._broker, self._records = task, broker, records
        make_topics(task)
        common = {"bootstrap.servers": broker.address}
        self._producer = Producer({**common, **_SENDING})
        self._consumer = Consumer({**common, **_READING})
        self._consumer.assign([TopicPartition(task.output, 0, 0)])
        self._lines, self._card = task.events.open("rb"), msgspec.json.Decoder(_Card)
        self._kept = (task.folder / "replies.ndjson").open("w+b")
        self._is_started = False
        self._child = Child(module, [*arguments, task.as_text()])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._kept.closed:
            return
        self._child.__exit__(kind, error, trace)
        self._consumer.close()
        self._producer.purge()
        self._producer.close()
        self._lines.close()
        with self._kept:
            if kind is None:
                self._write_results()

    def take(self, events: int) -> Taken:
        """Have it process the next events, as fast as it can. Raises ChildFailedError if there is no result.

        Returns what the events took that have a result after LIMIT_S, or when no more results come.
        """
        messages = self._next(events)
        if not self._is_started:
            # What a peer does until its first result is its start.
            self._answered(messages[:1], _START_S, _START_S)
            self._is_started, messages = True, messages[1:]
        before, broker_before, begun = (
            usage_of(self._child.process.pid),
            self._broker_usage(),
            time.perf_counter(),
        )
        answered, last = self._answered(messages, LIMIT_S, _SILENT_S)
        after, broker_after = usage_of(self._child.process.pid), self._broker_usage()
        return Taken(
            answered,
            last - begun,
            after.cpu_s - before.cpu_s,
            after.stored_bytes - before.stored_bytes,
            after.resident_bytes,
            broker_after.cpu_s - broker_before.cpu_s,
            broker_after.stored_bytes - broker_before.stored_bytes,
        )

    def pace(self, events: int, rate_per_s: float) -> NDArray[np.int64]:
        """Send the next events when they are due, so many a second, whatever becomes of those before them.

        Returns from when each was due until its last result was read, in ns (int64[events]).  Raises ChildFailedError
        if one has no result LIMIT_S after the last was due.
        """
        messages, came = self._next(events), list[tuple[int, list[bytes | None]]]()
        due_ns = time.monotonic_ns() + _BEGIN_NS + np.arange(events, dtype=np.int64) * int(1e9 / rate_per_s)
        end_ns, left = int(due_ns[-1]) + int(LIMIT_S * 1e9), events * self._records
        with ThreadPoolExecutor(1, "sender") as sender:
            sending = sender.submit(self._send_when_due, messages, due_ns, end_ns)
            while left > 0 and time.monotonic_ns() < end_ns:
                if values := self._read():
                    came.append((time.monotonic_ns(), values))
                    left -= len(values)
                self._check_child()
        sending.result()
        if left:
            raise ChildFailedError(
                f"{self._child.name}: {left:,} results at {rate_per_s:g} events/s did not come"
            )
        return self._last_came_ns(messages, came) - due_ns

    def _last_came_ns(
        self, messages: list[dict[str, bytes]], came: list[tuple[int, list[bytes | None]]]
    ) -> NDArray[np.int64]:
        """Return when the last result of each event came. Raises ChildFailedError if one has none."""
        decoder, last_ns = msgspec.json.Decoder(_Reply), dict[str, int]()
        for at_ns, values in came:
            for value in values:
                if value is not None:
                    self._kept.write(value + b"\n")
                    last_ns[decoder.decode(value).id] = at_ns
        ids = [msgspec.json.decode(message["value"], type=_Event).tx_id for message in messages]
        if missing := [each for each in ids if each not in last_ns]:
            raise ChildFailedError(
                f"{self._child.name}: {len(missing):,} events have no result, {missing[0]} first"
            )
        return np.array([last_ns[each] for each in ids], np.int64)

    def _next(self, events: int) -> list[dict[str, bytes]]:
        """Return the messages of the next events."""
        return [
            {"key": self._card.decode(line).card.encode(), "value": line[:-1]}
            for line in islice(self._lines, events)
        ]

    def _broker_usage(self) -> Usage:
        return usage_of(self._broker.pid)

    def _answered(
        self, messages: list[dict[str, bytes]], limit_s: float, silent_s: float
    ) -> tuple[int, float]:
        """Send messages, and wait for their results. Returns how many have come, and when the last did."""
        begun = last = time.perf_counter()
        wanted, values = len(messages) * self._records, list[bytes | None]()
        with ThreadPoolExecutor(1, "sender") as sender:
            sending = sender.submit(self._send, messages)
            while len(values) < wanted and time.perf_counter() < min(begun + limit_s, last + silent_s):
                found = self._read()
                values += found
                last = time.perf_counter() if found else last
                self._check_child()
        sending.result()
        if wanted and not values:
            raise ChildFailedError(f"{self._child.name}: no result within {min(limit_s, silent_s):g} s")
        self._kept.writelines(value + b"\n" for value in values if value is not None)
        return len(values) // self._records, last

    def _check_child(self) -> None:
        if (code := self._child.process.poll()) is not None:
            raise ChildFailedError(f"{self._child.name}: ended with code {code}")

    def _send_when_due(
        self, messages: list[dict[str, bytes]], due_ns: NDArray[np.int64], end_ns: int
    ) -> None:
        for place, after, _ in due_together(due_ns, _BLOCK, end_ns):
            self._send(messages[place:after])

    def _send(self, messages: list[dict[str, bytes]]) -> None:
        for first in range(0, len(messages), _BLOCK):
            self._producer.produce_batch(self._task.input, messages[first : first + _BLOCK])
            if left := self._producer.flush(_FLUSH_S):
                raise ChildFailedError(f"{self._task.input}: the broker has not taken {left:,} events")

    def _read(self) -> list[bytes | None]:
        first = self._consumer.poll(_POLL_S)
        if first is None:
            return []
        messages = [first, *self._consumer.consume(_BLOCK, 0)]
        for message in messages:
            if error := message.error():
                raise ChildFailedError(f"{self._task.output}: {error}")
        return [message.value() for message in messages]

    def _write_results(self) -> None:
        """Write a line for each event whose results are all there. Raises ChildFailedError if one is there twice."""
        names, decoder = metric_names(len(self._task.windows_ms)), msgspec.json.Decoder(_Reply)
        partial, done = dict[str, dict[str, float]](), set[str]()
        self._kept.seek(0)
        with self._task.results.open("w", encoding="utf-8") as results:
            for line in self._kept:
                reply = decoder.decode(line)
                metrics = partial.setdefault(reply.id, {})
                if reply.id in done or metrics.keys() & reply.metrics.keys():
                    raise ChildFailedError(f"{self._child.name}: two results of event {reply.id}")
                metrics |= reply.metrics
                if len(metrics) == len(names):
                    del partial[reply.id]
                    done.add(reply.id)
                    results.write(",".join([reply.id, *(str(metrics[name]) for name in names)]) + "\n")
