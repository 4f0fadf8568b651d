"""A unit is killed: its node says so, and nobody has to miss it first."""

import os
import signal
from pathlib import Path

import pytest

from railgun.cluster.copies import CopyState
from tests.failover.running_cluster import RunningCluster


@pytest.mark.timeout(400)
def test_others_answer_before_they_would_miss_it(kafka: str, tmp_path: Path) -> None:
    # More than a unit needs to start again: only what its node says makes others answer before.
    cluster = RunningCluster(kafka, tmp_path, 5, 2, more='takeover_s = "60s"')
    try:
        answers = {
            task: name.node
            for task, copies in cluster.states().items()
            for name, state in copies.items()
            if state is CopyState.ANSWERING
        }
        killed = answers["card", 0]
        (other,) = cluster.nodes.keys() - {killed}
        log = tmp_path / other / "log"
        read = log.stat().st_size
        pid = cluster.nodes[killed].unit(0)
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        cluster.await_progress()
        said = [line for line in log.read_text()[read:].splitlines() if "answers from now on" in line]
        for (partitioner, partition), node in answers.items():
            if node == killed:
                assert any(f"{partitioner}/{partition}" in line for line in said), said
        cluster.await_healed()
        cluster.await_answers()
        cluster.check_replies()
        cluster.check_quiet(2.0)
        cluster.check_copies()
    finally:
        cluster.close()
