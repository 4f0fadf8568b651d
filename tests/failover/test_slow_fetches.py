"""A node loses its disk, and its data comes slowly: it is stopped or overtaken amid that, and it is not replaced."""

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyName
from railgun.cluster.records import PlanReader
from railgun.cluster.reports import Fetching
from railgun.messaging.transport import TopicPartition
from tests.counts import seeds
from tests.failover.running_cluster import Node, RunningCluster
from tests.failover.test_lost_disks import begin_on_a_new_disk, has_begun_anew, shorten_logs

_CHECKPOINTED_S = 2.0
_MANY_PER_S, _FEW_PER_S = 1_500, 50
# The data of a task is fifty to some hundred kilobytes.
_SLOWLY = "transfer_rate_bytes = {}\nreplace_after_s = {}"
_COME = re.compile(
    r"(\S+): its data up to offset \d+ has come from \S+ in ([\d.]+) s: \d+ bytes, and (\d+) were"
)


@contextmanager
def _cluster(
    broker: str, folder: Path, seed: int, rate: int, replace_after_s: int, loaded: int = 3_000
) -> Iterator[RunningCluster]:
    """Three nodes, of whose logs only what is needed is left. loaded: how many events came before."""
    cluster = RunningCluster(broker, folder, seed, 3, more=_SLOWLY.format(rate, replace_after_s))
    try:
        cluster.rate_per_s = _MANY_PER_S
        cluster.drive_until(lambda: cluster.sent >= loaded)
        cluster.rate_per_s = _FEW_PER_S
        cluster.await_answers()
        time.sleep(_CHECKPOINTED_S)
        shorten_logs(cluster)
        yield cluster
        cluster.await_answers()
        cluster.check_replies()
    finally:
        cluster.close()


def _lose_disk(cluster: RunningCluster) -> Node:
    """Kill a node, delete its data and start it. Returns the node once it fetches."""
    node = next(iter(cluster.nodes.values()))
    begin_on_a_new_disk(cluster, node)
    cluster.drive_until(lambda: any(each.fetched for each in _fetching(cluster, node)))
    return node


def _fetching(cluster: RunningCluster, node: Node) -> list[Fetching]:
    """What the copies of a node say of their fetches."""
    cluster.player.positions.read()
    keys = cluster.player.registry.snapshot().catalog.task_keys
    reports = [each for key in keys for each in cluster.player.positions.copies(key)]
    found = [each.status.fetching for each in reports if each.copy.node == node.name]
    return [each for each in found if each is not None]


def _targets(cluster: RunningCluster) -> list[dict[TaskKey, set[CopyName]]]:
    """Where all plans until now want copies, one plan after the other."""
    reader, found = PlanReader(), []
    for record in cluster.log(TopicPartition(cluster.player.registry.topics.assignment, 0)):
        if reader.take(record):
            found.append({task: set(copies) for task, copies in reader.plan.target.items()})
    return found


def _has_whole_file(node: Node) -> bool:
    """Whether a file of a task that is being fetched has come."""
    return any(
        each.is_file() and each.suffix != ".part"
        for folder in node.data.glob("tasks/*/*/*.fetching")
        for each in folder.rglob("*")
    )


def _overtake(cluster: RunningCluster, node: Node) -> None:
    """Delete from the logs of the tasks that a node fetches what the copies that give their data need no more."""
    cluster.player.positions.read()
    transport, topics, overtaken = cluster.player.transport, cluster.player.registry.topics, 0
    for key in cluster.player.registry.snapshot().catalog.task_keys:
        copies = list(cluster.player.positions.copies(key))
        if any(each.copy.node == node.name and each.status.fetching for each in copies):
            checkpoints = [each.status.checkpoint for each in copies if each.status.state.is_caught_up]
            transport.trim(topics.tasks(key.stream, key.partitioner), key.partition, max(checkpoints))
            overtaken += 1
    assert overtaken


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", seeds(range(1), range(5)))
def test_what_takes_longer_than_a_node_is_waited_for_is_made_once_and_not_moved(
    kafka: str, tmp_path: Path, seed: int
) -> None:
    replace_after_s = 10
    with _cluster(kafka, tmp_path, seed, 8_000, replace_after_s, 12_000) as cluster:
        cluster.drive(1.0)
        before = _targets(cluster)
        node = _lose_disk(cluster)
        cluster.drive_until(cluster.is_whole, 200.0)
        come = _COME.findall(node.said())
        assert max(float(seconds) for _, seconds, _ in come) > replace_after_s, f"no slow fetch: {come}"
        assert set(Counter(task for task, _, _ in come).values()) == {1}
        for target in _targets(cluster)[len(before) :]:
            assert target == before[-1]


def _stopped(node: Node) -> None:
    assert node.stop() == 0


@pytest.mark.timeout(300)
@pytest.mark.parametrize("end", [_stopped, Node.kill])
def test_a_node_that_is_started_again_amid_a_fetch_goes_on_with_it(
    kafka: str, tmp_path: Path, end: Callable[[Node], object]
) -> None:
    with _cluster(kafka, tmp_path, 0, 20_000, 120) as cluster:
        node = _lose_disk(cluster)
        cluster.drive_until(lambda: _has_whole_file(node))
        before = cluster.runs(node.name)
        end(node)
        cluster.await_progress()
        node.start()
        cluster.drive_until(partial(has_begun_anew, cluster, before))
        cluster.drive_until(cluster.is_whole, 200.0)
        assert any(int(there) for _, _, there in _COME.findall(node.said())), "nothing had come before"


@pytest.mark.timeout(300)
def test_what_the_log_overtakes_is_fetched_again(kafka: str, tmp_path: Path) -> None:
    with _cluster(kafka, tmp_path, 0, 5_000, 120) as cluster:
        node = _lose_disk(cluster)
        cluster.drive(_CHECKPOINTED_S)
        _overtake(cluster, node)
        cluster.drive_until(cluster.is_whole, 200.0)
        come = Counter(task for task, _, _ in _COME.findall(node.said()))
        assert max(come.values()) > 1, "no log has overtaken what was fetched"
