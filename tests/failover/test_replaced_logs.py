"""The topic of a task is deleted, or made anew, under two copies: they stop, neither reads the new one on, and both
begin anew once that is accepted.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from frontend.kafka.cluster_state import ClusterState
from frontend.kafka.task_states import TaskStates
from railgun.catalog.changes import change_to_json
from railgun.cluster.copies import CopyState
from railgun.host.place import task_folder
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.wire.control_records import encode_control
from tests.broker.own_topics import own_prefix
from tests.failover.running_cluster import Node
from tests.oracle.compare import differences
from tests.oracle.stream import Oracle
from tests.strategies.case import STREAM
from tests.task.committed import committed_at
from tests.unit.cluster_player import ClusterPlayer
from tests.unit.local_units import awaited, quick_settings

_DEFINITIONS = """
[streams.s]
time = "ts"
id = "id"
partitioners = ["card"]
partitions = 1
[streams.s.fields]
id = "long"
ts = "timestamp"
card = "string"
x = "double"
[[metrics]]
sql = "SELECT count(*) AS n, sum(x) AS total, last(x) AS newest FROM s GROUP BY card OVER INFINITE"
"""


class Cluster:
    """Two nodes with a copy of the one task."""

    def __init__(self, kafka: str, folder: Path, stack: ExitStack) -> None:
        self._kafka, self._folder, self._stack = kafka, folder, stack
        self._prefix = own_prefix("w")
        self.player = self._opened_player(1)
        self.player.apply(_DEFINITIONS)
        topics = self.player.registry.topics
        (self.task,) = self.player.registry.snapshot().catalog.task_keys
        self.topic = topics.tasks(self.task.stream, self.task.partitioner)
        self.transport = KafkaTransport(quick_settings(kafka))
        stack.callback(self.transport.close)
        self.states = TaskStates(self.transport, topics)
        stack.callback(self.states.close)
        self._state = ClusterState(self.transport, quick_settings(kafka), topics, self.states)
        self.nodes = [Node(folder / name, name, kafka, self._prefix, 1) for name in ("node-1", "node-2")]
        for node in self.nodes:
            stack.callback(lambda node=node: node.kill() if node.process.poll() is None else None)
        self.await_states([CopyState.ANSWERING, CopyState.SILENT])

    def _opened_player(self, number: int) -> ClusterPlayer:
        player = ClusterPlayer(self._kafka, self._prefix, number)
        self._stack.callback(player.close)
        return player

    def send(self, first: int, count: int) -> list[dict[str, Any]]:
        """Send events, and wait for the answers to them."""
        events = [
            {"id": number, "ts": 1_700_000_000_000 + 10 * number, "card": f"c{number % 5}", "x": number / 8}
            for number in range(first, first + count)
        ]
        for event in events:
            self.player.score(event)
        self.player.replies()
        return events

    def replace(self, events: int) -> None:
        """Delete the topic, and make it anew, with definitions and events."""
        self.transport.delete_topic(self.topic)
        self.transport.create_topic(self.topic, 1)
        catalog = self.player.registry.snapshot().catalog
        changes = [encode_control(change_to_json(change)) for change in catalog.changes()]
        self.transport.append(self.topic, 0, changes)
        self.player = self._opened_player(2)
        for number in range(events):
            self.player.score({"id": 10_000 + number, "ts": 1_700_000_000_000, "card": "c0", "x": 1.0})
        self.player.flush()

    def accept(self) -> dict[str, Any]:
        return self._state.accept_cut(self.task, self.player.registry)

    def check(self, first: int, count: int) -> None:
        """Send events, and compare the answers to them with those of a stream that begins with them. The front-end has
        written to the topic before.
        """
        events, model = self.send(first, count), Oracle(_DEFINITIONS).streams[STREAM]
        got = self.player.replies()[-count:]
        assert [differences(model.score(event), reply) for event, reply in zip(events, got, strict=True)] == [
            [] for _ in events
        ]

    def copies(self) -> list[Any]:
        """What is heard of the task's copies."""
        return [copy.status for copy in self.states.reports.copies(self.task)]

    def await_states(self, wanted: list[CopyState]) -> None:
        awaited(lambda: sorted(copy.state for copy in self.copies()) == wanted)

    def committed(self) -> list[int]:
        """How far the copies are checkpointed. No node runs."""
        key = self.task
        return [
            committed_at(task_folder(node.data, key.stream, key.created, key.partitioner, key.partition))
            for node in self.nodes
        ]


@pytest.fixture
def cluster(kafka: str, tmp_path: Path) -> Iterator[Cluster]:
    with ExitStack() as stack:
        yield Cluster(kafka, tmp_path, stack)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("events", [5, 300])
@pytest.mark.parametrize("runs", [True, False])
def test_no_copy_reads_another_topic_on(cluster: Cluster, events: int, *, runs: bool) -> None:
    """The new log is shorter than the states, or longer. runs: whether the nodes run while it is replaced."""
    cluster.send(0, 100)
    topic_id = cluster.transport.topic_ids([cluster.topic])[cluster.topic]
    if not runs:
        assert [node.stop() for node in cluster.nodes] == [0, 0]
        before = cluster.committed()
        assert min(before) > 100
    cluster.replace(events)
    if not runs:
        for node in cluster.nodes:
            node.start()
    cluster.await_states([CopyState.FAILED, CopyState.FAILED])
    for copy in cluster.copies():
        assert "the topic was deleted and made anew" in copy.failure
        assert "`railgun cluster accept-cut s/card/0`" in copy.failure
        assert copy.replaced == topic_id
    # A restart does not forgive it, and nothing on disk has changed.
    assert [node.stop() for node in cluster.nodes] == [0, 0]
    if not runs:
        assert cluster.committed() == before
    cluster.nodes[0].start()
    awaited(lambda: any(copy.state is CopyState.FAILED for copy in cluster.copies()))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("is_made", [True, False])
def test_a_task_begins_anew_once_that_is_accepted(cluster: Cluster, *, is_made: bool) -> None:
    """is_made: whether somebody makes the topic anew; events come into it before its definitions."""
    cluster.send(0, 100)
    cluster.transport.delete_topic(cluster.topic)
    if is_made:
        cluster.transport.create_topic(cluster.topic, 1)
        cluster.transport.append(cluster.topic, 0, [b"an event"] * 200)
    cluster.await_states([CopyState.FAILED, CopyState.FAILED])
    # One of the nodes is away, and hears of it when it comes back.
    assert cluster.nodes[1].stop() == 0
    accepted = cluster.accept()
    assert (accepted["outcome"], accepted["offset"]) == ("begun_anew", 200 if is_made else 0)
    assert accepted["records"] > 100
    awaited(lambda: CopyState.ANSWERING in [copy.state for copy in cluster.copies()])
    again = cluster.accept()
    assert (again["outcome"], again["offset"]) == ("accepted_before", accepted["offset"])
    cluster.check(500, 100)
    cluster.nodes[1].start()
    cluster.await_states([CopyState.ANSWERING, CopyState.SILENT])
    assert [node.stop() for node in cluster.nodes] == [0, 0]
    first, second = cluster.committed()
    assert first == second > accepted["offset"] + 100
    # What was accepted stands for good.
    for node in cluster.nodes:
        node.start()
    cluster.await_states([CopyState.ANSWERING, CopyState.SILENT])


@pytest.mark.timeout(300)
def test_an_order_that_was_cut_off_is_finished_by_the_next_one(cluster: Cluster) -> None:
    """It had made the topic and written the definitions, and its front-end died before it gave the order. Nodes that
    start while the topic is gone know which one they have lost.
    """
    cluster.send(0, 100)
    topic_id = cluster.transport.topic_ids([cluster.topic])[cluster.topic]
    assert [node.stop() for node in cluster.nodes] == [0, 0]
    cluster.transport.delete_topic(cluster.topic)
    for node in cluster.nodes:
        node.start()
    cluster.await_states([CopyState.FAILED, CopyState.FAILED])
    assert {copy.replaced for copy in cluster.copies()} == {topic_id}
    cluster.player.registry.make_task_topic(cluster.task)
    begin = cluster.player.registry.tell_anew(cluster.task)
    accepted = cluster.accept()
    assert (accepted["outcome"], accepted["offset"] > begin) == ("begun_anew", True)
    cluster.await_states([CopyState.ANSWERING, CopyState.SILENT])
    assert cluster.accept() == {**accepted, "outcome": "accepted_before", "records": 0}
    cluster.check(500, 100)
    assert [node.stop() for node in cluster.nodes] == [0, 0]
