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

# Where this process does not come to look for so long, others do not come to answer.
_BUSY_S = 0.5


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
        repeats = cluster.player.front_end.repeats
        halt(status.pid)
        try:
            time.sleep(away_s)
        finally:
            os.kill(status.pid, signal.SIGCONT)

        others: set[tuple[tuple[str, int], CopyName]] = set()
        looked_s, worst_s = time.monotonic(), 0.0

        def is_whole() -> bool:
            nonlocal looked_s, worst_s
            looked_s, before_s = time.monotonic(), looked_s
            worst_s = max(worst_s, looked_s - before_s)
            now = {(task, name) for task, names in _answering(cluster).items() for name in names}
            others.update(now - {(task, name) for task, names in answering.items() for name in names})
            return cluster.is_whole()

        cluster.drive_until(is_whole)
        # Nobody takes over for a moment either, unless the machine was too busy for whoever answered to say so in time.
        assert worst_s > _BUSY_S or not others, others
        assert worst_s > _BUSY_S or cluster.player.front_end.repeats == repeats
        cluster.drive(5.0)
        cluster.check_replies()
        assert _answering(cluster) == answering
        assert _plans(cluster) == plans
        cluster.check_quiet(5.0)
        cluster.check_copies()
    finally:
        cluster.close()
