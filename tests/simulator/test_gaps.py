"""Logs lose their beginnings, up to behind every checkpoint, amid other faults. Somebody accepts each gap. Tasks go on
behind it as the oracle does, and all copies are equal.
"""

from pathlib import Path

import pytest

from tests.counts import seeds
from tests.simulator import canaries, faults
from tests.simulator.checks import check_copies, check_plans, check_quiet
from tests.simulator.faults import heal
from tests.simulator.gaps import Operator, lose_beginnings
from tests.simulator.node import POLICY, up
from tests.simulator.seeds import play_each
from tests.simulator.simulation import Broken, Simulation

_FAULTS = (
    faults.crash_unit,
    faults.crash_node,
    faults.start_node,
    faults.start_node,
    faults.halt_node,
    faults.restart_unit,
    faults.slow_disk,
    faults.cold_rows,
    faults.log_stuck,
    faults.cut,
    faults.add_metric,
    faults.drop_metric,
)
_EVENTS_PER_S, _FEW_PER_S = 20.0, 1.0
_FAULTY_S = 14.0
# Copies of a node that is away are made on others within this time.
_REPLACED_S = POLICY.replace_after_s + 6.0


def _all_are_away(simulation: Simulation) -> None:
    """All nodes end, in order or not, and the logs lose what they had not processed. Some come back at once."""
    for node in up(simulation.nodes):
        if simulation.chance.random() < 0.5:
            node.kill()
        else:
            node.leave()
    for change in (simulation.add_metric, simulation.drop_metric, simulation.add_metric):
        simulation.run(simulation.chance.uniform(0.2, 1.5), _EVENTS_PER_S)
        if simulation.chance.random() < 0.5:
            change()
    lose_beginnings(simulation, 0.7)
    for node in simulation.chance.sample(simulation.nodes, 2):
        if node.is_leaving:
            node.stay()
        elif not node.is_up:
            node.start()


def _give_the_newest_up(simulation: Simulation, operator: Operator) -> None:
    """The node with the newest states stays away, while gaps are accepted with the states of others. Logs may still
    reach its states when it comes back, and it has to make copies in place of those of another node.
    """
    simulation.run(2.0, _EVENTS_PER_S)
    newest, *others = simulation.chance.sample(simulation.nodes, len(simulation.nodes))
    for node in others:
        node.kill()
    simulation.run(3.0, _EVENTS_PER_S)
    newest.kill()
    simulation.run(2.0, _EVENTS_PER_S)
    lose_beginnings(simulation, 1.0, spared=newest)
    for node in others:
        node.start()
    # Few events come meanwhile: the newest node would fetch the state of another one otherwise.
    for _ in range(250):
        simulation.run(0.1, _FEW_PER_S)
        operator.look(gives_up=True)
    newest.start()
    others[0].kill()
    simulation.run(_REPLACED_S, _FEW_PER_S)


def play(folder: Path, seed: int) -> tuple[Operator, int, int]:
    """Returns who accepted gaps, how many replies were compared, and how many of them are partial. Raises Broken."""
    folder.mkdir()
    simulation = Simulation(folder, seed, units=(1,))
    chance, operator = simulation.chance, Operator(simulation)
    try:
        for node in simulation.nodes:
            node.start()
        simulation.run(4.0, _EVENTS_PER_S)
        until_s = simulation.now_s + _FAULTY_S
        while simulation.now_s < until_s:
            kind = chance.random()
            if kind < 0.15:
                _all_are_away(simulation)
            elif kind < 0.3:
                lose_beginnings(simulation, 0.3)
            else:
                chance.choice(_FAULTS)(simulation)
            for _ in range(chance.randrange(1, 15)):
                simulation.run(0.1, _EVENTS_PER_S)
                operator.look()
        heal(simulation)
        _give_the_newest_up(simulation, operator)
        heal(simulation)

        def all_is_answered() -> bool:
            operator.look()
            return simulation.missing() == 0

        simulation.run(1.0, _EVENTS_PER_S)
        simulation.run_until(all_is_answered, 60.0, "every event is answered that no gap has taken")
        simulation.run_until(simulation.is_whole, 60.0, "each task has two copies, of which one answers")
        simulation.run_until(simulation.is_steady, 330.0, "the copies answer that come first in the plan")
        check_quiet(simulation, 2.0, _EVENTS_PER_S)
        check_copies(simulation)
        check_plans(simulation)
        return operator, *operator.check_replies()
    except Exception as error:
        raise Broken(f"seed {seed}: {type(error).__name__}: {error}") from error
    finally:
        simulation.close()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", seeds(range(3), range(200)))
def test_tasks_go_on_behind_gaps(tmp_path: Path, seed: int) -> None:
    operator, compared, partial = play(tmp_path / "nodes", seed)
    assert operator.accepted > 0
    assert compared > 200
    assert partial > 0


@pytest.mark.timeout(300)
@pytest.mark.parametrize("plant", [canaries.crossings_are_forgotten, canaries.states_given_up_go_on])
def test_planted_mistakes_are_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plant: canaries.Plant
) -> None:
    plant(monkeypatch)
    with pytest.raises(Broken):
        play_each(play, tmp_path)
