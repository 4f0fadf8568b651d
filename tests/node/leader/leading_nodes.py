"""The leading parts of nodes on a real broker, in threads. They have no units: nobody makes the copies."""

import math
import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Self

from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as KafkaTopicPartition

from railgun.catalog.task_key import TaskKey
from railgun.cluster.log_room import LogBounds
from railgun.cluster.observed import ObservedCluster
from railgun.cluster.plan import Plan
from railgun.cluster.policy import ClusterPolicy
from railgun.cluster.records import DiskCopy, NodeRecord
from railgun.messaging.kafka.membership import GroupMembership
from railgun.messaging.kafka.sole_writer import KafkaSoleWriter
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.messaging.transport import Entry, TopicPartition, TopicSettings
from railgun.node.leader.leading import Leading
from railgun.node.parent import UnitEnded
from railgun.registry.kafka_registry import KafkaRegistry
from railgun.wire.records import Records
from tests.broker.own_topics import own_prefix
from tests.unit.cluster_player import ClusterPlayer
from tests.unit.local_units import quick_settings
from tests.unit.processes import DEFINITIONS

SESSION_S = 6.0
"""The least that a broker allows by default."""
GONE_S = 2.0


class Node:
    """The leading part of a node, in a thread. It has no units: nobody makes its copies. disk: tasks whose data it
    has. logs: what it takes the broker to say of the logs of tasks."""

    def __init__(
        self,
        broker: str,
        prefix: str,
        number: int,
        units: int = 2,
        moves_limit: int = 4,
        checked_end: float = math.inf,
        disk: Iterable[TaskKey] = (),
    ) -> None:
        settings, name = quick_settings(broker), f"node-{number}"
        self._transport = KafkaTransport(settings)
        self._registry = KafkaRegistry(settings, prefix)
        topics = self._registry.topics
        for topic in (topics.positions, topics.nodes, topics.assignment):
            self._transport.create_topic(topic, 1, TopicSettings(is_compacted=True))
        self._transport.create_topic(topics.leader, 1)
        self.membership = GroupMembership(settings, topics.nodes, topics.leader, name, SESSION_S)
        record = NodeRecord(
            name=name,
            folder=f"folder of {name}",
            incarnation=time.time_ns() // 1_000_000,
            host="here",
            units=units,
            release="0",
            disk=[DiskCopy(**task._asdict(), size_bytes=100) for task in disk],
        )
        self.ended = deque[UnitEnded]()
        self.logs: Mapping[TaskKey, LogBounds] = {}
        self.leading = Leading(
            self._transport,
            topics,
            self.membership,
            ObservedCluster(ClusterPolicy(replace_after_s=GONE_S, moves_limit=moves_limit), time.monotonic()),
            lambda: self._registry.snapshot().catalog,
            lambda: record,
            lambda: KafkaSoleWriter(settings, topics.assignment),
            time.monotonic,
            self.ended,
            checked_end,
            lambda: self.logs,
        )
        self.error: Exception | None = None
        self.is_halted = False
        self._round = threading.Lock()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name)
        self._thread.start()

    @property
    def plan(self) -> Plan:
        return self.leading.plan

    def _run(self) -> None:
        try:
            while not self._stopped.is_set():
                with self._round:
                    if not self.is_halted:
                        self.leading.round()
                        continue
                time.sleep(0.05)
        except Exception as error:  # noqa: BLE001 - the test looks at it
            self.error = error

    def halt(self) -> None:
        """Halt it, once its present round is over."""
        self.is_halted = True
        with self._round:
            pass

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()
        self.leading.resign()
        self.membership.__exit__(None, None, None)
        self._registry.close()
        self._transport.close()
        if self.error is not None:
            raise self.error


class Nodes:
    """Some nodes, and a stream of four tasks."""

    def __init__(self, broker: str) -> None:
        self.prefix = own_prefix("l")
        self._broker = broker
        self.running: dict[int, Node] = {}
        self.player = ClusterPlayer(broker, self.prefix)
        self.player.apply(DEFINITIONS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def start(
        self,
        number: int,
        units: int = 2,
        moves_limit: int = 4,
        checked_end: float = math.inf,
        disk: Iterable[TaskKey] = (),
    ) -> Node:
        self.running[number] = Node(
            self._broker,
            self.prefix,
            number,
            units=units,
            moves_limit=moves_limit,
            checked_end=checked_end,
            disk=disk,
        )
        return self.running[number]

    def stop(self, number: int) -> None:
        self.running.pop(number).stop()

    def write(self, topic: str, key: bytes, record: bytes) -> None:
        where = TopicPartition(topic, 0)
        self.player.transport.submit([Entry(where, Records.of([record]), [key])]).result()

    def written(self, topic: str) -> list[tuple[bytes | None, bytes | None]]:
        """The keys and values of a topic of one partition."""
        where = TopicPartition(topic, 0)
        end = self.player.transport.end_offset(*where)
        found: list[tuple[bytes | None, bytes | None]] = []
        consumer = Consumer({"bootstrap.servers": self._broker, "group.id": "x", "enable.auto.commit": False})
        try:
            consumer.assign([KafkaTopicPartition(*where, 0)])
            while len(found) < end:
                found += [(each.key(), each.value()) for each in consumer.consume(end - len(found), 10.0)]
        finally:
            consumer.close()
        return found

    def leaders(self) -> list[int]:
        return [number for number, node in self.running.items() if node.leading.leads and not node.is_halted]

    def places(self) -> set[frozenset[str]]:
        """The nodes of each task, as all nodes that run see them."""
        plans = {number: node.plan for number, node in self.running.items() if not node.is_halted}
        assert all(node.error is None for node in self.running.values())
        newest = max(plans.values(), key=lambda plan: plan.epoch)
        if any(plan != newest for plan in plans.values()) or len(newest.copies) != 4:
            return set()
        return {frozenset(each.copy.node for each in copies) for copies in newest.copies.values()}

    def close(self) -> None:
        for number in list(self.running):
            self.stop(number)
        self.player.close()
