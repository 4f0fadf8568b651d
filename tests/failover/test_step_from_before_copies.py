"""The step from a release without copies, as docs/operations.md has it: nodes go on with the folders that they have.

The folders and topics are those of two nodes of such a release, which were stopped (tests/golden/README.md).
"""

import json
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyName, CopyState
from railgun.cluster.reports import CopyStatus, decode_report
from railgun.host.place import task_folder
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.messaging.to_the_end import read_to_the_end
from railgun.messaging.transport import TopicPartition, TopicSettings
from tests.broker.own_topics import own_prefix
from tests.failover.running_cluster import TASKS, Node
from tests.golden.make_folders import FOLDERS
from tests.golden.portable import brought_back
from tests.oracle.compare import differences
from tests.oracle.stream import Oracle
from tests.unit.cluster_player import ClusterPlayer
from tests.unit.equal_copies import check_equal
from tests.unit.fixed_plan import FixedPlan
from tests.unit.local_units import SMALL, LocalUnit, awaited, quick_settings
from tests.unit.processes import PLAIN, event

_BEFORE = FOLDERS / "before_copies"
_NODES = ("old-0", "old-1")
_EVENTS = 150
"""So many events the old nodes have answered."""
# The old nodes were stopped so long ago.
_AGO_MS = 60_000


class _Step:
    """Brings the folders and the topics back, and starts nodes of this release on them."""

    def __init__(self, broker: str, folder: Path) -> None:
        self._broker, self._folder = broker, folder
        self.prefix = own_prefix("b")
        self._bring_topics()
        for name in _NODES:
            data = brought_back(_BEFORE / name, folder / name / "data")
            # A node leaves it behind, with its process in it; goldens have no locks.
            (data / "node.lock").write_text("4242\n", encoding="ascii")
        # The front-ends first.
        self.player = ClusterPlayer(broker, self.prefix, number=2)
        self.sent = _EVENTS
        self.nodes: list[Node] = []

    def _bring_topics(self) -> None:
        topics = json.loads((_BEFORE / "topics.json").read_text(encoding="ascii"))
        producer = Producer({"bootstrap.servers": self._broker})
        with KafkaTransport(quick_settings(self._broker)) as transport:
            for name, partitions in topics.items():
                topic = f"{self.prefix}.{name}"
                is_compacted = name in ("catalog", "positions")
                transport.create_topic(topic, len(partitions), TopicSettings(is_compacted=is_compacted))
                for partition, records in enumerate(partitions):
                    for key, value in records:
                        producer.produce(
                            topic,
                            bytes.fromhex(value),
                            self._own_key(key),
                            partition,
                            timestamp=time.time_ns() // 1_000_000 - _AGO_MS,
                        )
        assert producer.flush(60) == 0

    def _own_key(self, key: str | None) -> bytes | None:
        """The keys of old positions name topics, with the prefix of the cluster."""
        return None if key is None else bytes.fromhex(key).replace(b"before.", f"{self.prefix}.".encode())

    def send(self, count: int) -> None:
        for _ in range(count):
            self.player.score(event(self.sent))
            self.sent += 1
        self.player.flush()

    def start(self) -> None:
        self.nodes += [Node(self._folder / name, name, self._broker, self.prefix, 1) for name in _NODES]

    def reports(self) -> Iterator[tuple[str, CopyStatus]]:
        """All that nodes of this release have reported, by the node's name."""
        where = TopicPartition(self.player.registry.topics.positions, 0)
        for fetched in read_to_the_end(self.player.transport, where):
            for record in fetched.written():
                report = decode_report(record)
                if report is not None:
                    yield from ((report.node, status) for status in report.copies)

    def is_whole(self) -> bool:
        """Whether each task has a copy that answers, and a silent one."""
        self.player.positions.read()
        newest = self.player.positions.newest
        states = [
            sorted(copy.status.state for copy in self.player.positions.copies(heard.status.task))
            for heard in newest.values()
        ]
        return states == [[CopyState.ANSWERING, CopyState.SILENT]] * TASKS

    def check_replies(self) -> None:
        """What is answered now is what the oracle says behind all events of before."""
        model, got = Oracle(PLAIN).streams["s"], self.player.replies()
        for number in range(_EVENTS):
            model.score(event(number))
        assert len(got) == self.sent - _EVENTS
        for number, reply in enumerate(got, _EVENTS):
            found = differences(model.score(event(number)), reply)
            assert not found, f"event {number}: {found}"

    def check_copies(self) -> None:
        """Stop the nodes; then their copies have equal data, those that were made now and those of before."""
        assert [node.stop() for node in self.nodes] == [0, 0]
        order = [CopyName(name, 0) for name in _NODES]
        with ExitStack() as stack:
            opened = []
            for node in self.nodes:
                plan = FixedPlan(order)
                opened.append(
                    LocalUnit(
                        self._broker,
                        self.prefix,
                        node.data,
                        0,
                        1,
                        SMALL,
                        node=node.name,
                        assignments=plan,
                    )
                )
                stack.callback(opened[-1].stop)
            check_equal(opened, TASKS)

    def close(self) -> None:
        for node in self.nodes:
            if node.process.poll() is None:
                node.kill()
        self.player.close()


def _before() -> dict[TaskKey, dict[str, Any]]:
    """What the old nodes said of each task in the end."""
    topics = json.loads((_BEFORE / "topics.json").read_text(encoding="ascii"))
    said = [json.loads(bytes.fromhex(value)) for _, value in topics["positions"][0]]
    return {
        TaskKey(each["stream"], each["created"], each["partitioner"], each["partition"]): each
        for each in said
    }


@pytest.mark.timeout(400)
def test_nodes_go_on_with_their_folders(kafka: str, tmp_path: Path) -> None:
    before, step = _before(), _Step(kafka, tmp_path)
    assert {each["node"] for each in before.values()} == {*_NODES}
    for task, said in before.items():
        assert [node for node in _NODES if task_folder(_BEFORE / node, *task).is_dir()] == [said["node"]]
    try:
        # Nobody runs: these wait.
        step.send(40)
        step.start()
        awaited(step.is_whole, 120.0)
        step.send(60)
        step.check_replies()
        checkpoints = defaultdict[TaskKey, list[int]](list)
        for node, status in step.reports():
            if status.position > 0 and before[status.task]["node"] == node:
                checkpoints[status.task].append(status.checkpoint)
        for task, said in before.items():
            # Its node has gone on from its last checkpoint; the other one has begun with nothing.
            assert min(checkpoints[task]) >= said["checkpointed"] > 0
        step.check_copies()
    finally:
        step.close()
