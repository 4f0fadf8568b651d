"""Sends value queries to tasks, and sends them again to those that have not answered (docs/decisions/0027).

A value query asks for the present values of metrics by keys, without an event. `Exchange` has one sender. It writes to
the tasks' query topics; the answers come to the pending table.
"""

import logging
import threading
from concurrent.futures import Future
from time import monotonic

from frontend.exchange.front_end import FrontEnd
from frontend.exchange.pending import EVENT_OVERHEAD_BYTES, Homes, PendingRequest
from frontend.exchange.pending_query import PendingQuery
from frontend.exchange.pending_table import EVENTS_MAX, ROW_BITS, PendingTable
from frontend.exchange.seen_offsets import SeenOffsets
from frontend.problems import Problem, refusal
from railgun.host.host_state import one_line
from railgun.ingest.accepted import Correlation, encode_row
from railgun.ingest.value_queries import KeyValues, Places, ValueQuery
from railgun.messaging.errors import TransportError
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.messaging.transport import Entry, TopicPartition
from railgun.registry.topics import Topics
from railgun.wire.columns import EventColumns
from railgun.wire.query_record import QueryRecord, encode_query
from railgun.wire.records import Records

ASK_AGAIN_S = 1.0
_LOOK_S = 0.1

_log = logging.getLogger("railgun.frontend")


class QuerySender:
    """Sends each query, and again every second to the tasks that have not answered it, until its time is over.

    Any thread may call `ask`. A thread of its own sends queries again, since sending may wait for the broker.
    """

    def __init__(
        self,
        transport: KafkaTransport,
        topics: Topics,
        front_end: FrontEnd,
        table: PendingTable,
        seen: SeenOffsets,
    ) -> None:
        self._transport, self._topics, self._front_end = transport, topics, front_end
        self._table, self._seen = table, seen
        self._asked, self._stopped = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="value queries", daemon=True)
        self._thread.start()

    def ask(
        self, stream: str, query: ValueQuery, homes: Homes, timeout_ms: int
    ) -> Future[list[KeyValues] | Problem]:
        """Send a query. The future gets one answer for each key, in order, or the problem because of which there are
        none.

        homes: the metrics of the stream. Raises ProblemError (413, 503).
        """
        batch = query.batch
        if len(batch) > EVENTS_MAX:
            raise refusal(413, f"{len(batch)} keys together; at most {EVENTS_MAX} are taken")
        future: Future[list[KeyValues] | Problem] = Future()
        future.set_running_or_notify_cancel()

        def on_answered(finished: list[PendingRequest]) -> None:
            for each in finished:
                assert isinstance(each, PendingQuery)
                future.set_result(each.values())

        assert not isinstance(batch.events, EventColumns)
        pending = PendingQuery(
            self._table.number(),
            stream,
            batch,
            homes,
            on_answered,
            timeout_ms,
            size_bytes=sum(EVENT_OVERHEAD_BYTES + len(row.encoded) for row in batch.events),
            query=query,
            places=Places(tuple(homes.metrics), len(batch)),
            after={
                (share.partitioner, share.partition): self._seen.of(
                    (stream, homes.created, share.partitioner, share.partition)
                )
                for shares in batch.shares
                for share in shares
            },
            again_s=monotonic() + ASK_AGAIN_S,
        )
        if not pending.left:
            future.set_result(pending.values())
            return future
        self._table.add(pending)
        try:
            self._send(pending)
        except TransportError as error:
            self._table.remove(pending)
            raise refusal(503, one_line(error)) from error
        self._asked.set()
        return future

    def close(self) -> None:
        """Send no query again, and wait for the thread to end."""
        self._stopped.set()
        self._asked.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.is_set():
            waiting = self._table.queries()
            if not waiting:
                # `ask` sets it after it has added a query, and `close` to end this thread.
                self._asked.wait()
                self._asked.clear()
                continue
            now_s = monotonic()
            for pending in [each for each in waiting if each.again_s <= now_s]:
                pending.again_s = now_s + ASK_AGAIN_S
                try:
                    self._send(pending)
                except Exception as error:  # noqa: BLE001 - it is sent again later, until its time is over
                    _log.warning("a value query of %s is not sent again for now: %s", pending.stream, error)
            self._stopped.wait(_LOOK_S)

    def _send(self, pending: PendingQuery) -> None:
        """Send a query to the tasks that have not answered it. Raises TransportError."""
        front_end, batch = self._front_end, pending.accepted
        assert not isinstance(batch.events, EventColumns)
        first = pending.number << ROW_BITS
        correlation = Correlation(front_end.number, front_end.incarnation, first)
        left_ms = max(1, round(1000 * (pending.begun_s - monotonic())) + pending.timeout_ms)
        entries = []
        for share, rows in pending.unanswered():
            records = [encode_row(batch.schema.version, batch.events[row], correlation, row) for row in rows]
            query = QueryRecord(
                pending.homes.created,
                pending.query.place,
                pending.after[share.partitioner, share.partition],
                batch.schema.version,
                left_ms,
                front_end.number,
                front_end.incarnation,
                pending.number,
                records,
            )
            topic = self._topics.queries(pending.stream, share.partitioner)
            where = TopicPartition(topic, share.partition)
            entries.append(Entry(where, Records.of([encode_query(query)])))
        if entries:
            self._transport.submit(entries)
