"""Pages of dropped metrics and of empty rows are freed; sweeping at every step changes no reply."""

from dataclasses import replace
from pathlib import Path

import pytest

from railgun.task.settings import TaskSettings
from tests.counts import seeds
from tests.reliability.campaign import played
from tests.reliability.stored_state import check_stored
from tests.strategies.generate import Profile
from tests.strategies.seeded import case
from tests.task.player import TINY

CHANGING = Profile(spread=False, explicit_warm=True, control_percent=12, queries_max=8)
SWEEPING = replace(TINY, sweep_interval_s=0.0)


@pytest.mark.parametrize("seed", seeds(range(6), range(15)))
def test_no_page_without_a_row(seed: int, tmp_path: Path) -> None:
    with played(case(seed, 150, CHANGING), tmp_path / "t", SWEEPING, crash=seed % 2 == 0) as player:
        check_stored(player.task)


@pytest.mark.parametrize("seed", seeds(range(200, 202), range(200, 205)))
def test_no_page_without_a_row_with_large_caches(seed: int, tmp_path: Path) -> None:
    settings = TaskSettings(sweep_interval_s=0.0, checkpoint_interval_s=0.0)
    with played(case(seed, 150, CHANGING), tmp_path / "t", settings, crash=False) as player:
        check_stored(player.task)


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(5000, 5500))
def test_many(seed: int, tmp_path: Path) -> None:
    profile = replace(CHANGING, queries_max=12, control_percent=6 + seed % 20)
    with played(case(seed, 400, profile), tmp_path / "t", SWEEPING, crash=seed % 2 == 0) as player:
        check_stored(player.task)
