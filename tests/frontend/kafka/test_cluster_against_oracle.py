"""Random cases over HTTP on Kafka, two front-ends and two units, restarts and crashes: every reply is the oracle's."""

from pathlib import Path

import pytest

from tests.engine.player import SMALLEST
from tests.frontend.kafka.cluster import LocalCluster
from tests.frontend.kafka.cluster_http_player import ClusterHttpPlayer
from tests.frontend.test_http_against_oracle import play
from tests.strategies.case import STREAM
from tests.strategies.generate import Profile
from tests.strategies.seeded import case


def _differences(kafka: str, folder: Path, seed: int, steps: int) -> list[str]:
    drawn = case(
        seed, steps, Profile(explicit_warm=False, derives=seed % 5 != 0, asks_percent=8 if seed % 5 else 0)
    )
    cluster = LocalCluster(kafka, folder, SMALLEST if seed % 2 else None)
    return play(drawn, ClusterHttpPlayer(cluster, STREAM), seed % 3)


@pytest.mark.parametrize("seed", range(3))
def test_a_case(kafka: str, seed: int, tmp_path: Path) -> None:
    assert _differences(kafka, tmp_path, seed + 900, 60) == []


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(60))
def test_many_cases(kafka: str, seed: int, tmp_path: Path) -> None:
    assert _differences(kafka, tmp_path, seed + 1_900, 200) == []
