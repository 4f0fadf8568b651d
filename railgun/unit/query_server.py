"""Answers value queries to the tasks of a unit, for its loop, between batches of events (docs/decisions/0027).

A value query asks for the present values of metrics by keys, without an event. The queries are read from topics of
their own. Only copies that answer events answer them.
"""

import logging
import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import partial

from railgun.host.task_host import TaskHost
from railgun.messaging.errors import TopicMissingError, TransportError
from railgun.messaging.transport import Fetched, TopicPartition, Transport
from railgun.registry.topics import Topics
from railgun.state.errors import StoreError
from railgun.unit.clock import CLOCK, Clock
from railgun.unit.log_faults import is_about
from railgun.wire.query_record import (
    QueryRecord,
    QueryRecordError,
    Refusal,
    decode_query,
    encode_refusal,
)
from railgun.wire.records import Records
from reservoir.errors import StorageFailedError
from reservoir.executor import Job

KEYS_PER_ROUND = 64
"""How many keys of a task are answered before its next batch of events."""
# How long a query is kept. A front-end that waits for longer asks again each second.
_KEPT_S = 2.5
# How much is kept for one task. Beyond this the oldest queries are dropped.
_KEPT_BYTES = 16 << 20
_AGAIN_S, _MISSING_S = 1.0, 15.0

_log = logging.getLogger("railgun.unit")


@dataclass(slots=True)
class _Waiting:
    """A query that is not answered yet. until_s: when it is dropped.  first: the index of its first unanswered key."""

    query: QueryRecord
    until_s: float
    size_bytes: int
    first: int = 0

    @property
    def left(self) -> int:
        return len(self.query.records) - self.first


@dataclass(slots=True, eq=False)
class _Partition:
    """The partition of queries to one task.

    where, host: the partition, and the host of the task.
    position: the next offset to read; None until it is known.
    opening: the request for the position.  again_s: when the next request may begin.
    waiting: the unanswered queries, oldest first, by front-end, incarnation and number.  size_bytes: their size.
    due_s: no query's time is over before this.
    """

    where: TopicPartition
    host: TaskHost
    position: int | None = None
    opening: Job[int] | None = None
    again_s: float = 0.0
    waiting: dict[tuple[int, int, int], _Waiting] = field(default_factory=dict)
    size_bytes: int = 0
    due_s: float = math.inf

    def add(self, each: _Waiting) -> None:
        """Keep a query. It replaces the same query if that was sent before."""
        asked = each.query.front_end, each.query.incarnation, each.query.number
        self.drop(asked)
        self.waiting[asked] = each
        self.size_bytes += each.size_bytes
        self.due_s = min(self.due_s, each.until_s)

    def drop(self, asked: tuple[int, int, int]) -> None:
        """Drop a query, if it is there."""
        dropped = self.waiting.pop(asked, None)
        if dropped is not None:
            self.size_bytes -= dropped.size_bytes

    def drop_overdue(self, now_s: float) -> None:
        """Drop queries whose time is over; and the oldest, if there are too many bytes."""
        if now_s < self.due_s and self.size_bytes <= _KEPT_BYTES:
            return
        for asked, each in list(self.waiting.items()):
            if each.until_s <= now_s or self.size_bytes > _KEPT_BYTES:
                self.drop(asked)
        self.due_s = min((each.until_s for each in self.waiting.values()), default=math.inf)


class QueryServer:
    """Answers the value queries to the tasks of a unit. One thread uses it.

    send: sends an answer to a front-end by its number.
    """

    def __init__(
        self,
        transport: Transport,
        topics: Topics,
        send: Callable[[int, bytes], None],
        clock: Clock = CLOCK,
    ) -> None:
        self._transport, self._topics, self._send, self._clock = transport, topics, send, clock
        self._partitions: dict[TopicPartition, _Partition] = {}
        self._by_host: dict[TaskHost, _Partition] = {}
        # The partitions with unanswered queries.
        self._asked: dict[_Partition, None] = {}

    def positions(self, hosts: Collection[TaskHost]) -> dict[TopicPartition, int]:
        """Return the offsets at which to read on, for these hosts' tasks whose positions are known.

        Silent copies read queries too, so that they have the unanswered ones when they take over.
        """
        by_host, found = self._by_host, dict[TopicPartition, int]()
        for host in hosts:
            own = by_host.get(host)
            if own is None:
                own = by_host[host] = self._made(host)
            if own.position is None:
                self._open(own)
            if own.position is not None:
                found[own.where] = own.position
        if len(by_host) > len(hosts):
            self._forget_others(hosts)
        return found

    def _made(self, host: TaskHost) -> _Partition:
        key = host.place.key
        where = TopicPartition(self._topics.queries(key.stream, key.partitioner), key.partition)
        made = self._partitions[where] = _Partition(where, host)
        return made

    def _forget_others(self, hosts: Collection[TaskHost]) -> None:
        """Forget the partitions of hosts that run no more."""
        needed = set(hosts)
        for host in [each for each in self._by_host if each not in needed]:
            own = self._by_host.pop(host)
            self._asked.pop(own, None)
            # A new host of the same task may have the partition by now.
            if self._partitions.get(own.where) is own:
                del self._partitions[own.where]
                self._transport.release(*own.where)

    def handle_fault(self, error: TransportError) -> bool:
        """Begin again at the end of the partition of queries that an error of reading is about.

        Returns False if it is about none.
        """
        for own in self._by_host.values():
            if is_about(error, own.where):
                own.position = own.opening = None
                own.again_s = self._clock.now() + _AGAIN_S
                return True
        return False

    def take(self, fetched: Fetched) -> bool:
        """Take records, if they are of a partition of queries. Returns whether they were."""
        own = self._partitions.get(fetched.where)
        if own is None:
            return False
        own.position = fetched.next_offset
        for record in fetched.written():
            try:
                query = decode_query(record)
            except QueryRecordError as error:
                _log.warning("%s: a record is left out: %s", fetched.where, error)
                continue
            if query.created == own.host.place.key.created and query.records:
                until_s = self._clock.now() + min(_KEPT_S, query.timeout_ms / 1000)
                own.add(_Waiting(query, until_s, len(record)))
        own.drop_overdue(self._clock.now())
        if own.waiting:
            self._asked[own] = None
        return True

    @property
    def has_work(self) -> bool:
        """Whether a query can be answered now."""
        return any(map(_is_due, self._asked))

    def answer(self, run: Callable[[TaskHost, Callable[[], None]], object]) -> None:
        """Answer the queries that can be answered: up to `KEYS_PER_ROUND` keys of each task.

        run: runs a function for a host. An error of the function stops the host's task.
        """
        for own in list(self._asked):
            own.drop_overdue(self._clock.now())
            if _is_due(own):
                run(own.host, partial(self._answer, own))
            if not own.waiting:
                self._asked.pop(own, None)

    def _open(self, own: _Partition) -> None:
        """Find the end of a partition, to begin there: older queries are asked again by their front-ends."""
        now_s = self._clock.now()
        if own.opening is None:
            if now_s >= own.again_s:
                own.opening = own.host.lane.submit(lambda: self._transport.end_offset(*own.where))
            return
        if not own.opening.done():
            return
        opening, own.opening = own.opening, None
        try:
            own.position = opening.result()
        except TopicMissingError:
            # An earlier release created the stream, without this topic. A front-end makes the topic when it starts.
            own.again_s = now_s + _MISSING_S
        except TransportError as error:
            _log.warning("%s: value queries are not read for now: %s", own.where, error)
            own.again_s = now_s + _AGAIN_S

    def _answer(self, own: _Partition) -> None:
        keys = KEYS_PER_ROUND
        for asked, each in list(own.waiting.items()):
            if not _can_answer(own.host, each.query):
                continue
            after = min(len(each.query.records), each.first + keys)
            self._answer_keys(own.host, each.query, each.query.records[each.first : after])
            keys -= after - each.first
            each.first = after
            if not each.left:
                own.drop(asked)
            if not keys:
                return

    def _answer_keys(self, host: TaskHost, query: QueryRecord, records: Sequence[bytes]) -> None:
        task = host.task
        try:
            answers = task.encode_answers(task.answer(Records.of(records)))
        except (StorageFailedError, StoreError):
            # An error of the disk would also stop the next event.
            raise
        except Exception:  # noqa: BLE001 - logged
            # The front-end gets a refusal, and the task continues. If the task is at fault, events will show it too.
            _log.exception("%s cannot answer a value query", host.place.identity)
            detail = f"{host.place.identity} cannot answer; the log of its node says why"
            refusal = Refusal(query.incarnation, query.number, detail)
            answers = [(query.front_end, encode_refusal(refusal))]
        for front_end, record in answers:
            self._send(front_end, record)


def _is_due(own: _Partition) -> bool:
    """Whether a partition has a query that its task can answer now."""
    host = own.host
    # A host with a limit is a silent copy: it reads queries, but does not answer them.
    if not host.is_running or host.limit is not None:
        return False
    return any(_can_answer(host, each.query) for each in own.waiting.values())


def _can_answer(host: TaskHost, query: QueryRecord) -> bool:
    task = host.task
    if task.metrics.last_place < query.place or query.schema not in task.schemas:
        return False
    if host.place.cut is not None and not host.lag:
        # The log has lost its end, and an operator has accepted that: the query's offset may be among the lost ones.
        return True
    return host.position > query.after
