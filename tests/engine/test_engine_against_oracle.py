"""Random cases through the public engine, restarts and crashes included: every reply is the oracle's, bit for bit."""

from pathlib import Path

import pytest

from tests.counts import seeds
from tests.engine.campaign import run


@pytest.mark.parametrize("seed", seeds(range(6), range(12)))
def test_a_case(seed: int, tmp_path: Path) -> None:
    assert run(seed, 120, tmp_path / "data") == []


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(100, 2_100))
def test_a_long_case(seed: int, tmp_path: Path) -> None:
    assert run(seed, 400 if seed < 600 else 150, tmp_path / "data") == []
