"""Units and nodes that stand still and come back when others have long taken over, as members of the group or not: no
reply is lost, none is wrong, the copies have equal data, and events are answered again within 30 s.
"""

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.failover.running_cluster import Faults, RunningCluster

_KINDS = ["unit halted for a moment", "unit halted", "node halted for a moment"]


def _play(kafka: str, folder: Path, seed: int, kinds: Sequence[str]) -> None:
    cluster = RunningCluster(kafka, folder, seed, 3)
    try:
        faults = Faults(cluster, random.Random(seed))
        for kind in kinds:
            faults.one(kind)
        cluster.check_replies()
        cluster.check_quiet(5.0)
        cluster.check_copies()
    finally:
        cluster.close()


@pytest.mark.torture
@pytest.mark.parametrize(("seed", "times"), [(seed, 10) for seed in range(5)])
def test_nodes_that_the_group_has_given_up_come_back(
    kafka: str, tmp_path: Path, seed: int, times: int
) -> None:
    _play(kafka, tmp_path, seed, ["node halted"] * times)


@pytest.mark.torture
@pytest.mark.parametrize(("seed", "times"), [(1, 16)])
def test_they_come_back_and_harm_nothing(kafka: str, tmp_path: Path, seed: int, times: int) -> None:
    _play(kafka, tmp_path, seed, _KINDS * times)
