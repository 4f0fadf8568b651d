"""Sends the events of a front-end to the topics of their tasks on Kafka, and has the answers gathered.

A front-end has one `Exchange`. HTTP requests and input topics publish their events by it.
"""

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from types import TracebackType
from typing import Self

from frontend.exchange.collector import Collector
from frontend.exchange.front_end import FrontEnd, made_up
from frontend.exchange.pending import EVENT_OVERHEAD_BYTES, Homes, OnAnswered, PendingRequest
from frontend.exchange.pending_table import EVENTS_MAX, ROW_BITS, PendingTable
from frontend.exchange.query_sender import QuerySender
from frontend.exchange.seen_offsets import SeenOffsets
from frontend.exchange.timeline import Timeline
from frontend.problems import Problem, ProblemError, refusal
from railgun.catalog.catalog import Catalog
from railgun.host.host_state import one_line
from railgun.ingest.accepted import UNASKED, AcceptedBatch, Correlation, Position
from railgun.ingest.replies import Reply
from railgun.ingest.stream_tasks import TaskBatch
from railgun.ingest.value_queries import KeyValues, ValueQuery
from railgun.messaging.errors import TransportError
from railgun.messaging.kafka.settings import KafkaSettings
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.messaging.transport import Entry, TopicPartition
from railgun.registry.topics import Topics


@dataclass(frozen=True, slots=True)
class Limits:
    """How much may wait for answers at a time."""

    events: int = 50_000
    size_bytes: int = 128 << 20


class Exchange:
    """Sends events and queries to the tasks of a cluster, and takes their answers. Any thread may call every method.

    Raises TransportError if no broker answers at the start.
    """

    def __init__(
        self,
        settings: KafkaSettings,
        topics: Topics,
        front_end: FrontEnd | None = None,
        limits: Limits = Limits(),
    ) -> None:
        self.front_end = front_end or made_up()
        self.topics = topics
        self._replies_topic = topics.replies(self.front_end.number)
        self._seen = SeenOffsets()
        self.pending_table = PendingTable(
            self.front_end.incarnation, limits.events, limits.size_bytes, self._seen
        )
        self._transport = KafkaTransport(settings)
        self._homes: dict[str, Homes] = {}
        # The key is a stream's name and the place in the catalogue at which it was created.
        self._timelines: dict[tuple[str, int], Timeline] = {}
        try:
            self._collector = Collector(self._transport, self._replies_topic, self.pending_table)
        except BaseException:
            self._transport.close()
            raise
        self._values = QuerySender(self._transport, topics, self.front_end, self.pending_table, self._seen)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def failure(self) -> str | None:
        """Why replies are read no more; None while they are."""
        return self._collector.failure

    @property
    def unconfirmed(self) -> int:
        """The number of published records that the broker has not confirmed yet."""
        return self._transport.unconfirmed

    def read(self, begun: Catalog) -> None:
        """Note changes that began, since replies may name them. Requests that waited for these changes are finished."""
        for name, entry in begun.streams.items():
            timeline = self._timelines.get((name, entry.created))
            if timeline is None:
                self._timelines[name, entry.created] = Timeline(entry, begun.last_place)
            elif timeline.place < begun.last_place:
                timeline.update(entry, begun.last_place)
        for pending in self.pending_table.take_held():
            self._collector.finish(pending)

    def know(self, catalog: Catalog) -> None:
        """Take over the streams of the catalogue. Requests that wait for a dropped stream fail."""
        self.read(catalog)
        self._homes = {
            name: Homes.of(entry, self._timelines[name, entry.created], catalog.last_place)
            for name, entry in catalog.streams.items()
        }
        for name, created in set(self._timelines) - {(n, each.created) for n, each in self._homes.items()}:
            if created <= catalog.last_place:
                del self._timelines[name, created]
        self._seen.keep({homes.created for homes in self._homes.values()})
        for pending in self.pending_table.all():
            if self._is_gone(pending) and self.pending_table.remove(pending):
                pending.fail_as_dropped()
                self._collector.finish(pending)

    def submit(
        self, stream: str, accepted: AcceptedBatch, positions: Sequence[Position] | None, timeout_ms: int
    ) -> Future[list[Reply | Problem]]:
        """Publish events. The future gets the answer to each of them, in order.

        positions: the position of each event in its input topic; None if the events came from none.
        Raises ProblemError: 503 if too many events wait or the broker does not take these, 404 if there is no such
        stream.
        """
        future: Future[list[Reply | Problem]] = Future()
        future.set_running_or_notify_cancel()

        def on_answered(finished: list[PendingRequest]) -> None:
            future.set_result(finished[0].answers())

        self.ask(stream, accepted, positions, timeout_ms, on_answered)
        return future

    def ask(
        self,
        stream: str,
        accepted: AcceptedBatch,
        positions: Sequence[Position] | None,
        timeout_ms: int,
        on_answered: OnAnswered,
        context: object = None,
    ) -> PendingRequest:
        """Publish events like `submit`, for callers that have many requests at once.

        on_answered: is called in the collector's thread with all of its requests that are finished by then.
        context: anything by which the caller recognises the request.
        """
        if len(accepted) > EVENTS_MAX:
            raise refusal(413, f"{len(accepted)} events together; at most {EVENTS_MAX} are taken")
        homes, number = self._homes_of(stream), self.pending_table.number()
        front_end = self.front_end
        correlation = Correlation(front_end.number, front_end.incarnation, number << ROW_BITS, positions)
        task_batches = accepted.task_batches(correlation)
        held = sum(task_batch.records.size_bytes for of_home in task_batches for task_batch in of_home)
        size_bytes = held + EVENT_OVERHEAD_BYTES * len(accepted)
        pending = PendingRequest(
            number, stream, accepted, homes, on_answered, timeout_ms, context, size_bytes
        )
        if not pending.left:
            self._collector.finish(pending)
            return pending
        self.pending_table.add(pending)
        try:
            if self._is_gone(pending):
                raise _gone(pending)
            sent = self._send(stream, homes.created, accepted, task_batches)
        except BaseException:
            self.pending_table.remove(pending)
            raise
        sent.add_done_callback(partial(self._note_sent, pending))
        return pending

    def publish(self, stream: str, accepted: AcceptedBatch) -> Future[list[int]]:
        """Publish events that want no answers. The future is done once they are durable."""
        created = self._homes_of(stream).created
        return self._send(stream, created, accepted, accepted.task_batches(UNASKED))

    def ask_values(
        self, stream: str, created: int, query: ValueQuery, timeout_ms: int
    ) -> Future[list[KeyValues] | Problem]:
        """Ask tasks for values, as `QuerySender.ask` does. Raises ProblemError (404, 413, 503).

        created: the number of the change that created the stream, as the query was read.
        """
        homes = self._homes_of(stream)
        if homes.created != created:
            raise refusal(404, f"the stream {stream[:80]!r} was dropped")
        return self._values.ask(stream, query, homes, timeout_ms)

    def close(self) -> None:
        """Fail the requests that wait, send what was published, and close the connections to the broker."""
        self._values.close()
        self._collector.close()
        for pending in self.pending_table.all():
            self._fail(pending, "stopping")
            pending.on_answered([pending])
        try:
            if self.front_end.is_passing:
                self._transport.delete_topic(self._replies_topic)
        except TransportError:
            # A topic that is left over costs little: its records are kept for an hour.
            pass
        finally:
            self._transport.close()

    def _homes_of(self, stream: str) -> Homes:
        found = self._homes.get(stream)
        if found is None:
            raise refusal(404, f"there is no stream {stream[:80]!r}")
        return found

    def _is_gone(self, pending: PendingRequest) -> bool:
        """Whether the stream of a request was dropped since its events were taken."""
        homes = self._homes.get(pending.stream)
        return homes is None or homes.created != pending.homes.created

    def _send(
        self,
        stream: str,
        created: int,
        accepted: AcceptedBatch,
        task_batches: Sequence[Sequence[TaskBatch]],
    ) -> Future[list[int]]:
        entries = [
            Entry(
                TopicPartition(
                    self.topics.tasks(stream, task_batch.share.partitioner), task_batch.share.partition
                ),
                task_batch.records,
                accepted.keys(home, task_batch.share),
            )
            for home, of_home in enumerate(task_batches)
            for task_batch in of_home
        ]
        try:
            sent = self._transport.submit(entries)
        except TransportError as error:
            raise _unavailable(error) from error
        sent.add_done_callback(partial(self._note_offsets, stream, created, task_batches))
        return sent

    def _note_offsets(
        self,
        stream: str,
        created: int,
        task_batches: Sequence[Sequence[TaskBatch]],
        sent: Future[list[int]],
    ) -> None:
        """Note the offsets of records that the broker has acknowledged. The producer's thread calls it."""
        if sent.exception() is None:
            batches = (each for of_home in task_batches for each in of_home)
            for each, first in zip(batches, sent.result()):
                task = stream, created, each.share.partitioner, each.share.partition
                self._seen.note(task, first + len(each.records) - 1)

    def _note_sent(self, pending: PendingRequest, sent: Future[list[int]]) -> None:
        error = sent.exception()
        pending.logged_s = perf_counter()
        if error is not None and self.pending_table.remove(pending):
            self._fail(pending, str(error))
            self._collector.finish(pending)

    def _fail(self, pending: PendingRequest, why: str) -> None:
        pending.fail(why)
        self.pending_table.remove(pending)


def _gone(pending: PendingRequest) -> ProblemError:
    pending.fail_as_dropped()
    assert pending.error is not None
    return ProblemError(pending.error)


def _unavailable(error: TransportError) -> ProblemError:
    return refusal(503, one_line(error))
