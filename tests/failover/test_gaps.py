"""A log is deleted up to behind the checkpoints of all copies, while their nodes are away: the task stops, and goes on
behind the gap once that is accepted, as the oracle does.
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from frontend.backend.cluster import GapOrder
from frontend.kafka.cluster_state import ClusterState
from frontend.kafka.task_states import TaskStates
from frontend.problems import ProblemError
from railgun.cluster.copies import CopyState
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.registry import evolution
from tests.broker.own_topics import own_prefix
from tests.failover.running_cluster import Node
from tests.oracle.compare import differences
from tests.oracle.stream import Oracle
from tests.strategies.case import STREAM
from tests.unit.cluster_player import ClusterPlayer
from tests.unit.local_units import awaited, quick_settings

_DEFINITIONS = """
[streams.s]
time = "ts"
id = "id"
partitioners = ["card"]
partitions = 1
max_future = "1ms"
[streams.s.fields]
id = "long"
ts = "timestamp"
card = "string"
x = "double"
[[metrics]]
sql = "SELECT count(*) AS n, sum(x) AS total FROM s GROUP BY card OVER INFINITE"
[[metrics]]
sql = "SELECT sum(x) AS lately FROM s GROUP BY card OVER SLIDING 300 MILLISECONDS"
[[metrics]]
sql = "SELECT count(*) AS gone FROM s GROUP BY card OVER SLIDING 1 HOUR"
[[metrics]]
sql = "SELECT sum(x) FILTER (WHERE x > 5) AS before FROM s GROUP BY card OVER SLIDING 1 HOUR EXCLUDE CURRENT"
[[metrics]]
sql = "DERIVE lately / 2 AS half, n + 1 AS more FROM s"
"""
_ADDED = "SELECT max(x) AS most FROM s GROUP BY card OVER SLIDING 300 MILLISECONDS"
_HOUR_MS = 3_600_000


class Cluster:
    """Nodes, each with a copy of the one task."""

    def __init__(self, kafka: str, folder: Path, stack: ExitStack, nodes: int) -> None:
        self._kafka, self._prefix, self._stack, self._players = kafka, own_prefix("g"), stack, 0
        self.player = self.opened_player()
        self.player.apply(_DEFINITIONS)
        topics = self.player.registry.topics
        (self.task,) = self.player.registry.snapshot().catalog.task_keys
        self.where = topics.tasks(self.task.stream, self.task.partitioner), self.task.partition
        self.transport = KafkaTransport(quick_settings(kafka))
        stack.callback(self.transport.close)
        self.states = TaskStates(self.transport, topics)
        stack.callback(self.states.close)
        self.state = ClusterState(self.transport, quick_settings(kafka), topics, self.states)
        names = [f"node-{number}" for number in range(1, nodes + 1)]
        self.nodes = [Node(folder / name, name, kafka, self._prefix, 1) for name in names]
        for node in self.nodes:
            stack.callback(lambda node=node: node.kill() if node.process.poll() is None else None)
        self.await_states([CopyState.ANSWERING, *[CopyState.SILENT] * (nodes - 1)])
        self._next = 0

    def opened_player(self) -> ClusterPlayer:
        self._players += 1
        player = ClusterPlayer(self._kafka, self._prefix, self._players)
        self._stack.callback(player.close)
        return player

    def events(self, count: int, at_ms: int) -> list[dict[str, Any]]:
        first, self._next = self._next, self._next + count
        return [
            {"id": number, "ts": at_ms + number - first, "card": f"c{number % 3}", "x": number / 8}
            for number in range(first, first + count)
        ]

    def copies(self) -> list[Any]:
        """What is heard of the task's copies."""
        return [copy.status for copy in self.states.reports.copies(self.task)]

    def await_states(self, wanted: list[CopyState]) -> None:
        awaited(lambda: sorted(copy.state for copy in self.copies()) == sorted(wanted))

    def accept(self, node: str = "", *, is_asked: bool = False) -> dict[str, Any]:
        return self.state.accept_gap(self.task, self.player.registry, GapOrder(node, is_asked=is_asked))


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as opened:
        yield opened


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


@pytest.mark.timeout(300)
@pytest.mark.parametrize("nodes", [1, 2])
def test_a_task_goes_on_behind_a_gap(kafka: str, tmp_path: Path, stack: ExitStack, nodes: int) -> None:
    cluster = Cluster(kafka, tmp_path, stack, nodes)
    wanted = [CopyState.ANSWERING, *[CopyState.SILENT] * (nodes - 1)]
    model = Oracle(_DEFINITIONS).streams[STREAM]
    # One of the events will leave the window of an hour soon.
    first = [*cluster.events(1, _now_ms() - _HOUR_MS + 1_000), *cluster.events(99, _now_ms() - 400)]
    for event in first:
        cluster.player.score(event)
    _check(model, first, cluster.player)
    with pytest.raises(ProblemError, match="has not failed"):
        cluster.accept()
    assert [node.stop() for node in cluster.nodes] == [0] * nodes
    state = cluster.transport.end_offset(*cluster.where)

    offset, later, left = _lose(cluster)
    cluster.transport.trim(*cluster.where, offset)

    for node in cluster.nodes:
        node.start()
    cluster.await_states([CopyState.FAILED] * nodes)
    for copy in cluster.copies():
        assert "accept-gap s/card/0" in copy.failure
        assert copy.left_behind.position == state
    with pytest.raises(ProblemError, match="node-9 has no copy"):
        cluster.accept("node-9")
    asked = cluster.accept(is_asked=True)
    assert (asked["outcome"], asked["first"], asked["offset"]) == ("would_cross", state, offset)
    assert asked["clock_ms"] == first[-1]["ts"]
    accepted = cluster.accept()
    assert accepted == {**asked, "outcome": "crossed"}
    cluster.await_states(wanted)
    again = cluster.accept()
    assert (again["outcome"], again["offset"]) == ("accepted_before", offset)
    assert {copy.gap_ms for copy in cluster.copies()} == {accepted["gap_ms"]}

    # What is left is answered: before and after the new metric is warm, partial and whole, and after a restart.
    model.add_field("shop", "string")
    model.add_metrics(_ADDED, warm=False)
    model.drop_metric("gone")
    model.tasks["card"][0].cross_gap(accepted["gap_ms"], 0)
    awaited(lambda: not any(copy.warming for copy in cluster.copies()))
    later.front_end.await_all()
    # The new metric is warm somewhere amid these.
    for event, reply in zip(left, later.replies(), strict=True):
        if "most" not in reply.get("warming", ()):
            model.warm("most")
        assert differences(model.score(event), reply) == []
        assert {"n", "total", "lately", "before", "half", "more"} <= set(reply["partial"])
        assert "gone" not in reply["metrics"]
    model.warm("most")
    _check_one_by_one(model, cluster, later, _now_ms())
    assert [node.stop() for node in cluster.nodes] == [0] * nodes
    for node in cluster.nodes:
        node.start()
    cluster.await_states(wanted)
    partial = _check_one_by_one(model, cluster, later, max(_now_ms(), accepted["gap_ms"] + 1_000))
    assert "n" in partial
    assert "lately" not in partial
    assert "half" not in partial


@pytest.mark.timeout(300)
def test_an_order_that_comes_while_copies_are_being_opened_is_no_success_until_it_helps(
    kafka: str, tmp_path: Path, stack: ExitStack
) -> None:
    """An earlier order stands, and does not help: the log has lost more since. No refusal is taken for a success."""
    cluster = Cluster(kafka, tmp_path, stack, 1)
    (node,) = cluster.nodes
    for _ in range(2):
        for event in cluster.events(50, _now_ms()):
            cluster.player.score(event)
        cluster.player.replies()
        assert node.stop() == 0
        for event in cluster.events(30, _now_ms()):
            cluster.player.score(event)
        cluster.player.flush()
        offset = cluster.transport.end_offset(*cluster.where)
        cluster.transport.trim(*cluster.where, offset)
        node.start()
        until_s, outcomes = time.monotonic() + 60.0, list[str]()
        while not outcomes and time.monotonic() < until_s:
            with suppress(ProblemError):
                outcomes.append(cluster.accept()["outcome"])
        assert outcomes == ["crossed"]
        cluster.await_states([CopyState.ANSWERING])
        cluster.player = cluster.opened_player()


def _lose(cluster: Cluster) -> tuple[int, ClusterPlayer, list[dict[str, Any]]]:
    """Write what will lie in the gap: events, a field, and metrics that are added and dropped; then events behind it.

    Returns the first offset behind it, who has sent the events behind it, and these.
    """
    lost = cluster.opened_player()
    for event in cluster.events(40, _now_ms()):
        lost.score(event)
    lost.flush()
    lost.add_field("shop", "string")
    lost.registry.change(lambda catalog: evolution.new_metrics(catalog, STREAM, _ADDED))
    lost.drop_metric("gone")
    for event in cluster.events(20, _now_ms()):
        lost.score(event)
    lost.flush()
    offset = cluster.transport.end_offset(*cluster.where)
    later = cluster.opened_player()
    awaited(lambda: "gone" not in later.registry.snapshot().catalog.streams[STREAM].metrics)
    left = [{**event, "shop": "b"} for event in cluster.events(10, _now_ms())]
    for event in left:
        later.score(event)
    later.flush()
    return offset, later, left


def _check_one_by_one(model: Any, cluster: Cluster, player: ClusterPlayer, at_ms: int) -> dict[str, int]:
    """Compare the answers to some more events. Returns what the last one is partial by."""
    events = [{**event, "shop": None} for event in cluster.events(30, at_ms)]
    known = len(player.replies())
    for event in events:
        player.score(event)
    _check(model, events, player, known)
    partial: dict[str, int] = player.replies()[-1]["partial"]
    return partial


def _check(model: Any, events: list[dict[str, Any]], player: ClusterPlayer, known: int = 0) -> None:
    got = player.replies()[known:]
    assert [differences(model.score(event), reply) for event, reply in zip(events, got, strict=True)] == [
        [] for _ in events
    ]
