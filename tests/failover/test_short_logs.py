"""A node that leads says which copies have lost, or will lose, what they need of their logs."""

from pathlib import Path

import pytest

from railgun.messaging.transport import TopicPartition
from tests.failover.running_cluster import TASKS, RunningCluster
from tests.unit.local_units import awaited


@pytest.mark.timeout(300)
def test_the_leader_names_the_copies_of_a_node_that_is_away(kafka: str, tmp_path: Path) -> None:
    cluster = RunningCluster(kafka, tmp_path, 0, 2)
    try:
        cluster.drive(2.0)
        first, second = cluster.nodes.values()
        second.kill()
        cluster.drive(2.0)
        cluster.await_answers()
        assert first.stop() == 0
        transport, topics = cluster.player.transport, cluster.player.registry.topics
        for key in cluster.player.registry.snapshot().catalog.task_keys:
            where = TopicPartition(topics.tasks(key.stream, key.partitioner), key.partition)
            transport.trim(*where, transport.end_offset(*where))
        first.start()

        def warned() -> bool:
            text = (tmp_path / first.name / "log").read_text(encoding="utf-8")
            return f"{TASKS} logs have lost records" in text and f"({second.name}/0)" in text

        awaited(warned, 60.0)
    finally:
        cluster.close()
