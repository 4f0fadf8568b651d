"""Runs the process of one unit: builds its parts, runs its loop with heartbeats to the supervisor, and ends it."""

import gc
import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from railgun.cluster.copies import CopyName
from railgun.cluster.hearing import Timing
from railgun.config.settings import Settings
from railgun.host.data_folder import SNAPSHOTS
from railgun.host.fetcher import FetchRule
from railgun.host.lanes import HostLanes
from railgun.host.memory import MemoryShares
from railgun.host.place import Place
from railgun.host.task_host import TaskHost
from railgun.messaging.errors import TransportError, TransportFailedError
from railgun.messaging.kafka.broker_wait import reached
from railgun.messaging.kafka.configured import for_reports, for_tasks, kafka_settings
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.messaging.kafka.watchdog import ClientWatchdog
from railgun.messaging.transport import TopicPartition
from railgun.node import relay
from railgun.node.ending import DEADLINES, Deadlines
from railgun.node.identity import node_identity
from railgun.node.parent import Parent
from railgun.node.relay import TRANSFER, Received
from railgun.private_folder import make_private
from railgun.registry.cluster_topics import make_topics
from railgun.registry.follower import Follower
from railgun.registry.kafka_registry import KafkaRegistry
from railgun.registry.topics import Topics
from railgun.task.configured import task_settings
from railgun.task.environment import TaskEnvironment
from railgun.unit.assignments import Assignments, PlannedTasks
from railgun.unit.clock import IdleMeter
from railgun.unit.copies import UnitCopies
from railgun.unit.fetching import UnitFetcher
from railgun.unit.heartbeat import Heartbeat
from railgun.unit.hosting import Hosting
from railgun.unit.hosts import UnitHosts
from railgun.unit.loop import UnitLoop
from railgun.unit.positions import Positions
from railgun.unit.query_server import QueryServer
from railgun.unit.report_reader import ReportReader
from railgun.unit.sending import Sending
from railgun.unit.snapshots import UnitSnapshots
from railgun.unit.telemetry import UnitTelemetry

# How many tasks are opened or closed at the same time.
_AT_ONCE = 4

_log = logging.getLogger("railgun.unit")


@dataclass(frozen=True, slots=True)
class UnitPlace:
    """The identity of a unit: `index` of `units` in the node whose folder is `folder`."""

    folder: Path
    index: int
    units: int


def run_unit(
    settings: Settings,
    place: UnitPlace,
    stopped: threading.Event,
    parent: Parent,
    deadlines: Deadlines = DEADLINES,
) -> None:
    """Wait for the broker, and run tasks until asked to stop. Then wait until every reply is sent, and take a
    checkpoint of every task.

    Raises TransportError, RegistryError, OSError, and the errors of tasks after an error of the disk. The process then
    has to end and to be started again.
    """
    cluster, kafka = settings.cluster, kafka_settings(settings)
    if not reached(kafka, _log, stopped):
        return
    with (
        KafkaTransport(for_tasks(kafka)) as transport,
        KafkaTransport(for_reports(kafka)) as reports,
        KafkaRegistry(
            kafka,
            cluster.topic_prefix,
            drop_grace_s=cluster.drop_grace_s,
            log_retention_ms=cluster.log_retention,
        ) as registry,
        ReportReader(
            reports,
            [TopicPartition(registry.topics.positions, 0), TopicPartition(registry.topics.assignment, 0)],
        ) as reader,
    ):
        sending = Sending(transport, registry.topics)
        part = _part_in_cluster(settings, place, reports, registry.topics, reader)
        loop = _made(settings, place, transport, registry, sending, part, parent)
        telemetry = UnitTelemetry(sending.figures, part.copies)
        parent.metrics = telemetry.text
        follower = registry.follow(loop.follow)
        # When a client has lost its broker, the unit stops as if it were asked to, within the same time limits.
        watchdog = ClientWatchdog(kafka, registry.topics.catalog, on_lost=stopped.set)
        watchdog.start()
        try:
            with Heartbeat(loop, parent.write, telemetry) as heartbeat:
                _run_rounds(loop, heartbeat, follower, stopped)
        except BaseException:
            loop.abandon()
            raise
        finally:
            watchdog.stop()
        follower.stop()
        try:
            if watchdog.reason is not None:
                loop.abandon()
                remedy = "It goes on from the last checkpoints"
                raise TransportFailedError(cluster.broker, watchdog.reason, remedy)
            loop.leave()
            loop.stop(deadlines.acknowledged_s)
        except TransportError:
            reports.close(deadlines.closed_s)
            transport.close(deadlines.closed_s)
            raise
    _log.info("unit %d is stopped, its tasks checkpointed", place.index)


def _run_rounds(loop: UnitLoop, heartbeat: Heartbeat, follower: Follower, stopped: threading.Event) -> None:
    """Run rounds of the loop until asked to stop. Raises the errors of the loop and of the catalogue's follower."""
    while not stopped.is_set():
        loop.round()
        if heartbeat.beat():
            # Objects that exist by now stay. They are excluded from garbage collections, which block everything.
            gc.collect()
            gc.freeze()
        if follower.error is not None:
            raise follower.error


@dataclass(frozen=True, slots=True)
class _PartInCluster:
    """The parts of a unit that report to other units, and that read their reports and the leader's plan."""

    name: CopyName
    copies: UnitCopies
    positions: Positions
    assignments: Assignments


def _part_in_cluster(
    settings: Settings, place: UnitPlace, reports: KafkaTransport, topics: Topics, reader: ReportReader
) -> _PartInCluster:
    cluster = settings.cluster
    make_private(place.folder)
    identity = node_identity(place.folder, cluster.node_name)
    name, generation = CopyName(identity.name, place.index), time.time_ns() // 1_000_000
    make_topics(reports, topics)
    copies = UnitCopies(
        name,
        generation,
        reader.drain,
        topics.assignment,
        Timing(takeover_s=cluster.takeover_s, warm_wait_s=cluster.warm_wait_s),
    )
    positions = Positions(reports, topics, name, copies, cluster.positions_interval_ms / 1000)
    return _PartInCluster(name, copies, positions, PlannedTasks(name, identity.folder, lambda: copies.plan))


def _take(snapshots: UnitSnapshots, fetcher: UnitFetcher, received: Received) -> None:
    """Take in a message of another process of the node."""
    match received.message:
        case relay.MakeSnapshot(task=task, name=name):
            snapshots.ask(task, name)
        case relay.Fetching() | relay.Fetched() as message:
            fetcher.hear(message)


def _made(
    settings: Settings,
    place: UnitPlace,
    transport: KafkaTransport,
    registry: KafkaRegistry,
    sending: Sending,
    part: _PartInCluster,
    parent: Parent,
) -> UnitLoop:
    cluster = settings.cluster
    memory = MemoryShares(task_settings(settings.engine), settings.engine.memory_limit_bytes // place.units)
    waiting = IdleMeter()
    environment = TaskEnvironment(used_s=waiting.used_s)
    lanes = HostLanes(environment.executor, _AT_ONCE)
    # The suffix names node and unit, since nodes may share a folder of built histories too.
    hosting = Hosting(
        transport,
        sending,
        environment,
        lanes,
        f".{part.name.node}.{part.name.unit}",
        rule=FetchRule(cluster.transfer_after_records, cluster.replace_after_s / 2),
    )

    def make(places: Sequence[Place]) -> list[TaskHost]:
        share = memory.take(len(places), part.copies.plan.most_copies_of_a_unit())
        return [hosting.host(each, share) for each in places]

    send = partial(parent.send, TRANSFER)
    fetcher = UnitFetcher(part.copies.donors, send)
    snapshots = UnitSnapshots(
        place.folder / SNAPSHOTS, lambda name, error: send(relay.SnapshotMade(name, error))
    )
    parent.take = partial(_take, snapshots, fetcher)
    hosts = UnitHosts(make, lambda closed: memory.give_back([closed.settings]), fetcher=fetcher)
    return UnitLoop(
        transport,
        registry.topics,
        part.assignments,
        part.positions,
        sending,
        part.copies,
        hosts,
        place.folder,
        QueryServer(transport, registry.topics, sending.answer_query),
        snapshots,
        lanes.questions,
        removes=place.index == 0,
        grace_s=cluster.drop_grace_s,
        waiting=waiting,
    )
