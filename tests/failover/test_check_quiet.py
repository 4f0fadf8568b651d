"""What `check_quiet` of a running cluster excuses, and what it does not."""

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.failover.running_cluster import RunningCluster
from tests.halting import halted

_QUIET_S = 3.0


def _with(
    monkeypatch: pytest.MonkeyPatch, cluster: RunningCluster, disturb: Callable[[int], None]
) -> list[str]:
    """Disturb the first unit of the first node, by its process id, each time that nothing may change.

    Returns what each time had changed.
    """
    looks, found = cluster._changes, list[str]()
    (node, *_) = cluster.nodes.values()

    def look(seconds: float) -> tuple[list[str], float]:
        pid = node.unit(0)
        assert pid is not None
        beside = threading.Timer(0.5, disturb, [pid])
        beside.start()
        changed, paused_s = looks(seconds)
        beside.join()
        found.append("; ".join(changed))
        return changed, paused_s

    monkeypatch.setattr(cluster, "_changes", look)
    return found


@pytest.mark.timeout(300)
def test_a_unit_that_was_paused_is_excused(
    kafka: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = RunningCluster(kafka, tmp_path, 0, 2)
    pauses = iter([1.5])

    def pause(pid: int) -> None:
        for pause_s in pauses:
            with halted([pid]):
                time.sleep(pause_s)

    try:
        cluster.drive(1.0)
        found = _with(monkeypatch, cluster, pause)
        cluster.check_quiet(_QUIET_S)
        assert found[0]
        assert found[-1] == ""
        cluster.check_replies()
    finally:
        cluster.close()


@pytest.mark.timeout(400)
def test_one_that_ended_is_not(kafka: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = RunningCluster(kafka, tmp_path, 0, 2)
    try:
        cluster.drive(1.0)
        found = _with(monkeypatch, cluster, lambda pid: os.kill(pid, signal.SIGKILL))
        with pytest.raises(AssertionError, match="->"):
            cluster.check_quiet(_QUIET_S)
        assert all(found)
    finally:
        cluster.close()
