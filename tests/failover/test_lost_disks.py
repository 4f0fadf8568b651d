"""Each node in turn loses its disk, where no log reaches back: all copies are there again, and equal."""

import shutil
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pytest

from railgun.cluster.copies import CopyName, CopyState
from railgun.messaging.transport import TopicPartition
from tests.counts import seeds
from tests.failover.running_cluster import RunningCluster
from tests.failover.test_emptied_logs import check_equal, empty_logs

_CHECKPOINTED_S = 2.0


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


def has_begun_anew(cluster: RunningCluster, before: Mapping[CopyName, int]) -> bool:
    """Whether units have begun runs after these. What is heard before reads as if all copies were there."""
    return all(cluster.runs(unit.node)[unit] > run for unit, run in before.items())


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", seeds(range(1), range(5)))
def test_each_node_loses_its_disk(kafka: str, tmp_path: Path, seed: int) -> None:
    cluster = RunningCluster(kafka, tmp_path, seed, 3)
    try:
        for name in list(cluster.nodes):
            cluster.drive(1.5)
            cluster.await_answers()
            time.sleep(_CHECKPOINTED_S)
            shorten_logs(cluster)
            node, before = cluster.nodes[name], cluster.runs(name)
            node.kill()
            shutil.rmtree(node.data)
            cluster.await_progress()
            node.start()
            cluster.drive_until(partial(has_begun_anew, cluster, before))
            cluster.await_healed()
            assert "its data up to offset" in node.said(), "the data came from another node"
        cluster.await_answers()
        cluster.check_replies()
        time.sleep(_CHECKPOINTED_S)
        copies = cluster.states()
        assert [node.stop() for node in cluster.nodes.values()] == [0, 0, 0]
        empty_logs(cluster, tmp_path, copies)
        check_equal(cluster, tmp_path, copies)
    finally:
        cluster.close()
