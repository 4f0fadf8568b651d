"""A unit or a node is killed, or stands still and comes back, amid about as many events as nodes, broker and this test
can process on two cores: it is thousands of records behind by then. No reply is lost, none is wrong, the copies have
equal data, and events are answered again within 30 s.
"""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.failover.running_cluster import Node, RunningCluster
from tests.halting import halted

RATE_PER_S = 1_500
# Sent while it is away. At this rate that is longer than a session.
AWAY = 12_000


@contextmanager
def _unit_halted(node: Node) -> Iterator[None]:
    unit = node.unit(0)
    assert unit is not None
    with halted([unit]):
        yield


@contextmanager
def _node_halted(node: Node) -> Iterator[None]:
    with halted(node.pids):
        yield


@contextmanager
def _node_killed(node: Node) -> Iterator[None]:
    node.kill()
    yield
    node.start()


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(2))
def test_away_and_back_at_full_load(kafka: str, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    cluster = RunningCluster(kafka, tmp_path, seed, 2)
    try:
        for away in (_unit_halted, _node_halted, _node_killed):
            node = chance.choice(list(cluster.nodes.values()))
            cluster.rate_per_s = RATE_PER_S
            cluster.drive(1.0)
            back = cluster.sent + AWAY
            with away(node):
                cluster.drive_until(lambda back=back: cluster.sent >= back)  # type: ignore[misc]
            # It comes back amid the same events.
            cluster.await_progress()
            cluster.drive(3.0)
            cluster.rate_per_s = 100
            cluster.await_healed()
            cluster.await_answers()
        cluster.check_replies()
        cluster.check_quiet(5.0)
        cluster.check_copies()
    finally:
        cluster.close()
