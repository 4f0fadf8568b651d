"""Nodes lose their disks one after the other, under load, while the logs have only what live copies need: each copy is
made of another one.
"""

import shutil
import time
from pathlib import Path

import pytest

from railgun.messaging.transport import TopicPartition
from tests.counts import seeds
from tests.failover.running_cluster import RunningCluster
from tests.failover.test_emptied_logs import check_equal

# Idle and silent copies take a checkpoint within twice the interval, which is 0.5 s here; then it is reported.
_CHECKPOINTED_S = 2.0
_HEARD_S = 1.0


def _empty_logs(cluster: RunningCluster, gone: str) -> None:
    """Delete from each task's log what no copy on the other nodes needs any more."""
    cluster.player.positions.read()
    topics, transport = cluster.player.registry.topics, cluster.player.transport
    for key in cluster.player.registry.snapshot().catalog.task_keys:
        needed = min(
            each.status.checkpoint
            for each in cluster.player.positions.copies(key)
            if each.copy.node != gone and each.status.state.is_caught_up
        )
        where = TopicPartition(topics.tasks(key.stream, key.partitioner), key.partition)
        transport.trim(*where, needed)
        assert transport.start_offset(*where) == needed > 0


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", seeds(range(1), range(5)))
def test_each_node_loses_its_disk(kafka: str, tmp_path: Path, seed: int) -> None:
    cluster = RunningCluster(kafka, tmp_path, seed, 3)
    try:
        cluster.drive(3.0)
        for name, node in cluster.nodes.items():
            cluster.drive(_CHECKPOINTED_S)
            assert node.stop() == 0
            shutil.rmtree(node.data)
            cluster.drive(_CHECKPOINTED_S)
            _empty_logs(cluster, name)
            node.start()
            cluster.await_healed()
            cluster.drive(1.0)
        cluster.await_answers()
        cluster.check_replies()
        time.sleep(_HEARD_S)
        copies = cluster.states()
        assert all("has come from" in node.said() for node in cluster.nodes.values())
        assert [node.stop() for node in cluster.nodes.values()] == [0, 0, 0]
        check_equal(cluster, tmp_path, copies)
    finally:
        cluster.close()
