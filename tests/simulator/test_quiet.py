"""A minute in which nothing happens, in virtual time: the same copies answer throughout, and nothing moves."""

from pathlib import Path

import pytest

from tests.counts import seeds
from tests.simulator import canaries
from tests.simulator.checks import check_quiet
from tests.simulator.simulation import Broken, Simulation

_EVENTS_PER_S = 12.0
_MINUTE_S = 60.0
_MOST_SEEDS = 5


def _play(folder: Path, seed: int) -> None:
    """Let events come for a while, and then none for a minute. Raises Broken."""
    simulation = Simulation(folder, seed)
    try:
        for node in simulation.nodes:
            node.start()
        simulation.run_until(simulation.is_whole, 30.0, "each task has two copies")
        simulation.run(3.0, _EVENTS_PER_S)
        check_quiet(simulation, _MINUTE_S, 0.0)
    finally:
        simulation.close()


@pytest.mark.parametrize("seed", seeds(range(1), range(50)))
def test_who_answers_stays(tmp_path: Path, seed: int) -> None:
    _play(tmp_path, seed)


def test_planted_rare_reports_change_who_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    canaries.reports_are_rare(monkeypatch)
    with pytest.raises(Broken, match="in a quiet time who answers has changed"):
        _play_all(tmp_path)


def _play_all(folder: Path) -> None:
    for seed in range(_MOST_SEEDS):
        (folder / str(seed)).mkdir()
        _play(folder / str(seed), seed)
