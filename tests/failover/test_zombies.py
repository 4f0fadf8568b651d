"""Units and nodes that stand still and come back when others have long taken over, as members of the group or not: no
reply is lost, none is wrong (RELIABILITY: O1, O3, O4).
"""

import random
from pathlib import Path

import pytest

from tests.failover.running_cluster import Faults, RunningCluster

_KINDS = ["unit halted for a moment", "unit halted", "node halted for a moment", "node halted"]


@pytest.mark.torture
@pytest.mark.parametrize(("seed", "times"), [(1, 50)])
def test_they_come_back_and_harm_nothing(kafka: str, tmp_path: Path, seed: int, times: int) -> None:
    chance = random.Random(seed)
    cluster = RunningCluster(kafka, tmp_path, seed, 3)
    try:
        faults = Faults(cluster, chance)
        for number in range(times):
            faults.one(_KINDS[number % len(_KINDS)])
        cluster.check_replies()
        cluster.check_quiet(5.0)
        cluster.check_copies()
    finally:
        cluster.close()
