"""A leader stands still between any two steps of its rounds: the others go on without it, and when it comes back it
changes nothing of what they have planned.
"""

from collections import Counter
from pathlib import Path

import pytest

from tests.counts import seeds
from tests.simulator import canaries
from tests.simulator.checks import check_copies, check_plans, check_replies
from tests.simulator.membership import SESSION_S
from tests.simulator.simulation import Broken, Simulation

# Some rounds of a leader that has much to plan.
_STEPS = 36
_EVENTS_PER_S = 10.0


def _halted_amid_a_drain(folder: Path, seed: int, steps: int) -> None:
    """Let the leader stand still after so many steps, while a node is being emptied, until another one has led for a
    while.
    """
    simulation = Simulation(folder, seed, units=(1,))
    try:
        for node in simulation.nodes:
            node.start()
        simulation.run_until(simulation.is_whole, 30.0, "each task has two copies")
        leader = next(node for node in simulation.nodes if node.leading and node.leading.leads)
        planned = Counter(each.copy.node for copies in simulation.plan.copies.values() for each in copies)
        other = max(
            (node for node in simulation.nodes if node is not leader), key=lambda node: planned[node.name]
        )
        simulation.order(other, is_on=True, fewer_copies=True)
        leader.halt_leader(steps, 2 * SESSION_S)
        simulation.run(3 * SESSION_S, _EVENTS_PER_S)
        assert leader.leader_halted_s > 0.0
        simulation.run_until(lambda: simulation.missing() == 0, 10.0, "every event is answered")
        simulation.run_until(simulation.is_whole, 30.0, "each task has two copies where they should be")
        assert simulation.plan.is_drained(other.name)
        check_plans(simulation)
        simulation.run(1.0, 0.0)
        check_copies(simulation)
        check_replies(simulation)
    finally:
        simulation.close()


@pytest.mark.parametrize("steps", seeds(range(3, _STEPS, 6), range(_STEPS)))
def test_the_others_go_on(tmp_path: Path, steps: int) -> None:
    _halted_amid_a_drain(tmp_path, 1, steps)


def test_a_former_leader_that_writes_on_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    canaries.former_leaders_write_on(monkeypatch)
    with pytest.raises(Broken, match="was written after plan"):
        _halted_at_each_step(tmp_path)


def _halted_at_each_step(folder: Path) -> None:
    for steps in range(_STEPS):
        (folder / str(steps)).mkdir()
        _halted_amid_a_drain(folder / str(steps), 1, steps)
