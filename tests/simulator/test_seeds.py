"""Random faults from seeds: whatever happens, every event gets the oracle's answer, and copies end equal.

The test run has the same seeds each time. The torture run has others each time, and prints the first of them.
"""

from pathlib import Path

import pytest

from tests.counts import fresh_seeds
from tests.simulator.seeds import run_seed

_TOGETHER = 10


@pytest.mark.timeout(300)
@pytest.mark.parametrize("first", [*range(0, 30, _TOGETHER), *fresh_seeds(4_800, _TOGETHER)])
def test_all_heal(tmp_path: Path, first: int) -> None:
    for seed in range(first, first + _TOGETHER):
        assert run_seed(tmp_path / str(seed), seed).answers > 200
