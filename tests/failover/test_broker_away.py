"""The broker is away for long: nobody takes over, nothing moves, and all goes on by itself."""

import os
import signal
import time
from pathlib import Path

import pytest

from railgun.broker.local import LocalBroker
from railgun.cluster.copies import CopyName, CopyState
from tests.broker.quick_broker import unheard
from tests.failover.running_cluster import RunningCluster
from tests.halting import halt


def _answering(cluster: RunningCluster) -> dict[tuple[str, int], list[CopyName]]:
    """By task, the copies that answer."""
    return {
        task: [name for name, state in copies.items() if state is CopyState.ANSWERING]
        for task, copies in cluster.states().items()
    }


def _plans(cluster: RunningCluster) -> int:
    """Grows with each plan that is written."""
    return cluster.player.transport.end_offset(cluster.player.registry.topics.assignment, 0)


@pytest.mark.torture
@pytest.mark.timeout(900)
@pytest.mark.parametrize("away_s", [5.0, 30.0, 90.0])
def test_nothing_moves_while_the_broker_is_away(broker: LocalBroker, tmp_path: Path, away_s: float) -> None:
    status = broker.start(0, unheard)
    cluster = RunningCluster(status.address, tmp_path, 1, 2)
    try:
        cluster.drive(3.0)
        cluster.await_answers()
        answering, plans = _answering(cluster), _plans(cluster)
        halt(status.pid)
        try:
            time.sleep(away_s)
        finally:
            os.kill(status.pid, signal.SIGCONT)
        cluster.drive_until(cluster.is_whole)
        cluster.drive(5.0)
        cluster.check_replies()
        assert _answering(cluster) == answering
        assert _plans(cluster) == plans
        cluster.check_quiet(5.0)
        cluster.check_copies()
    finally:
        cluster.close()
