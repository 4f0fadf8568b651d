"""A node whose release cannot read the plan is refused before it says anything, and before its units begin."""

import threading
import time
from collections import deque
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from railgun.cluster.records import NodeRecord, encode_statement
from railgun.config.settings import Settings
from railgun.node.identity import NodeRefusedError, node_identity
from railgun.node.leader.process import LeaderPlace, run_leader
from railgun.node.relay import Serving
from railgun.registry.cluster_topics import make_topics
from tests.node.leader.leading_nodes import Nodes


def test_it_leaves_what_its_newer_release_said_and_begins_nothing(
    kafka: str, nodes: Nodes, tmp_path: Path
) -> None:
    topics = nodes.player.registry.topics
    make_topics(nodes.player.transport, topics)
    identity = node_identity(tmp_path, "node-1")
    said = NodeRecord(name="node-1", folder=identity.folder, incarnation=7, host="here", units=2, release="9")
    nodes.write(topics.nodes, said.key, encode_statement(said))
    nodes.write(
        topics.assignment, b"plan", msgspec.json.encode({"kind": "plan", "version": 9, "all": "else"})
    )
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
            deque(),
            Serving,
        )
    assert not begun
    assert nodes.written(topics.nodes) == [(said.key, encode_statement(said))]
