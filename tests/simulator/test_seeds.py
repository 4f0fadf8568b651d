"""Random faults from seeds: whatever happens, every event gets the oracle's answer, and copies end equal."""

from pathlib import Path

import pytest

from tests.counts import seeds
from tests.simulator.seeds import run_seed

_TOGETHER = 10


@pytest.mark.timeout(300)
@pytest.mark.parametrize("first", seeds(range(0, 200, _TOGETHER), range(0, 5_000, _TOGETHER)))
def test_all_heal(tmp_path: Path, first: int) -> None:
    for seed in range(first, first + _TOGETHER):
        assert run_seed(tmp_path / str(seed), seed).answers > 200
