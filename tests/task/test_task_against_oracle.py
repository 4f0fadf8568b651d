"""Every reply of a task equals the oracle's, bit for bit, whatever the batches, restarts and cache sizes."""

from pathlib import Path

import pytest

from railgun.task.settings import TaskSettings
from tests.counts import seeds
from tests.strategies.generate import Profile
from tests.strategies.seeded import case
from tests.task.player import TINY, play

ONE_TASK = Profile(spread=False, explicit_warm=True)


@pytest.mark.parametrize("seed", seeds(range(12), range(40)))
def test_small_caches_and_crashes(seed: int, tmp_path: Path) -> None:
    assert play(case(seed, 120, ONE_TASK), tmp_path / "t", TINY, crash=True) > 0, f"seed {seed}"


@pytest.mark.parametrize("seed", seeds(range(100, 105), range(100, 120)))
def test_default_settings(seed: int, tmp_path: Path) -> None:
    assert play(case(seed, 300, ONE_TASK), tmp_path / "t", TaskSettings(), crash=False) > 0, f"seed {seed}"


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(1000, 3000))
def test_many(seed: int, tmp_path: Path) -> None:
    profile = Profile(spread=False, explicit_warm=True, queries_max=12, control_percent=seed % 12)
    settings = TINY if seed % 3 else TaskSettings()
    assert play(case(seed, 400, profile), tmp_path / "t", settings, crash=seed % 2 == 0) > 0, f"seed {seed}"
