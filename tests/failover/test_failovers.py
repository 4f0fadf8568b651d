"""Nodes and units that are killed, halted and stopped under load: no reply is lost, none is wrong (RELIABILITY: O1, O3,
O4, O6).

A failing seed is run again by: python -m pytest -m "" "tests/failover/test_failovers.py" -k "SEED"
"""

import random
from pathlib import Path

import pytest

from tests.counts import seeds
from tests.failover.running_cluster import Faults, RunningCluster

KINDS = ["unit killed", "node killed", "node stopped", "unit halted", "node halted"]


def play(kafka: str, folder: Path, seed: int, nodes: int, unit_count: int, quiet_s: float) -> None:
    chance = random.Random(seed)
    cluster = RunningCluster(kafka, folder, seed, nodes, unit_count)
    try:
        faults = Faults(cluster, chance)
        for kind in chance.sample(KINDS, len(KINDS)):
            faults.one(kind)
        cluster.check_replies()
        cluster.check_quiet(quiet_s)
        cluster.check_copies()
    finally:
        cluster.close()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", seeds(range(1), range(10)))
def test_two_nodes(kafka: str, tmp_path: Path, seed: int) -> None:
    play(kafka, tmp_path, seed, 2, 1, 5.0)


@pytest.mark.torture
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(10))
def test_three_nodes(kafka: str, tmp_path: Path, seed: int) -> None:
    play(kafka, tmp_path, seed, 3, 2, 60.0)
