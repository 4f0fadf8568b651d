"""Opens the parts of a front-end of a cluster, and keeps them together. `RunningCluster` opens and closes them."""

import dataclasses
import logging
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

from frontend.exchange.exchange import Exchange
from frontend.exchange.streams import StreamIntakes
from frontend.formats.format_checks import with_usable_formats
from frontend.kafka.cluster_state import ClusterState
from frontend.kafka.cluster_watch import ClusterWatch
from frontend.kafka.configuration import FrontEndConfiguration
from frontend.kafka.introduction import introduce
from frontend.kafka.task_logs import TaskLogs
from frontend.kafka.task_states import TaskStates
from frontend.kafka.unanswered import UnansweredTasks
from frontend.kafka.weak_topics import WeakTopics
from frontend.samples.samples import Samples
from frontend.topics.inputs import Inputs
from frontend.topics.recorded import RecordedReplies
from frontend.topics.route import Means
from railgun.catalog.model import Definitions
from railgun.catalog.task_key import TaskKey
from railgun.cluster.lately import KEPT_MAX
from railgun.messaging.errors import TransportError
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.registry import evolution
from railgun.registry.follower import Follower, Snapshot
from railgun.registry.kafka_registry import KafkaRegistry
from railgun.wording import weak_topics_text

_log = logging.getLogger("railgun.frontend")


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a front-end that has started. Any thread may call each.

    after_records: a copy that lacks more of its log than this gets its data from another node.
    is_away: returns whether the broker is known not to answer.
    opened: closes all parts.
    """

    registry: KafkaRegistry
    follower: Follower
    exchange: Exchange
    intakes: StreamIntakes
    task_states: TaskStates
    task_logs: TaskLogs
    cluster_state: ClusterState
    unanswered: UnansweredTasks
    inputs: Inputs
    replies: RecordedReplies
    weak_topics: WeakTopics
    after_records: int
    is_away: Callable[[], bool]
    opened: ExitStack

    @property
    def tasks(self) -> list[TaskKey]:
        """The tasks of all streams."""
        return list(self.intakes.now.catalog.task_keys)

    @property
    def task_topics(self) -> set[str]:
        """The topics of all tasks."""
        topics = self.registry.topics
        return {topics.tasks(task.stream, task.partitioner) for task in self.tasks}

    def cluster_overview(self, lately_max: int = KEPT_MAX) -> dict[str, Any]:
        """Return what `GET /v1/cluster` shows. It reads the new records, and raises TransportError.

        lately_max: how much of what has happened lately.
        """
        found = self.cluster_state.overview(
            self.intakes.now.catalog, self.unanswered.tasks(), self.task_logs.rooms(), lately_max
        )
        return {**found, "warnings": [*found["warnings"], *self._weak_topics()]}

    def _weak_topics(self) -> list[str]:
        """Return a warning of topics that one broker's loss could harm. One broker alone is meant so."""
        if self.is_away():
            return []
        weak = self.weak_topics.among(self.task_topics)
        return [weak_topics_text(weak)] if weak and self.weak_topics.brokers() != 1 else []

    def show(self) -> None:
        """Let the parts take over the present catalogue."""
        _follow(self.intakes, self.unanswered, self.registry.snapshot())
        self.task_states.forget(self.intakes.now.catalog)


def open_parts(
    cluster: FrontEndConfiguration,
    definitions: Definitions | None,
    now_ms: Callable[[], int] | None,
    is_away: Callable[[], bool],
    samples: Samples | None = None,
) -> Parts:
    """Open the parts. Raises TransportError, EngineError, and errors of definitions.

    definitions: streams and metrics that are registered if they are missing.
    now_ms: the clock of events; None uses the system's.
    is_away: returns whether the broker is known not to answer.
    samples: takes some of the events of input topics; None: none are taken.
    """
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
        front_end = cluster.front_end
        # This comes before its reply topic is made, by which others see that the front-end lives.
        opening.callback(introduce(front_end, transport, registry.topics, is_away))
        task_states = TaskStates(transport, registry.topics, is_away, cluster.deadlines.silent_s)
        opening.callback(task_states.close)
        unanswered = UnansweredTasks(task_states.reports, cluster.deadlines.silent_s)
        exchange = opening.enter_context(Exchange(cluster.kafka, registry.topics, front_end, cluster.limits))
        intakes = StreamIntakes(exchange)
        if definitions is not None:
            registry.change(with_usable_formats(lambda catalog: evolution.missing(catalog, definitions)))
        _make_query_topics(registry)
        follower = registry.follow(partial(_follow, intakes, unanswered))
        means = _means(cluster, registry, exchange, intakes, samples, now_ms)
        inputs = Inputs(means, transport, is_transactional=cluster.input.transactional)
        opening.callback(inputs.close)
        task_logs = TaskLogs(transport, registry.topics, task_states, lambda: intakes.now.catalog, is_away)
        opening.callback(task_logs.close)
        cluster_state = ClusterState(transport, cluster.kafka, registry.topics, task_states, is_away)
        opening.callback(ClusterWatch(cluster_state, is_away).close)
        return Parts(
            registry=registry,
            follower=follower,
            exchange=exchange,
            intakes=intakes,
            task_states=task_states,
            task_logs=task_logs,
            cluster_state=cluster_state,
            unanswered=unanswered,
            inputs=inputs,
            replies=RecordedReplies(transport, registry.topics, intakes),
            weak_topics=WeakTopics(transport),
            after_records=cluster.transfer_after_records,
            is_away=is_away,
            opened=opening.pop_all(),
        )


def _means(
    cluster: FrontEndConfiguration,
    registry: KafkaRegistry,
    exchange: Exchange,
    intakes: StreamIntakes,
    samples: Samples | None,
    now_ms: Callable[[], int] | None,
) -> Means:
    means = Means(
        cluster.kafka,
        registry.topics,
        registry,
        exchange,
        intakes,
        cluster.input.unwritten_limit_events,
        schemas=cluster.schemas,
        samples=None if samples is None else samples.or_none,
    )
    return means if now_ms is None else dataclasses.replace(means, now_ms=now_ms)


def _make_query_topics(registry: KafkaRegistry) -> None:
    """Make the topics of value queries, which an earlier release did not make. Events are served without them."""
    try:
        registry.make_query_topics()
    except TransportError as error:
        _log.warning("values of some streams cannot be asked for: %s", error)


def _follow(intakes: StreamIntakes, unanswered: UnansweredTasks, snapshot: Snapshot) -> None:
    intakes.follow(snapshot)
    unanswered.follow(snapshot.catalog)
