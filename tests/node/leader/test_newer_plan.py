"""A node whose release cannot read the plan is refused before it says anything, and before its units begin. One that
runs already keeps its last plan.
"""

import threading
import time
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from railgun.cluster.records import NodeRecord, decode_statement, encode_plan, encode_statement
from railgun.config.settings import Settings
from railgun.node.identity import NodeRefusedError, node_identity
from railgun.node.leader.ended_units import EndedUnits
from railgun.node.leader.process import LeaderPlace, run_leader
from railgun.node.relay import Serving
from railgun.registry.cluster_topics import make_topics
from tests.node.leader.leading_nodes import Nodes
from tests.unit.local_units import awaited

NEWER = msgspec.json.encode({"kind": "plan", "version": 9, "all": "else"})


def test_it_leaves_what_its_newer_release_said_and_begins_nothing(
    kafka: str, nodes: Nodes, tmp_path: Path
) -> None:
    topics = nodes.player.registry.topics
    make_topics(nodes.player.transport, topics)
    identity = node_identity(tmp_path, "node-1")
    said = NodeRecord(name="node-1", folder=identity.folder, incarnation=7, host="here", units=2, release="9")
    nodes.write(topics.nodes, said.key, encode_statement(said))
    nodes.write(topics.assignment, b"plan", NEWER)
    defaults = Settings()
    cluster = replace(defaults.cluster, broker=kafka, topic_prefix=nodes.prefix, node_name="node-1")
    place = LeaderPlace(tmp_path, identity, 2, "0", time.time_ns() // 1_000_000)
    begun: list[object] = []
    with pytest.raises(NodeRefusedError, match="the plan is of version 9; this release reads 1; start a rel"):
        run_leader(
            replace(defaults, cluster=cluster),
            place,
            threading.Event(),
            lambda: begun.append("units"),
            lambda leading: begun.append(leading),
            EndedUnits(),
            Serving,
        )
    assert not begun
    assert nodes.written(topics.nodes) == [(said.key, encode_statement(said))]


def test_one_that_runs_keeps_its_plan_says_so_once_and_does_not_lead(
    nodes: Nodes, caplog: pytest.LogCaptureFixture
) -> None:
    topics = nodes.player.registry.topics
    node = nodes.start(1)
    awaited(lambda: nodes.places() == {frozenset({"node-1"})})
    # A broker ends a transaction a moment after it has said that it is committed.
    awaited(lambda: nodes.player.transport.end_offset(topics.assignment, 0) > 0)
    plan, end = node.plan, nodes.player.transport.end_offset(topics.assignment, 0)
    for _ in range(2):
        nodes.write(topics.assignment, b"plan", NEWER)
    awaited(lambda: not node.leading.leads)

    def said() -> NodeRecord:
        newest = decode_statement(nodes.written(topics.nodes)[-1][1] or b"")
        assert isinstance(newest, NodeRecord)
        return newest

    awaited(lambda: said().unread == "the plan is of version 9; this release reads 1")
    # It would have planned copies for the node that comes now.
    nodes.start(2)
    awaited(lambda: caplog.text.count("this node does not lead") == 2)
    time.sleep(2.0)
    assert (node.error, node.plan) == (None, plan)
    assert nodes.player.transport.end_offset(topics.assignment, 0) == end + 2
    assert caplog.text.count("this node does not lead") == 2, "once of each node"
    # A plan that it can read ends this.
    newer = replace(plan, epoch=plan.epoch + 1, cause="written by hand")
    for key, record in encode_plan(newer, plan, node.leading._observed.nodes["node-1"].incarnation + 1):
        nodes.write(topics.assignment, key, record)
    awaited(lambda: said().unread == "")
