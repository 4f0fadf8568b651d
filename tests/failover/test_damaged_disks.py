"""Files of nodes are damaged, and logs begin behind copies that run: their data comes from copies of other nodes."""

import shutil
import time
from collections.abc import Iterator
from functools import partial
from itertools import cycle
from pathlib import Path

import pytest

from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyState
from railgun.host.place import task_folder
from railgun.messaging.transport import TopicPartition
from tests.failover.running_cluster import Node, RunningCluster
from tests.failover.test_emptied_logs import check_equal
from tests.failover.test_lost_disks import has_begun_anew, keep_logs_for_an_hour, shorten_logs
from tests.halting import halted
from tests.host.test_damaged_folders import DAMAGES

_CHECKPOINTED_S, _HALTED_S = 2.0, 3.0
_FETCHED = "its data is damaged, and is fetched from another node"
# What a small task that was stopped in order has files for.
_KINDS = (
    "CURRENT overwritten",
    "MANIFEST gone",
    "table gone",
    "mark overwritten",
    "open rows gone",
    "pointer names nothing",
)


def _folders(cluster: RunningCluster, node: Node) -> Iterator[tuple[TaskKey, Path]]:
    """The tasks that a node has a copy of, with its folders."""
    states = cluster.states()
    for key in cluster.player.registry.snapshot().catalog.task_keys:
        copies = states[key.partitioner, key.partition]
        if any(copy.node == node.name and state is not CopyState.CLOSED for copy, state in copies.items()):
            yield key, task_folder(node.data, key.stream, key.created, key.partitioner, key.partition)


def _start(cluster: RunningCluster, node: Node) -> None:
    """Start a node. Returns once its units have begun."""
    before = cluster.runs(node.name)
    node.start()
    cluster.drive_until(partial(has_begun_anew, cluster, before))


@pytest.mark.timeout(600)
def test_files_of_each_node_are_damaged(kafka: str, tmp_path: Path) -> None:
    cluster, kinds = RunningCluster(kafka, tmp_path, 0, 3), cycle(_KINDS)
    try:
        keep_logs_for_an_hour(cluster)
        for node in list(cluster.nodes.values()):
            cluster.drive(1.5)
            cluster.await_answers()
            time.sleep(_CHECKPOINTED_S)
            shorten_logs(cluster)
            folders = [folder for _, folder in _folders(cluster, node)]
            assert node.stop() == 0
            for folder in folders:
                DAMAGES[next(kinds)](folder)
            cluster.await_progress()
            _start(cluster, node)
            cluster.await_healed()
            assert node.said().count(_FETCHED) == len(folders) > 0
            assert "is stopped" not in node.said()
        cluster.await_answers()
        cluster.check_replies()
        time.sleep(_CHECKPOINTED_S)
        copies = cluster.states()
        assert [node.stop() for node in cluster.nodes.values()] == [0, 0, 0]
        check_equal(cluster, tmp_path, copies)
    finally:
        cluster.close()


def _failures(cluster: RunningCluster, key: TaskKey) -> list[str]:
    """Why copies of a task have failed, of those that have."""
    cluster.player.positions.read()
    copies = [each.status for each in cluster.player.positions.copies(key)]
    return [each.failure for each in copies if each.state is CopyState.FAILED]


@pytest.mark.timeout(300)
def test_both_copies_are_damaged_and_one_is_restored(kafka: str, tmp_path: Path) -> None:
    cluster = RunningCluster(kafka, tmp_path, 0, 2)
    try:
        cluster.drive(1.5)
        cluster.await_answers()
        cluster.await_checkpoints()
        first, second = cluster.nodes.values()
        key, folder = next(_folders(cluster, first))
        other = dict(_folders(cluster, second))[key]
        assert [first.stop(), second.stop()] == [0, 0]
        shutil.copytree(other, tmp_path / "kept")
        for each in (folder, other):
            DAMAGES["MANIFEST gone"](each)
        for node in (first, second):
            node.start()
        cluster.drive_until(lambda: len(_failures(cluster, key)) == 2)
        for failure in _failures(cluster, key):
            assert failure.startswith("DataDamagedError: ")
            assert "start the node that had it" in failure or "start that node" in failure

        def are_others_answered() -> bool:
            states = cluster.states()
            waiting = [task for task, copies in states.items() if CopyState.ANSWERING not in copies.values()]
            return waiting == [(key.partitioner, key.partition)]

        cluster.drive_until(are_others_answered)
        assert second.stop() == 0
        shutil.rmtree(other)
        shutil.copytree(tmp_path / "kept", other)
        _start(cluster, second)
        cluster.await_healed()
        assert _FETCHED in first.said()
        cluster.await_answers()
        cluster.check_replies()
        cluster.check_copies()
    finally:
        cluster.close()


def _empty_logs_but_for(cluster: RunningCluster, node: Node) -> None:
    """Delete from each log what the copies of a node do not need any more."""
    cluster.player.positions.read()
    transport, topics = cluster.player.transport, cluster.player.registry.topics
    for key in cluster.player.registry.snapshot().catalog.task_keys:
        where = TopicPartition(topics.tasks(key.stream, key.partitioner), key.partition)
        [its] = [each.status for each in cluster.player.positions.copies(key) if each.copy.node == node.name]
        transport.trim(*where, its.checkpoint)


@pytest.mark.timeout(300)
def test_logs_begin_behind_copies_that_run(kafka: str, tmp_path: Path) -> None:
    cluster = RunningCluster(kafka, tmp_path, 0, 2)
    try:
        cluster.drive(1.5)
        cluster.await_answers()
        halts, goes_on = cluster.nodes.values()
        unit = halts.unit(0)
        assert unit is not None
        with halted([unit]):
            cluster.drive(_HALTED_S)
            cluster.await_answers()
            cluster.await_checkpoints_of(goes_on)
            _empty_logs_but_for(cluster, goes_on)
        cluster.drive_until(lambda: halts.said().count("its data up to offset") == 4)
        cluster.await_healed()
        assert halts.unit(0) == unit
        assert "is stopped" not in halts.said()
        cluster.await_answers()
        cluster.check_replies()
        cluster.check_copies()
    finally:
        cluster.close()
