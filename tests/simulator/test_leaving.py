"""All nodes end in order at once, amid events: none waits for another one, and when they are back every
event is answered.
"""

from pathlib import Path

import pytest

from tests.counts import seeds
from tests.simulator import canaries
from tests.simulator.checks import check_copies, check_replies
from tests.simulator.node import up
from tests.simulator.simulation import Broken, Simulation

_EVENTS_PER_S = 20.0
# A copy that waits for others does so for much longer.
_ENDED_S = 2.0


def _play(folder: Path, seed: int) -> int:
    """Let all nodes end, and start them again; return how many answers were compared. Raises Broken."""
    simulation = Simulation(folder, seed)
    try:
        for node in simulation.nodes:
            node.start()
        simulation.run_until(simulation.is_whole, 30.0, "each task has two copies")
        simulation.run(5.0, _EVENTS_PER_S)
        for node in simulation.nodes:
            node.leave()
        simulation.run(_ENDED_S, _EVENTS_PER_S)
        if up(simulation.nodes):
            raise Broken(f"not all nodes have ended: {simulation.shown()}")
        for node in simulation.nodes:
            node.start()
        simulation.run(1.0, _EVENTS_PER_S)
        simulation.run_until(lambda: simulation.missing() == 0, 30.0, "every event is answered")
        simulation.run_until(simulation.is_whole, 30.0, "each task has two copies again")
        simulation.run(1.0, 0.0)
        check_copies(simulation)
        return check_replies(simulation)
    finally:
        simulation.close()


@pytest.mark.parametrize("seed", seeds(range(1), range(100)))
def test_they_end_at_once_and_go_on_later(tmp_path: Path, seed: int) -> None:
    assert _play(tmp_path, seed) > 200


def test_planted_copies_that_wait_for_each_other_are_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    canaries.leaving_copies_are_waited_for(monkeypatch)
    with pytest.raises(Broken, match="not all nodes have ended"):
        _play(tmp_path, 0)
