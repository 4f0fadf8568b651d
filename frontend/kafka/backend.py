"""The backend of a cluster on Kafka: events through the exchange, changes through the registry."""

import asyncio
import dataclasses
import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from frontend.embedded.problems import as_problem
from frontend.exchange.exchange import Exchange, Limits
from frontend.exchange.front_end import FrontEnd
from frontend.exchange.streams import StreamIntakes
from frontend.exchange.warm_up import warm_up
from frontend.kafka.changes import Changes, unfinished
from frontend.kafka.cluster_state import ClusterState
from frontend.kafka.deadlines import DEADLINES, Deadlines
from frontend.kafka.left_behind import left_behind
from frontend.kafka.no_live_backfill import NoLiveBackfill
from frontend.kafka.positions import Positions, at_a_glance
from frontend.kafka.requests import Request, Requests
from frontend.kafka.unanswered import UnansweredTasks, listed
from frontend.kafka.weak_topics import WeakTopics
from frontend.problems import Problem, ProblemError, UnknownStreamError, refusal
from frontend.scoring.answers_in_time import note_refused_request, unanswered
from frontend.scoring.in_thread import InThread
from frontend.scoring.noted_queries import noted_query
from frontend.scoring.scoring import READY, STOPPING, Answer, Readiness, StreamView, unavailable
from frontend.scoring.scoring_thread import ScoringThread, Submission
from frontend.topics.inputs import Inputs
from frontend.topics.recorded import RecordedReplies
from frontend.topics.route import Means
from frontend.topics.schemas import Schemas
from railgun.catalog.catalog import Catalog
from railgun.catalog.changes import Change
from railgun.catalog.model import Definitions, StreamDefinition
from railgun.catalog.task_key import TaskKey
from railgun.config.settings import InputSettings
from railgun.engine.errors import EngineError, as_engine_errors
from railgun.engine.status import MetricStatus, with_derived
from railgun.explain.analysis import explained
from railgun.ingest.value_queries import KeyValues, ValueRequest
from railgun.messaging.errors import TransportError, TransportUnavailableError
from railgun.messaging.kafka.broker_wait import BrokerWait
from railgun.messaging.kafka.settings import KafkaSettings
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.messaging.kafka.watchdog import ClientWatchdog
from railgun.registry import evolution
from railgun.registry.cancellation import CancellationToken
from railgun.registry.change_log import LoggedChange
from railgun.registry.errors import ChangeWithdrawnError
from railgun.registry.follower import Follower, Snapshot
from railgun.registry.kafka_registry import KafkaRegistry
from railgun.registry.origin import Origin
from railgun.registry.topics import PREFIX, Topics
from railgun.telemetry.reading import DiskReading, EngineReading
from railgun.telemetry.recording import Recording
from railgun.wording import counted

T = TypeVar("T")
_log = logging.getLogger("railgun.frontend")
_STARTING = Readiness(False, "starting: kernels are loaded, or compiled where this is the first start")
_READING = Readiness(False, "starting: the catalogue is being read from the broker")
_UNITS_START = Readiness(
    False,
    "starting: the units of the node are not ready yet; kernels are compiled at the first start, a minute or a few",
)
_NOBODY_ANSWERS = Readiness(
    False,
    "no task of any stream is answered: no unit runs them, or none has caught up. Start the nodes, or see their logs; "
    "events wait, up to their time limit",
)


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where a front-end's cluster is. prefix: of its topics.  front_end: None makes up a name.  input: of topics that
    events come from; schemas: of those that are Avro."""

    kafka: KafkaSettings
    prefix: str = PREFIX
    front_end: FrontEnd | None = None
    limits: Limits = field(default_factory=Limits)
    drop_grace_s: float = 60.0
    log_retention_ms: int | None = None
    input: InputSettings = field(default_factory=InputSettings)
    schemas: Schemas | None = None
    deadlines: Deadlines = DEADLINES


@dataclass(frozen=True, slots=True)
class _Parts:
    """What there is once it has started."""

    registry: KafkaRegistry
    follower: Follower
    exchange: Exchange
    intakes: StreamIntakes
    positions: Positions
    cluster: ClusterState
    unanswered: UnansweredTasks
    inputs: Inputs
    replies: RecordedReplies
    weak_topics: WeakTopics

    def follow(self, snapshot: Snapshot) -> None:
        """Take over what is done."""
        _follow(self.intakes, self.unanswered, snapshot)


class KafkaBackend(InThread, NoLiveBackfill):
    """definitions: created at the start where missing.  waits_for: it is not ready before this was true once.

    Used in one event loop; `start` waits for the broker, however long that takes.
    """

    submission_type = Request
    cancels_start = True

    def __init__(
        self,
        cluster: Cluster,
        definitions: Definitions | None = None,
        now_ms: Callable[[], int] | None = None,
        waits_for: Callable[[], bool] | None = None,
    ) -> None:
        self._waits_for = waits_for
        self._cluster, self._definitions, self._now_ms = cluster, definitions, now_ms
        self._parts: _Parts | None = None
        self._thread: ScoringThread | None = None
        self._requests: Requests | None = None
        self._open = ExitStack()
        self._standing = self._starting = _STARTING
        self._wait = BrokerWait(cluster.kafka, _log)
        self._watchdog = ClientWatchdog(cluster.kafka, Topics(cluster.prefix).catalog)
        self._changes = Changes(lambda: self._wait.reason)
        self._recording = Recording()

    def stop_starting(self) -> None:
        """Nothing: it is cancelled."""

    async def start(self) -> None:
        """Reach the broker, read the catalogue, have a reply topic. Raises EngineError."""
        self._watchdog.start()
        parts = await left_behind(self._start)
        more = {} if self._now_ms is None else {"now_ms": self._now_ms}
        loop = asyncio.get_running_loop()
        self._parts = parts
        self._requests = Requests(loop, parts.exchange, parts.intakes, parts.replies, self.recording, **more)
        self._thread = ScoringThread(loop, self._requests.publish)
        if self._standing is _STARTING:
            self._standing = READY
        self._wait.watch()

    @as_engine_errors()
    def _start(self) -> _Parts:
        warm_up()
        while True:
            self._wait.until_there()
            self._starting = _READING
            try:
                return self._parts_of(self._cluster)
            except TransportUnavailableError as error:
                self._wait.away(error)

    def _parts_of(self, cluster: Cluster) -> _Parts:
        with ExitStack() as opening:
            registry = opening.enter_context(
                KafkaRegistry(
                    cluster.kafka,
                    cluster.prefix,
                    drop_grace_s=cluster.drop_grace_s,
                    log_retention_ms=cluster.log_retention_ms,
                )
            )
            transport = opening.enter_context(KafkaTransport(cluster.kafka))
            positions = Positions(
                transport,
                registry.topics,
                lambda: self._wait.reason is not None,
                cluster.deadlines.silent_s,
            )
            opening.callback(positions.close)
            unanswered = UnansweredTasks(positions.reports, cluster.deadlines.silent_s)
            exchange = opening.enter_context(
                Exchange(cluster.kafka, registry.topics, cluster.front_end, cluster.limits)
            )
            intakes = StreamIntakes(exchange)
            if self._definitions is not None:
                requested = self._definitions
                registry.change(lambda catalog: evolution.missing(catalog, requested))
            _make_query_topics(registry)
            follower = registry.follow(partial(_follow, intakes, unanswered))
            inputs = self._inputs(transport, registry, exchange, intakes)
            opening.callback(inputs.close)
            self._open = opening.pop_all()
        replies = RecordedReplies(transport, registry.topics, intakes)
        state = ClusterState(transport, cluster.kafka, registry.topics, positions.reports)
        return _Parts(
            registry,
            follower,
            exchange,
            intakes,
            positions,
            state,
            unanswered,
            inputs,
            replies,
            WeakTopics(transport),
        )

    def _inputs(
        self, transport: KafkaTransport, registry: KafkaRegistry, exchange: Exchange, intakes: StreamIntakes
    ) -> Inputs:
        cluster = self._cluster
        limit_events = cluster.input.unwritten_limit_events
        means = Means(
            cluster.kafka, registry.topics, exchange, intakes, limit_events, schemas=cluster.schemas
        )
        if self._now_ms is not None:
            means = dataclasses.replace(means, now_ms=self._now_ms)
        return Inputs(means, transport, is_transactional=cluster.input.transactional)

    def readiness(self) -> Readiness:
        standing, waits, parts = self._own_standing(), self._wait.reason, self._parts
        # Events are taken all the same: the broker, or a unit, may be back before their time is over.
        if standing.ready and waits is not None:
            return Readiness(False, waits)
        if standing.ready and parts is not None and parts.unanswered.is_every_task():
            return _NOBODY_ANSWERS
        return standing

    def unanswered(self) -> list[dict[str, Any]]:
        return [] if self._parts is None else listed(self._parts.unanswered.tasks())

    def _own_standing(self) -> Readiness:
        """Whatever the broker does since the start."""
        parts, waits = self._parts, self._wait.reason
        if self._watchdog.reason is not None and not self._standing.failed:
            self._standing = Readiness(False, self._watchdog.reason, failed=True)
        if self._standing is _STARTING:
            return self._starting if waits is None else Readiness(False, f"starting: {waits}")
        if self._standing.ready and parts is not None:
            failure = parts.exchange.failure or (
                None if parts.follower.error is None else str(parts.follower.error)
            )
            if failure is not None:
                self._standing = Readiness(False, failure, failed=True)
        if self._waits_for is not None and self._standing.ready:
            if not self._waits_for():
                return _UNITS_START
            self._waits_for = None
        return self._standing

    def view(self, stream: str) -> StreamView:
        parts = self._ready()
        found = parts.intakes.now.views.get(stream)
        if found is None:
            raise UnknownStreamError(stream, parts.intakes.now.views)
        return found

    def reading(self) -> EngineReading | None:
        """Tasks are read where they are: in units."""
        return None

    @property
    def recording(self) -> Recording:
        """What the front-end notes for monitoring."""
        return self._recording

    def disk(self) -> DiskReading | None:
        """There is nothing of it on this disk."""
        return None

    @property
    def exchange(self) -> Exchange | None:
        """Once it has started."""
        return None if self._parts is None else self._parts.exchange

    @property
    def inputs(self) -> Inputs | None:
        """Once it has started."""
        return None if self._parts is None else self._parts.inputs

    @property
    def unanswered_tasks(self) -> UnansweredTasks | None:
        """Once it has started."""
        return None if self._parts is None else self._parts.unanswered

    @property
    def place(self) -> int:
        """Of the last change of the catalogue that it knows; 0 before there is one."""
        return 0 if self._parts is None else self._parts.intakes.now.catalog.last_place

    def refused(self, stream: str, status: int) -> None:
        if self._parts is not None:
            note_refused_request(self.recording, self._parts.intakes.now.views, stream, status)

    # --- events ------------------------------------------------------------------------------------

    def _ready_thread(self) -> ScoringThread:
        self._ready()
        if self._thread is None:
            raise unavailable(self._standing)
        return self._thread

    def _late(self, submission: Submission) -> list[Answer | None]:
        assert isinstance(submission, Request)
        if submission.pending is not None and self._requests is not None:
            # Some of the events may be answered, if not all.
            return self._requests.answers(submission)
        parts = self._parts
        return unanswered(
            submission, None if parts is None else parts.intakes.now.views.get(submission.stream)
        )

    async def values(self, stream: str, request: ValueRequest, timeout_ms: int) -> list[KeyValues]:
        self.view(stream)
        with noted_query(self.recording.stream(stream)):
            return await self._values(stream, request, timeout_ms)

    async def _values(self, stream: str, request: ValueRequest, timeout_ms: int) -> list[KeyValues]:
        parts = self._ready()
        known = parts.intakes.now
        entry = known.catalog.streams.get(stream)
        if entry is None:
            raise UnknownStreamError(stream, known.views)

        def ask() -> Future[list[KeyValues] | Problem]:
            query = known.query_reader(stream).read(request)
            return parts.exchange.ask_values(stream, entry.created, query, timeout_ms)

        found = await asyncio.wrap_future(await asyncio.to_thread(ask))
        if isinstance(found, Problem):
            raise ProblemError(found)
        return found

    # --- streams and metrics -----------------------------------------------------------------------

    async def streams(self) -> list[StreamDefinition]:
        return [entry.stream for entry in self._ready().intakes.now.catalog.streams.values()]

    async def create_stream(self, definition: StreamDefinition, origin: Origin) -> bool:
        return bool(await self._change(lambda catalog: evolution.new_stream(catalog, definition), origin))

    async def evolve_stream(
        self, stream: str, settings: Mapping[str, Any], origin: Origin
    ) -> StreamDefinition:
        await self._change(lambda catalog: evolution.changed_stream(catalog, stream, settings), origin)
        return self.view(stream).definition

    async def drop_stream(self, stream: str, origin: Origin) -> None:
        await self._change(lambda catalog: [evolution.dropped_stream(catalog, stream)], origin)
        self.recording.forget(stream)

    async def add_metrics(self, stream: str, sql: str, origin: Origin) -> tuple[list[MetricStatus], bool]:
        names: list[str] = []

        def missing(catalog: Catalog) -> Sequence[Change]:
            metrics = evolution.metrics_of_query(catalog, stream, sql)
            names[:] = metrics.names
            return evolution.missing(catalog, metrics)

        is_new = bool(await self._change(missing, origin))
        return [each for each in await self.metrics(stream) if each.name in names], is_new

    async def metrics(self, stream: str) -> list[MetricStatus]:
        return await self._call(partial(_metrics, stream))

    async def drop_metric(self, stream: str, name: str, origin: Origin) -> None:
        await self._change(lambda catalog: [evolution.dropped_metric(catalog, stream, name)], origin)

    async def change_log(self, limit: int, before: int | None) -> list[LoggedChange]:
        return await self._call(lambda parts: parts.registry.log(limit, before))

    async def explain(self, stream: str, sql: str) -> dict[str, Any]:
        def explain(parts: _Parts) -> dict[str, Any]:
            catalog = parts.intakes.now.catalog
            metrics = evolution.metrics_of_query(catalog, stream, sql)
            return explained(catalog.streams[stream], metrics)

        return await self._call(explain)

    async def status(self) -> dict[str, Any]:
        return await self._call(self._status)

    # --- the cluster -------------------------------------------------------------------------------

    async def cluster(self) -> dict[str, Any]:
        return await self._call(
            lambda parts: parts.cluster.overview(parts.intakes.now.catalog, parts.unanswered.tasks())
        )

    async def what_if(self, change: str) -> dict[str, Any]:
        return await self._call(lambda parts: parts.cluster.what_if(change, parts.intakes.now.catalog))

    async def drain(self, node: str, *, fewer_copies: bool) -> dict[str, Any]:
        return await self._call(
            lambda parts: parts.cluster.order(node, _tasks(parts), is_on=True, fewer_copies=fewer_copies)
        )

    async def undrain(self, node: str) -> dict[str, Any]:
        return await self._call(lambda parts: parts.cluster.order(node, _tasks(parts), is_on=False))

    async def accept_cut(self, stream: str, partitioner: str, partition: int) -> dict[str, Any]:
        named = stream, partitioner, partition

        def accept(parts: _Parts) -> dict[str, Any]:
            tasks = _tasks(parts)
            task = next(
                (each for each in tasks if (each.stream, each.partitioner, each.partition) == named), None
            )
            if task is None:
                raise refusal(404, f"there is no task {stream[:80]}/{partitioner[:80]}/{partition}")
            return parts.cluster.accept_cut(task)

        return await self._call(accept)

    async def close(self) -> None:
        if not self._standing.failed:
            self._standing = STOPPING
        deadlines = self._cluster.deadlines
        within_s = deadlines.away_over_s if self._wait.reason is not None else deadlines.over_s
        if self._watchdog.reason is not None:
            within_s = deadlines.lost_over_s
        self._wait.stop()
        self._watchdog.stop()
        parts, self._parts = self._parts, None
        thread, self._thread = self._thread, None
        try:
            await asyncio.wait_for(left_behind(partial(self._let_go, thread)), within_s)
        except TimeoutError:
            _log.error(
                "it ends as it is, %g s after the last request: the broker does not answer. Of %s it is not "
                "known whether the broker has them",
                within_s,
                counted(0 if parts is None else parts.exchange.unconfirmed, "record"),
            )
        self._requests = None

    def _let_go(self, thread: ScoringThread | None) -> None:
        if thread is not None:
            thread.close()
        self._open.close()

    def _status(self, parts: _Parts) -> dict[str, Any]:
        known = parts.intakes.now.catalog
        streams: list[dict[str, Any]] = [
            {
                "name": name,
                "tasks": list(parts.positions.tasks(entry)),
                "metrics": [dataclasses.asdict(each) for each in _metrics(name, parts)],
            }
            for name, entry in known.streams.items()
        ]
        tasks = [task for stream in streams for task in stream["tasks"]]
        return {
            "folder": self._cluster.kafka.broker,
            "durability": "kafka",
            "cluster": at_a_glance(
                tasks,
                parts.unanswered.tasks(),
                parts.exchange.pending_table,
                self._cluster.log_retention_ms,
                {} if self._wait.reason is not None else parts.weak_topics.among(_logs(parts)),
            ),
            "streams": streams,
        }

    def _ready(self) -> _Parts:
        standing = self._own_standing()
        if self._parts is None or not standing.ready:
            raise unavailable(standing)
        return self._parts

    async def _call(self, do: Callable[[_Parts], T]) -> T:
        parts = self._ready()

        @as_engine_errors()
        def call() -> T:
            return do(parts)

        try:
            return await asyncio.to_thread(call)
        except EngineError as error:
            raise as_problem(error) from error

    async def _change(self, request: Callable[[Catalog], Sequence[Change]], origin: Origin) -> list[Change]:
        parts = self._ready()

        @as_engine_errors()
        def change(cancellation: CancellationToken) -> list[Change]:
            try:
                made = parts.registry.change(request, cancellation, origin)
                _show(parts)
                return made
            except TransportUnavailableError as error:
                raise unfinished(cancellation.has_begun, f"{error.place}: {error.reason}") from error
            except (TransportError, ChangeWithdrawnError):
                raise
            except Exception:
                # What is in its way may be new here.
                _show(parts)
                raise

        try:
            return await self._changes.make(change)
        except EngineError as error:
            raise as_problem(error) from error


def _make_query_topics(registry: KafkaRegistry) -> None:
    """Make what an earlier release has not made. Events are served without it."""
    try:
        registry.make_query_topics()
    except TransportError as error:
        _log.warning("values of some streams cannot be asked for: %s", error)


def _logs(parts: _Parts) -> set[str]:
    topics = parts.registry.topics
    return {topics.tasks(task.stream, task.partitioner) for task in _tasks(parts)}


def _tasks(parts: _Parts) -> list[TaskKey]:
    return list(parts.intakes.now.catalog.task_keys)


def _follow(intakes: StreamIntakes, unanswered: UnansweredTasks, snapshot: Snapshot) -> None:
    intakes.follow(snapshot)
    unanswered.follow(snapshot.catalog)


def _show(parts: _Parts) -> None:
    """The catalogue as it is now, to whoever asks next."""
    parts.follow(parts.registry.snapshot())
    parts.positions.forget(parts.intakes.now.catalog)


def _metrics(stream: str, parts: _Parts) -> list[MetricStatus]:
    entry = evolution.stream_entry(parts.intakes.now.catalog, stream)
    warming = parts.positions.warming(entry)
    metrics = [
        MetricStatus(
            name,
            add.metric.sql,
            add.metric.home,
            name in warming,
            parts.positions.filled(entry, name) if name in warming else 1.0,
            add.metric.resolved.outdated_zones,
        )
        for name, add in entry.metrics.items()
    ]
    return with_derived(entry.registered, metrics)
