"""A node is added, emptied by command, stopped, and used again; nodes are restarted one after the other; one that stays
away, and a dead one, are replaced: all under load, as docs/operations.md says.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from railgun.catalog.task_key import TaskKey
from railgun.cluster.plan import Copies
from railgun.cluster.records import PlanReader
from railgun.demo.processes import Server
from railgun.messaging.to_the_end import read_to_the_end
from railgun.messaging.transport import TopicPartition
from tests.failover.running_cluster import RunningCluster
from tests.forked import ROOT


def _command(cluster: RunningCluster, *words: str) -> tuple[int, str]:
    """Run a command while events go on; its exit code, and all that it says."""
    process = subprocess.Popen(
        [sys.executable, "-m", "railgun", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=ROOT,
    )
    cluster.drive_until(lambda: process.poll() is not None)
    assert process.stdout is not None
    with process.stdout:
        return process.wait(), process.stdout.read()


@pytest.mark.timeout(400)
def test_added_drained_stopped_and_used_again(kafka: str, tmp_path: Path) -> None:
    cluster = RunningCluster(kafka, tmp_path, 1, 2)
    settings = {"RAILGUN_CLUSTER__TOPIC_PREFIX": cluster.prefix}
    try:
        with Server("frontend", "--broker", kafka, settings=settings) as server:
            url = ("--url", server.url)
            cluster.add_node()
            # It gets a share, and each task still has two copies.
            cluster.drive_until(lambda: cluster.is_whole() and "node-3" in cluster.nodes_of_copies())
            code, said = _command(cluster, "cluster", "plan", "--what-if", "remove=node-1", *url)
            assert (code, "copies to make" in said) == (0, True), said
            code, said = _command(cluster, "drain", "node-1", *url)
            assert (code, "node-1 is drained: it may be stopped" in said) == (0, True), said
            cluster.drive_until(lambda: cluster.is_whole() and "node-1" not in cluster.nodes_of_copies())
            assert cluster.nodes["node-1"].stop() == 0
            code, said = _command(cluster, "drain", "node-2", *url)
            assert code == 1, said
            assert "node-2 is not drained" in said
            cluster.nodes["node-1"].start()
            code, said = _command(cluster, "undrain", "node-1", *url)
            assert code == 0, said
            cluster.drive_until(lambda: cluster.is_whole() and "node-1" in cluster.nodes_of_copies())
            code, said = _command(cluster, "cluster", "--tasks", *url)
            assert (code, "3 nodes, 3 units, 4 tasks × 2 copies" in said) == (0, True), said
            cluster.await_answers()
            cluster.check_replies()
    finally:
        cluster.close()


def _plans(cluster: RunningCluster) -> list[dict[TaskKey, Copies]]:
    """Where copies are by each plan that was written, the newest last."""
    reader, found = PlanReader(), []
    where = TopicPartition(cluster.player.registry.topics.assignment, 0)
    for fetched in read_to_the_end(cluster.player.transport, where):
        found += [dict(reader.plan.copies) for record in fetched.written() if reader.take(record)]
    return found


@pytest.mark.torture
def test_a_rolling_restart_loses_nothing_and_moves_nothing(kafka: str, tmp_path: Path) -> None:
    cluster = RunningCluster(kafka, tmp_path, 1, 3)
    try:
        cluster.drive(2.0)
        before = _plans(cluster)[-1]
        for node in cluster.nodes.values():
            assert node.stop() == 0
            cluster.drive(1.0)
            node.start()
            cluster.drive_until(cluster.is_whole)
        cluster.await_answers()
        cluster.check_replies()
        since = _plans(cluster)
        assert all(copies == before for copies in since[since.index(before) :])
        cluster.check_copies()
    finally:
        cluster.close()


def _planned(cluster: RunningCluster) -> set[str]:
    """The nodes that have copies by the newest plan."""
    return {each.copy.node for copies in _plans(cluster)[-1].values() for each in copies}


@pytest.mark.torture
def test_the_others_replace_a_node_that_stays_away_and_it_comes_back(kafka: str, tmp_path: Path) -> None:
    cluster = RunningCluster(kafka, tmp_path, 1, 3, more='replace_after_s = "5s"')
    try:
        cluster.drive(2.0)
        assert _planned(cluster) == set(cluster.nodes)
        away = cluster.nodes.pop("node-1")
        away.kill()
        cluster.drive_until(lambda: cluster.is_whole() and _planned(cluster) == set(cluster.nodes))
        cluster.await_answers()
        cluster.nodes[away.name] = away
        away.start()
        cluster.drive_until(lambda: cluster.is_whole() and _planned(cluster) == set(cluster.nodes))
        cluster.await_answers()
        cluster.check_replies()
        cluster.check_copies()
    finally:
        cluster.close()


@pytest.mark.torture
def test_a_dead_node_is_drained_and_another_has_its_place(kafka: str, tmp_path: Path) -> None:
    """By the default it would be replaced in five minutes: a command waits for less."""
    cluster = RunningCluster(kafka, tmp_path, 1, 2)
    settings = {"RAILGUN_CLUSTER__TOPIC_PREFIX": cluster.prefix}
    try:
        with Server("frontend", "--broker", kafka, settings=settings) as server:
            cluster.drive(2.0)
            dead = cluster.nodes.pop("node-1")
            dead.kill()
            cluster.add_node()
            cluster.drive_until(lambda: "node-3" in cluster.nodes_of_copies())
            code, said = _command(cluster, "drain", "node-1", "--url", server.url)
            assert (code, "node-1 is drained" in said) == (0, True), said
            assert _planned(cluster) == {"node-2", "node-3"}
            cluster.drive_until(cluster.is_whole)
            cluster.await_answers()
            cluster.check_replies()
        cluster.check_copies()
    finally:
        cluster.close()
