"""Random cases by way of input and output topics, units that restart and crash: every reply is the oracle's."""

from pathlib import Path

import pytest

from tests.counts import seeds
from tests.engine.player import SMALLEST
from tests.frontend.formats.avro_events import AvroInputPlayer
from tests.frontend.formats.schema_registry import schema_registry
from tests.frontend.kafka.cluster import LocalCluster
from tests.frontend.test_http_against_oracle import play
from tests.frontend.topics.input_player import InputPlayer
from tests.strategies.case import STREAM
from tests.strategies.generate import Profile
from tests.strategies.seeded import case


def _differences(kafka: str, folder: Path, seed: int, steps: int) -> list[str]:
    drawn = case(seed, steps, Profile(explicit_warm=False, derives=seed % 5 != 0))
    cluster = LocalCluster(kafka, folder, SMALLEST if seed % 2 else None)
    return play(drawn, InputPlayer(cluster, STREAM), seed % 3)


@pytest.mark.parametrize("seed", seeds(range(2), range(3)))
def test_a_case(kafka: str, seed: int, tmp_path: Path) -> None:
    assert _differences(kafka, tmp_path, seed + 2_900, 60) == []


def _avro_differences(kafka: str, folder: Path, seed: int, steps: int) -> list[str]:
    drawn = case(seed, steps, Profile(explicit_warm=False, derives=seed % 5 != 0))
    with schema_registry({}) as registry:
        cluster = LocalCluster(kafka, folder, SMALLEST if seed % 2 else None)
        player = AvroInputPlayer(cluster, STREAM, registry)
        found = play(drawn, player, seed % 3)
    assert player.sent_as_avro > steps // 4
    return found


@pytest.mark.parametrize("seed", range(2))
def test_a_case_as_avro(kafka: str, seed: int, tmp_path: Path) -> None:
    assert _avro_differences(kafka, tmp_path, seed + 4_900, 60) == []


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(60))
def test_many_cases_as_avro(kafka: str, seed: int, tmp_path: Path) -> None:
    assert _avro_differences(kafka, tmp_path, seed + 5_900, 200) == []


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(60))
def test_many_cases(kafka: str, seed: int, tmp_path: Path) -> None:
    assert _differences(kafka, tmp_path, seed + 3_900, 200) == []
