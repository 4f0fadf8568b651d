"""Units that hang under load: their nodes are not ready, kill them, and start them again; others answer meanwhile, and
nothing is lost.
"""

from pathlib import Path

import pytest

from tests.failover.running_cluster import Node, RunningCluster
from tests.halting import halt, halted

_HUNG_AFTER_S = 6.0
# A node is not ready after 5 s of a unit's silence, and kills the unit after `hung_after_s`. A test that asks whether
# the node is ready needs time between the two.
_LONG_HUNG_AFTER_S = 12.0
_SETTINGS = 'hung_after_s = "{:g}s"'
_KILLED = "s and is killed"


def _hang(cluster: RunningCluster, node: Node) -> None:
    """Halt the first unit of a node for good. Whoever asks the node is told, until it has begun anew."""
    pid = node.unit(0)
    assert pid is not None
    halt(pid)
    cluster.drive_until(lambda: node.readiness().startswith("not ready: unit 0 has said nothing for "))
    cluster.await_progress()
    cluster.drive_until(lambda: _KILLED in node.said())
    cluster.drive_until(lambda: node.readiness() == "ready" and node.unit(0) not in (None, pid))
    cluster.drive_until(cluster.is_whole)


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("nodes", "restarted"), [(2, 1), pytest.param(3, 3, marks=pytest.mark.torture)])
def test_a_unit_is_halted_in_a_rolling_restart(
    kafka: str, tmp_path: Path, nodes: int, restarted: int
) -> None:
    cluster = RunningCluster(kafka, tmp_path, 1, nodes, more=_SETTINGS.format(_LONG_HUNG_AFTER_S))
    try:
        for node in list(cluster.nodes.values())[:restarted]:
            assert node.stop() == 0
            cluster.drive(1.0)
            node.start()
            cluster.drive_until(lambda node=node: node.readiness() == "ready")  # type: ignore[misc]
            _hang(cluster, node)
        cluster.await_answers()
        cluster.check_replies()
        cluster.check_quiet(2.0)
        cluster.check_copies()
    finally:
        cluster.close()


@pytest.mark.timeout(400)
@pytest.mark.parametrize("times", [1, pytest.param(10, marks=pytest.mark.torture)])
def test_a_node_that_was_halted_with_its_units_kills_none(kafka: str, tmp_path: Path, times: int) -> None:
    cluster = RunningCluster(kafka, tmp_path, 2, 2, more=_SETTINGS.format(_HUNG_AFTER_S))
    try:
        node = cluster.nodes["node-1"]
        unit = node.unit(0)
        for _ in range(times):
            # The node goes on before its units, and looks before they speak.
            with halted(node.pids):
                cluster.drive(1.5 * _HUNG_AFTER_S)
            cluster.await_healed()
        assert (_KILLED in node.said(), node.unit(0)) == (False, unit)
        cluster.await_answers()
        cluster.check_replies()
    finally:
        cluster.close()
