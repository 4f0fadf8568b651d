"""The network between nodes and broker is cut, slow, or loses packets: every event is answered, once, and rightly,
the copies have equal data, and events are answered again within 30 s.
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.broker.faulty_network import FaultyNetwork, NetworkedBroker
from tests.broker.quick_broker import unheard
from tests.failover.running_cluster import RunningCluster

SEED = 11
CUTS_S = [
    pytest.param(5.0, id="5 s"),
    *(pytest.param(s, id=f"{s:g} s", marks=pytest.mark.torture) for s in (30.0, 90.0)),
]


@pytest.fixture
def networks() -> Iterator[list[FaultyNetwork]]:
    """One for each of two nodes."""
    opened = [FaultyNetwork(0, SEED + number) for number in range(2)]
    try:
        yield opened
    finally:
        for network in opened:
            network.close()


@pytest.fixture
def cluster(tmp_path: Path, networks: list[FaultyNetwork]) -> Iterator[RunningCluster]:
    with ExitStack() as stack:
        broker = NetworkedBroker(tmp_path / "broker", networks)
        status = broker.start(0, unheard)
        stack.callback(broker.stop)
        opened = RunningCluster(
            status.address, tmp_path, SEED, 2, ways=[network.address for network in networks]
        )
        stack.callback(opened.close)
        yield opened


def _check(cluster: RunningCluster) -> None:
    cluster.await_healed()
    # Whoever is preferred has come back, and answers again.
    cluster.drive(5.0)
    cluster.await_answers()
    cluster.check_replies()
    cluster.check_quiet(5.0)
    cluster.check_copies()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("away_s", CUTS_S)
def test_a_node_that_is_cut_off(
    cluster: RunningCluster, networks: list[FaultyNetwork], away_s: float
) -> None:
    cluster.drive(2.0)
    networks[0].cut()
    cluster.drive(away_s)
    # The other node answers.
    cluster.await_answers()
    networks[0].mend()
    _check(cluster)


@pytest.mark.torture
@pytest.mark.parametrize("away_s", [5.0, 30.0, 90.0])
def test_all_nodes_are_cut_off(cluster: RunningCluster, networks: list[FaultyNetwork], away_s: float) -> None:
    cluster.drive(2.0)
    for network in networks:
        network.cut()
    time.sleep(away_s)
    for network in networks:
        network.mend()
    _check(cluster)


@pytest.mark.torture
@pytest.mark.parametrize("loss", [0.01, 0.03, 0.1])
def test_a_network_that_loses_packets(
    cluster: RunningCluster, networks: list[FaultyNetwork], loss: float
) -> None:
    for network in networks:
        network.loss = loss
    cluster.drive(60.0)
    for network in networks:
        network.loss = 0.0
    _check(cluster)


# With the longest of them what a node reports comes back later than others wait for reports.
@pytest.mark.torture
@pytest.mark.parametrize("delay_s", [0.05, 0.2, 0.6])
@pytest.mark.parametrize("slow", [1, 2])
def test_a_network_that_is_slow(
    cluster: RunningCluster, networks: list[FaultyNetwork], slow: int, delay_s: float
) -> None:
    """slow: how many of the nodes have it."""
    for network in networks[:slow]:
        network.delay_s = delay_s
    cluster.drive(30.0)
    # It is slow, no more.
    cluster.await_answers()
    for network in networks:
        network.delay_s = 0.0
    _check(cluster)
