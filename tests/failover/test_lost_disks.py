"""Each node in turn loses its disk, where no log reaches back: all copies are there again, and equal."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pytest

from railgun.cluster.copies import CopyName, CopyState
from railgun.messaging.transport import TopicPartition
from tests.counts import seeds
from tests.failover.running_cluster import Node, RunningCluster
from tests.failover.test_emptied_logs import check_equal, empty_logs

# The data of a task is some hundred kilobytes.
_SLOWLY = "transfer_rate_bytes = 40000"


def shorten_logs(cluster: RunningCluster) -> None:
    """Delete from the log of each task what comes before all of its checkpoints."""
    cluster.player.positions.read()
    transport, topics = cluster.player.transport, cluster.player.registry.topics
    for key in cluster.player.registry.snapshot().catalog.task_keys:
        where = TopicPartition(topics.tasks(key.stream, key.partitioner), key.partition)
        copies = [
            each.status
            for each in cluster.player.positions.copies(key)
            if each.copy.node in cluster.nodes and each.status.state is not CopyState.CLOSED
        ]
        transport.trim(*where, min(each.checkpoint for each in copies))
        assert transport.start_offset(*where) > 0, "the log alone makes no copy"


def keep_logs_for_an_hour(cluster: RunningCluster) -> None:
    """Have the broker delete records of the logs of tasks after an hour."""
    transport, topics = cluster.player.transport, cluster.player.registry.topics
    for key in cluster.player.registry.snapshot().catalog.task_keys:
        transport.set_retention(topics.tasks(key.stream, key.partitioner), 3_600_000)


def has_begun_anew(cluster: RunningCluster, before: Mapping[CopyName, int]) -> bool:
    """Whether units have begun runs after these. What is heard before reads as if all copies were there."""
    return all(cluster.runs(unit.node)[unit] > run for unit, run in before.items())


def begin_on_a_new_disk(cluster: RunningCluster, node: Node) -> None:
    """Kill a node, delete its data and start it. Returns once its units have begun."""
    before = cluster.runs(node.name)
    node.lose_disk()
    node.start()
    cluster.drive_until(partial(has_begun_anew, cluster, before))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", seeds(range(1), range(5)))
def test_each_node_loses_its_disk(kafka: str, tmp_path: Path, seed: int) -> None:
    cluster = RunningCluster(kafka, tmp_path, seed, 3)
    try:
        keep_logs_for_an_hour(cluster)
        for name in list(cluster.nodes):
            cluster.drive(1.5)
            cluster.await_answers()
            cluster.await_checkpoints()
            shorten_logs(cluster)
            node, before = cluster.nodes[name], cluster.runs(name)
            node.lose_disk()
            cluster.await_progress()
            node.start()
            cluster.drive_until(partial(has_begun_anew, cluster, before))
            cluster.await_healed()
            assert "its data up to offset" in node.said(), "the data came from another node"
        cluster.await_answers()
        cluster.check_replies()
        cluster.await_checkpoints()
        copies = cluster.states()
        assert [node.stop() for node in cluster.nodes.values()] == [0, 0, 0]
        # So they are when nothing has come for as long as logs are kept.
        assert empty_logs(cluster, tmp_path, copies) == 0
        check_equal(cluster, tmp_path, copies)
        for node in cluster.nodes.values():
            node.start()
        cluster.await_healed()
        cluster.drive(1.0)
        cluster.await_answers()
        cluster.check_replies()
    finally:
        cluster.close()


def _partners(cluster: RunningCluster, node: str) -> set[str]:
    """The other nodes that have copies of the tasks of a node."""
    return {
        copy.node
        for copies in cluster.states().values()
        if any(each.node == node for each in copies)
        for copy in copies
        if copy.node != node
    }


def _have_given_at_once(cluster: RunningCluster, before: Mapping[CopyName, int], donors: set[str]) -> bool:
    """Whether a unit has said, in a run after one of these, that its data comes from all these nodes at a time."""
    cluster.player.positions.read()
    for report in cluster.player.positions.reports:
        if report.copy in before and report.generation > before[report.copy]:
            fetching = [each.fetching for each in report.copies]
            if {
                each.donor.rpartition("/")[0] for each in fetching if each is not None and each.donor
            } == donors:
                return True
    return False


@pytest.mark.timeout(300)
def test_the_data_of_a_lost_disk_comes_from_two_nodes_at_once(kafka: str, tmp_path: Path) -> None:
    cluster = RunningCluster(kafka, tmp_path, 0, 3, more=_SLOWLY)
    try:
        cluster.drive(1.5)
        cluster.await_answers()
        cluster.await_checkpoints()
        shorten_logs(cluster)
        node = next(each for each in cluster.nodes.values() if len(_partners(cluster, each.name)) == 2)
        donors, before = _partners(cluster, node.name), cluster.runs(node.name)
        node.lose_disk()
        node.start()
        cluster.drive_until(lambda: _have_given_at_once(cluster, before, donors))
        cluster.drive_until(partial(has_begun_anew, cluster, before))
        cluster.await_healed()
        cluster.await_answers()
        cluster.check_replies()
    finally:
        cluster.close()
