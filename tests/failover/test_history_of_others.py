"""A node that lacks what was built with a stream's history loses its disk: its copies come from others, log and all."""

import os
import shutil
from pathlib import Path

import pytest

from railgun.catalog.catalog import Catalog
from railgun.catalog.changes import AddHistory
from railgun.engine.history import plan_of
from railgun.history.build import HistoryBuild, new_history_id
from railgun.host.place import history_folder
from railgun.ingest.routing import Router
from railgun.task.settings import TaskSettings
from railgun.wire.encode import encode_event
from railgun.wire.records import Records
from tests.failover.running_cluster import RunningCluster
from tests.failover.test_emptied_logs import check_equal
from tests.failover.test_lost_disks import begin_on_a_new_disk
from tests.strategies.case import STREAM
from tests.unit.local_units import SMALL

_CUT_MS = 1_600_000_000_000
_EVENTS = 500


def _build(cluster: RunningCluster, folder: Path, history: str) -> None:
    """Build all tasks with events of cards and shops that no later event has."""
    snapshot = cluster.player.registry.snapshot()
    entry, settings = snapshot.catalog.entry(STREAM), TaskSettings()
    plan = plan_of(entry, snapshot.keys[STREAM], settings, history, _CUT_MS, snapshot.catalog.last_place)
    router = Router(entry.stream)
    past = [[-1 - number, _CUT_MS - 1_000 + number, f"p{number % 7}", 99, 1.0] for number in range(_EVENTS)]
    for partitioner, partition in plan.tasks:
        at = router.partitioners.index(partitioner)
        of_task = [each for each in past if router.partitions(router.routed(each))[at] == partition]
        to = history_folder(folder, STREAM, partitioner, partition)
        to.mkdir(parents=True)
        build = HistoryBuild(to, plan, partitioner, partition, SMALL)
        build.take(
            Records.of([encode_event(max(plan.schemas), str(each[0]), each[1], each) for each in of_task])
        )
        build.finish()


@pytest.mark.timeout(300)
def test_a_node_without_the_history_loses_its_disk(kafka: str, tmp_path: Path) -> None:
    cluster = RunningCluster(kafka, tmp_path, 0, 3)
    try:
        history = new_history_id(os.urandom)
        _build(cluster, tmp_path / "built", history)
        for node in cluster.nodes.values():
            shutil.copytree(tmp_path / "built" / "backfill", node.data / "backfill")

        def announced(catalog: Catalog) -> list[AddHistory]:
            return [AddHistory(catalog.last_place + 1, STREAM, history, _CUT_MS, catalog.last_place)]

        cluster.player.registry.change(announced)
        begins = f"begins anew behind history {history}"
        # Until a node reads the order, all its copies look whole.
        cluster.drive_until(lambda: all(begins in node.said() for node in cluster.nodes.values()))
        cluster.await_healed()
        cluster.await_answers()
        node = next(iter(cluster.nodes.values()))
        begin_on_a_new_disk(cluster, node)
        cluster.await_healed()
        assert f"this node lacks history {history}" in node.said()
        assert "its data up to offset" in node.said()
        cluster.await_answers()
        cluster.check_replies()
        cluster.await_checkpoints()
        copies = cluster.states()
        assert [node.stop() for node in cluster.nodes.values()] == [0, 0, 0]
        check_equal(cluster, tmp_path, copies)
    finally:
        cluster.close()
