"""While no node runs, the logs of tasks lose all that was checkpointed: all come back, answer, and are equal."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyName
from railgun.host.place import task_folder
from railgun.messaging.transport import TopicPartition
from railgun.task.recovery import open_task
from railgun.task.settings import TaskIdentity
from railgun.wire.records import Records
from reservoir.files import DiskFiles
from tests.counts import seeds
from tests.failover.running_cluster import RunningCluster
from tests.task.committed import committed_at

Copies = Mapping[tuple[str, int], Iterable[CopyName]]
"""By task, the copies that it has. Folders of copies that have moved away may be there too."""


def folders_of(cluster: RunningCluster, folder: Path, copies: Copies) -> dict[TaskKey, list[Path]]:
    """The folders of the copies of each task."""
    return {
        key: [
            task_folder(folder / copy.node / "data", key.stream, key.created, key.partitioner, key.partition)
            for copy in copies[key.partitioner, key.partition]
        ]
        for key in cluster.player.registry.snapshot().catalog.task_keys
    }


def empty_logs(cluster: RunningCluster, folder: Path, copies: Copies) -> int:
    """Delete from each task's log what no copy's checkpoint needs any more. Returns how many records are left."""
    transport, topics, left = cluster.player.transport, cluster.player.registry.topics, 0
    for key, folders in folders_of(cluster, folder, copies).items():
        where = TopicPartition(topics.tasks(key.stream, key.partitioner), key.partition)
        needed = min(map(committed_at, folders))
        transport.trim(*where, needed)
        assert transport.start_offset(*where) == needed > 0
        left += transport.end_offset(*where) - needed
    return left


def check_equal(cluster: RunningCluster, folder: Path, copies: Copies) -> None:
    """Compare the digests of the copies of each task at the ends of the logs. No node runs."""
    keys = cluster.player.registry.snapshot().keys
    for key, folders in folders_of(cluster, folder, copies).items():
        identity, found = TaskIdentity(key.stream, key.partitioner, key.partition, keys[key.stream]), set()
        for each in folders:
            task = open_task(each, identity, DiskFiles(), _no_log)
            found.add((task.position, task.digest()))
            task.close()
        assert len(folders) == 2
        assert len(found) == 1


def _no_log(first: int, end: int) -> list[tuple[int, Records]]:
    raise AssertionError("nothing of the log is needed")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", seeds(range(1), range(5)))
def test_all_nodes_come_back(kafka: str, tmp_path: Path, seed: int) -> None:
    cluster = RunningCluster(kafka, tmp_path, seed, 3)
    try:
        cluster.drive(3.0)
        cluster.await_answers()
        cluster.await_processed()
        copies = cluster.states()
        assert [node.stop() for node in cluster.nodes.values()] == [0, 0, 0]
        assert empty_logs(cluster, tmp_path, copies) == 0, (
            "a node that ends in order takes a checkpoint of every copy"
        )
        for node in cluster.nodes.values():
            node.start()
        cluster.await_healed()
        cluster.drive(2.0)
        cluster.await_answers()
        cluster.await_checkpoints()
        copies = cluster.states()
        for node in cluster.nodes.values():
            node.kill()
        assert empty_logs(cluster, tmp_path, copies) == 0, (
            "idle copies, and silent ones, have taken a checkpoint"
        )
        for node in reversed(cluster.nodes.values()):
            node.start()
        cluster.await_healed()
        cluster.check_replies()
        cluster.await_processed()
        copies = cluster.states()
        assert [node.stop() for node in cluster.nodes.values()] == [0, 0, 0]
        assert empty_logs(cluster, tmp_path, copies) == 0
        check_equal(cluster, tmp_path, copies)
    finally:
        cluster.close()
