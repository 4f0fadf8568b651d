"""Runs the process of a node that takes part in the group of nodes, and leads the cluster if its node is chosen.

`python -m railgun.node.leader` calls it.
"""

import logging
import platform
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from railgun.catalog.catalog import Catalog
from railgun.catalog.task_key import TaskKey
from railgun.cluster.observed import ObservedCluster
from railgun.cluster.policy import ClusterPolicy
from railgun.cluster.records import READS, DiskCopy, NodeRecord
from railgun.cluster.silence import MEMBER_LATE_S
from railgun.config.settings import ClusterSettings, Settings
from railgun.host.checkpoint_traces import may_have_checkpoint
from railgun.host.disk_usage import size_of
from railgun.host.place import task_folder
from railgun.messaging.errors import TransportFailedError
from railgun.messaging.kafka.broker_wait import reached
from railgun.messaging.kafka.configured import kafka_settings
from railgun.messaging.kafka.membership import GroupMembers, GroupMembership
from railgun.messaging.kafka.sole_writer import KafkaSoleWriter
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.messaging.kafka.watchdog import ClientWatchdog
from railgun.messaging.transport import TopicPartition
from railgun.node.identity import Identity
from railgun.node.leader.built_histories import BuiltHistories
from railgun.node.leader.ended_units import EndedUnits
from railgun.node.leader.leading import Leading
from railgun.node.leader.reply_topics import ReplyTopics
from railgun.node.leader.start_checks import SaidBefore, check_folder, check_name, check_plan
from railgun.node.relay import Serving
from railgun.registry.cluster_topics import make_topics
from railgun.registry.follower import Snapshot
from railgun.registry.kafka_registry import KafkaRegistry
from railgun.registry.log_watch import LogWatch
from railgun.registry.topics import Topics

_FOLDERS_S = 5.0
# Sizes change all the time, and each change is a record that all nodes read.
_SIZES_S = 60.0

_log = logging.getLogger("railgun.node")


@dataclass(frozen=True, slots=True)
class LeaderPlace:
    """The node that the process speaks for.

    identity: its name, and the id of its data folder.
    data: its data folder.
    units: how many units it has.
    release: the version of this program.
    began_ms: when the node began, in ms since 1970.
    runs_already: whether the process is started again, while the node's units run.
    """

    data: Path
    identity: Identity
    units: int
    release: str
    began_ms: int
    runs_already: bool = False


def run_leader(
    settings: Settings,
    place: LeaderPlace,
    stopped: threading.Event,
    checked: Callable[[], object],
    tell: Callable[[Leading], object],
    ended: EndedUnits,
    serving: Callable[[], Serving],
) -> None:
    """Wait for the broker, and run until asked to stop.

    Raises NodeRefusedError; TransportError and RegistryError, after which the process has to be started again.
    checked: is called when the node may take part.  tell: is called after each round.
    ended: units of this node whose processes have ended.  serving: returns where the node serves snapshots.
    """
    cluster, kafka = settings.cluster, kafka_settings(settings)
    if not reached(kafka, _log, stopped):
        return
    topics = Topics(cluster.topic_prefix)
    with (
        KafkaTransport(kafka) as transport,
        KafkaRegistry(kafka, cluster.topic_prefix, log_retention_ms=cluster.log_retention) as registry,
    ):
        before = _admitted(settings, place, transport, registry, stopped)
        checked()
        known = _Known(place, cluster, _incarnation(place, before.incarnation), serving, ended)
        with _membership(settings, place, topics) as membership:
            watch = LogWatch(transport, topics, lambda: known.catalog if leading.leads else Catalog())
            leading = Leading(
                transport,
                topics,
                membership,
                ObservedCluster(_policy(cluster), time.monotonic()),
                lambda: known.catalog,
                known.record,
                lambda: KafkaSoleWriter(kafka, topics.assignment),
                time.monotonic,
                ended.unreported,
                before.end,
                lambda: watch.bounds,
            )
            replies = ReplyTopics(transport, topics, lambda: leading.leads, time.monotonic)
            watchdog = ClientWatchdog(kafka, topics.catalog, on_lost=stopped.set)
            watchdog.start()
            follower = registry.follow(known.follow)
            watch.start()
            replies.start()
            try:
                while not stopped.is_set():
                    leading.round()
                    tell(leading)
                    if follower.error is not None:
                        raise follower.error
            finally:
                watchdog.stop()
                watch.close()
                replies.close()
                leading.resign()
        if watchdog.reason is not None:
            raise TransportFailedError(cluster.broker, watchdog.reason, "It is started again")


def _membership(settings: Settings, place: LeaderPlace, topics: Topics) -> GroupMembership:
    within_s = settings.cluster.session_timeout_s
    return GroupMembership(
        kafka_settings(settings), topics.nodes, topics.leader, place.identity.name, within_s
    )


def _policy(cluster: ClusterSettings) -> ClusterPolicy:
    return ClusterPolicy(cluster.copies, cluster.takeover_s, cluster.replace_after_s, cluster.moves_limit)


def _admitted(
    settings: Settings,
    place: LeaderPlace,
    transport: KafkaTransport,
    registry: KafkaRegistry,
    stopped: threading.Event,
) -> SaidBefore:
    """Make the cluster's topics, and return once the node may take part. Raises NodeRefusedError."""
    cluster, topics = settings.cluster, registry.topics
    make_topics(transport, topics)
    check_folder(
        place.data,
        transport.topic_id(topics.catalog),
        registry.snapshot().catalog,
        f"topic prefix {cluster.topic_prefix} at {cluster.broker}",
    )
    if not place.runs_already:
        check_plan(transport, TopicPartition(topics.assignment, 0))
    members = GroupMembers(kafka_settings(settings), topics.nodes)
    return check_name(
        transport,
        TopicPartition(topics.nodes, 0),
        lambda: members.now().names,
        place.identity,
        cluster.session_timeout_s + MEMBER_LATE_S,
        stopped,
    )


def _incarnation(place: LeaderPlace, heard: int) -> int:
    """Return the number of this run of the node: greater than that of each run before, even if the clock has gone back.

    If only this process is started again, the number stays. heard: the number of the newest run that was heard.
    """
    return max(place.began_ms, heard if place.runs_already else heard + 1)


class _Known:
    """The description of the node: its data on the disk, and the catalogue by which that data is looked for.

    incarnation: the number of this run of the node.
    serving: returns where the node serves snapshots.
    ended: its units that have ended by themselves.
    catalog: the newest one that was followed; another thread sets it.
    """

    def __init__(
        self,
        place: LeaderPlace,
        cluster: ClusterSettings,
        incarnation: int,
        serving: Callable[[], Serving],
        ended: EndedUnits,
    ) -> None:
        self._place, self._cluster, self._incarnation = place, cluster, incarnation
        self._serving, self._ended = serving, ended
        self._looked_s, self._disk = -_FOLDERS_S, list[DiskCopy]()
        self._measured_s, self._sizes = -_SIZES_S, dict[TaskKey, int]()
        self.catalog = Catalog()
        self._histories = BuiltHistories(place.data)

    def follow(self, snapshot: Snapshot) -> None:
        """Take over a new snapshot of the catalogue."""
        self.catalog = snapshot.catalog

    def record(self) -> NodeRecord:
        """Return the present description of the node. Its data folder is searched every few seconds."""
        now_s = time.monotonic()
        if now_s - self._looked_s >= _FOLDERS_S:
            self._looked_s, self._disk = now_s, list(self._on_disk(now_s))
        serving = self._serving()
        return NodeRecord(
            name=self._place.identity.name,
            folder=self._place.identity.folder,
            incarnation=self._incarnation,
            host=platform.node(),
            rack="" if self._cluster.rack == "none" else self._cluster.rack,
            units=self._place.units,
            release=self._place.release,
            disk=self._disk,
            histories=self._histories.among(self.catalog),
            reads=READS,
            transfer=serving.address,
            transfer_key=serving.key,
            transfer_reason=serving.reason,
            ended=self._ended.lately(time.time_ns() // 1_000_000),
        )

    def _on_disk(self, now_s: float) -> Iterator[DiskCopy]:
        if now_s - self._measured_s >= _SIZES_S:
            self._measured_s, self._sizes = now_s, {}
        for key in self.catalog.task_keys:
            folder = task_folder(self._place.data, key.stream, key.created, key.partitioner, key.partition)
            if folder.is_dir():
                if key not in self._sizes:
                    self._sizes[key] = int(float(f"{size_of(folder):.1e}"))
                has_checkpoint = may_have_checkpoint(folder)
                yield DiskCopy(**key._asdict(), size_bytes=self._sizes[key], has_checkpoint=has_checkpoint)
