"""A broker in memory, as clients see it: records arrive and are acknowledged a while after they were sent."""

import random
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass, field

import numpy as np

from railgun.messaging.errors import (
    OffsetOutOfRangeError,
    TopicMissingError,
    TransportUnavailableError,
    WriterFencedError,
)
from railgun.messaging.transport import FOREVER, Entry, Fetched, TopicPartition, TopicSettings
from railgun.wire.records import Records

# A record is in the log, and its sender knows that, within such times, in seconds.
_ARRIVES_S, _ACKNOWLEDGED_S = 0.02, 0.02
# A client that did not make a topic sees it within this time.
_SEEN_S = 1.0
# After this time a client waits for an answer no more.
_UNANSWERED_S = 30.0
# The present when virtual time begins.
START_MS = 1_700_000_000_000


@dataclass
class Log:
    """A partition. records: from offset `start` on, each with its leader epoch. deleted: those before.

    appended_ms: when each record, from offset 0 on, was appended.
    """

    start: int = 0
    records: list[tuple[bytes, int]] = field(default_factory=list)
    epoch: int = 0
    deleted: list[tuple[bytes, int]] = field(default_factory=list)
    appended_ms: list[int] = field(default_factory=list)

    @property
    def end(self) -> int:
        return self.start + len(self.records)


class SimulatedBroker:
    """now: returns the virtual time in seconds.

    leaderless: the partitions that are without a leader: nothing of them is read, and who asks for their offsets
        waits in vain. What is written to them waits at the broker.
    """

    def __init__(self, chance: random.Random, now: Callable[[], float]) -> None:
        self.chance, self.now = chance, now
        self.leaderless: set[TopicPartition] = set()
        self.logs: dict[TopicPartition, Log] = {}
        self.made_s: dict[str, float] = {}
        self.partitions: dict[str, int] = {}
        self.writers: dict[str, object] = {}
        self.clients: list[SimulatedTransport] = []

    def date_ms(self) -> int:
        """The present, in ms since 1970."""
        return START_MS + round(self.now() * 1000)

    def client(self, name: str) -> "SimulatedTransport":
        """Return a client of its own."""
        made = SimulatedTransport(name, self)
        self.clients.append(made)
        return made

    def make(self, topic: str, partitions: int) -> None:
        """Create a topic, unless it exists."""
        if topic not in self.partitions:
            self.partitions[topic], self.made_s[topic] = partitions, self.now()
            self.logs |= {TopicPartition(topic, number): Log() for number in range(partitions)}

    def replace(self, topic: str) -> None:
        """Delete a topic and make it anew: it is empty, and its first leader has the epoch of the one before."""
        self.made_s[topic] = self.now()
        self.logs |= {where: Log() for where in self.logs if where.topic == topic}

    def append(self, where: TopicPartition, records: Sequence[bytes]) -> int:
        """Append records, and return the offset of the first."""
        log = self.logs[where]
        first = log.end
        log.records += [(record, log.epoch) for record in records]
        log.appended_ms += [self.date_ms()] * len(records)
        return first

    def delete_before(self, where: TopicPartition, offset: int) -> None:
        """Delete the first records of a log, as its retention does in time."""
        log = self.logs[where]
        count = max(0, offset - log.start)
        log.deleted += log.records[:count]
        del log.records[:count]
        log.start += count

    def cut_end(self, where: TopicPartition, records: int) -> None:
        """Lose the last records of a log, as if a broker without them had become its leader."""
        log = self.logs[where]
        del log.records[max(0, len(log.records) - records) :]
        del log.appended_ms[log.end :]
        log.epoch += 1

    def advance(self) -> None:
        """Let what is due arrive, and be acknowledged."""
        for client in self.clients:
            client.advance()


class SimulatedFuture(Future[list[int]]):
    """Waiting for it lets what was sent before it arrive, unless the client is stuck."""

    def __init__(self, client: "SimulatedTransport") -> None:
        super().__init__()
        self._client = client

    def result(self, timeout: float | None = None) -> list[int]:
        if not self.done():
            self._client.settle(self, timeout)
        return super().result(0)


@dataclass
class _Sent:
    entries: Sequence[Entry]
    future: SimulatedFuture
    arrives_s: float
    acknowledged_s: float
    offsets: list[int] | None = None


class SimulatedTransport:
    """A client; see `Transport`.

    is_cut: nothing goes through, in either direction.
    is_stuck: what is sent waits.
    is_deaf: nothing is read.
    wait_in_vain: is told for how long whoever calls waits for an answer that does not come.
    """

    def __init__(self, name: str, broker: SimulatedBroker) -> None:
        self.name, self._broker = name, broker
        self.is_cut = self.is_stuck = self.is_deaf = False
        self.wait_in_vain: Callable[[float], object] = lambda seconds: None
        self._sent: list[_Sent] = []
        self._last_s = 0.0
        self._seen_s: dict[str, float] = {}
        self._ends: dict[TopicPartition, int] = defaultdict(int)

    # --- what the simulation does with it -----------------------------------------------------------

    def advance(self) -> None:
        if self.is_cut or self.is_stuck:
            return
        now_s = self._broker.now()
        for sent in self._sent:
            if sent.offsets is None and sent.arrives_s <= now_s:
                sent.offsets = self._append(sent.entries)
        while self._sent and self._sent[0].offsets is not None and self._sent[0].acknowledged_s <= now_s:
            sent = self._sent.pop(0)
            sent.future.set_result(sent.offsets or [])

    def settle(self, future: SimulatedFuture, timeout_s: float | None) -> None:
        """Let everything up to a future arrive and be acknowledged."""
        if self.is_cut or self.is_stuck:
            if timeout_s is None:
                raise TransportUnavailableError(self.name, "the broker did not answer", "Try again")
            raise FutureTimeoutError
        while not future.done():
            sent = self._sent.pop(0)
            sent.future.set_result(sent.offsets or self._append(sent.entries))

    def crash(self) -> None:
        """End with the process: of what was sent, some arrives all the same, in order."""
        on_way = [] if self.is_cut else [sent for sent in self._sent if sent.offsets is None]
        for sent in on_way[: self._broker.chance.randint(0, len(on_way))]:
            self._append(sent.entries)
        self._sent.clear()
        self.is_cut = True
        self._broker.clients.remove(self)

    def _append(self, entries: Sequence[Entry]) -> list[int]:
        return [self._broker.append(entry.where, entry.records.to_list()) for entry in entries]

    # --- what the product does with it --------------------------------------------------------------

    def create_topic(self, topic: str, partitions: int, settings: TopicSettings = FOREVER) -> None:
        self._reach()
        self._broker.make(topic, partitions)
        self._seen_s[topic] = 0.0

    def delete_topic(self, topic: str) -> None:
        """Nobody deletes one here."""

    def topics(self) -> Mapping[str, int]:
        return self._broker.partitions

    def topic_ids(self, topics: Collection[str]) -> Mapping[str, str]:
        self._reach()
        made_s = self._broker.made_s
        return {topic: f"made at {made_s[topic]}" for topic in topics if topic in made_s}

    def submit(self, entries: Sequence[Entry]) -> Future[list[int]]:
        for entry in entries:
            self._check_seen(entry.where)
        chance = self._broker.chance
        future = SimulatedFuture(self)
        arrives_s = self._broker.now() + chance.random() * _ARRIVES_S
        self._last_s = max(self._last_s, arrives_s)
        acknowledged_s = self._last_s + chance.random() * _ACKNOWLEDGED_S
        self._sent.append(_Sent(entries, future, self._last_s, acknowledged_s))
        return future

    def append(self, topic: str, partition: int, records: Sequence[bytes]) -> int:
        return self.submit([Entry(TopicPartition(topic, partition), Records.of(records))]).result()[0]

    def start_offset(self, topic: str, partition: int, within_s: float | None = None) -> int:
        return self._log(TopicPartition(topic, partition)).start

    def end_offset(self, topic: str, partition: int, within_s: float | None = None) -> int:
        return self._log(TopicPartition(topic, partition)).end

    def known_end(self, topic: str, partition: int) -> int:
        return self._ends[TopicPartition(topic, partition)]

    def read(self, topic: str, partition: int, from_offset: int, max_records: int, max_bytes: int) -> Fetched:
        where = TopicPartition(topic, partition)
        log = self._log(where)
        if not log.start <= from_offset <= log.end:
            raise OffsetOutOfRangeError(str(where), from_offset, log.start, log.end)
        self._ends[where] = log.end
        found = log.records[from_offset - log.start :][:max_records]
        epoch = found[0][1] if found else -1
        same = next((n for n, (_, other) in enumerate(found) if other != epoch), len(found))
        return Fetched(
            where,
            np.arange(from_offset, from_offset + same),
            Records.of([record for record, _ in found[:same]]),
            from_offset + same,
            log.appended_ms[from_offset] if same else 0,
            epoch,
        )

    def fetch(
        self, positions: Mapping[TopicPartition, int], max_records: int, max_bytes: int, timeout_s: float
    ) -> list[Fetched]:
        if self.is_cut or self.is_deaf:
            return []
        return [
            self.read(*where, position, max_records, max_bytes)
            for where, position in positions.items()
            if where not in self._broker.leaderless and self._log(where).end != position
        ]

    def wait(self, positions: Mapping[TopicPartition, int], timeout_s: float) -> bool:
        return any(self._log(where).end > position for where, position in positions.items())

    def release(self, topic: str, partition: int) -> None:
        """Nothing is buffered."""

    def release_second_reader(self, topic: str, partition: int) -> None:
        """Nothing is buffered."""

    def trim(self, topic: str, partition: int, before_offset: int) -> None:
        """Logs are kept whole: the oracle reads them."""

    def sync(self) -> None:
        """Everything is durable at once."""

    def close(self) -> None:
        self._broker.clients.remove(self)

    def _log(self, where: TopicPartition) -> Log:
        self._reach()
        if where not in self._broker.logs:
            raise TopicMissingError(str(where))
        if where in self._broker.leaderless:
            self.wait_in_vain(_UNANSWERED_S)
            raise TransportUnavailableError(str(where), "the broker did not answer", "Try again")
        return self._broker.logs[where]

    def _reach(self) -> None:
        if self.is_cut:
            raise TransportUnavailableError(self.name, "the broker did not answer", "Try again")

    def _check_seen(self, where: TopicPartition) -> None:
        """Raise TopicMissingError for a topic that the client's metadata does not show yet."""
        made_s = self._broker.made_s.get(where.topic)
        if made_s is not None and where.topic not in self._seen_s:
            self._seen_s[where.topic] = made_s + self._broker.chance.random() * _SEEN_S
        if made_s is None or self._broker.now() < self._seen_s[where.topic]:
            raise TopicMissingError(str(where))


class SimulatedWriter:
    """See `KafkaSoleWriter`."""

    def __init__(self, client: SimulatedTransport, broker: SimulatedBroker, name: str) -> None:
        self._client, self._broker, self._name = client, broker, name
        if client.is_cut:
            raise TransportUnavailableError(name, "the broker did not answer", "Try again")
        self._broker.writers[name] = self

    @property
    def is_fenced(self) -> bool:
        """Whether another one was made since."""
        return self._broker.writers[self._name] is not self

    def append(self, where: TopicPartition, records: Sequence[tuple[bytes, bytes]]) -> int:
        if self.is_fenced:
            raise WriterFencedError(self._name)
        if self._client.is_cut or self._client.is_stuck:
            raise TransportUnavailableError(self._name, "the broker did not answer", "Try again")
        return self._broker.append(where, [record for _, record in records]) + len(records) - 1

    def close(self) -> None:
        """Nothing is held."""
