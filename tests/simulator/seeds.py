"""Runs the simulation of a seed: faults for a while, then everything heals, then nothing happens; and checks it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.simulator.checks import check_copies, check_derived, check_plans, check_quiet, check_replies
from tests.simulator.faults import heal, random_fault
from tests.simulator.simulation import Broken, Simulation

_FAULTY_S, _PAUSE_S = 10.0, 0.4
# Once everything has healed, there has to be progress within this time.
_HEALED_S, _QUIET_S = 30.0, 5.0
# A copy that others took over from may wait so long until it takes activity back.
_BACK_S = 330.0
_EVENTS_PER_S = 12.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """answers: how many were compared.  repeats: how many answers came again, though none was asked for twice."""

    answers: int
    repeats: int


def run_seed(folder: Path, seed: int) -> Outcome:
    """Run one seed in a folder that it makes. Raises Broken, whose text has the line that runs it again."""
    folder.mkdir()
    simulation = Simulation(folder, seed)
    try:
        return _run(simulation)
    except Exception as error:
        again = f"python -m tests.simulator --seed {seed}"
        raise Broken(f"seed {seed}: {type(error).__name__}: {error}\nrun it again: {again}") from error
    finally:
        simulation.close()


def _run(simulation: Simulation) -> Outcome:
    for node in simulation.nodes:
        node.start()
    simulation.run(simulation.chance.uniform(0.0, 4.0), _EVENTS_PER_S)
    until_s = simulation.now_s + _FAULTY_S
    while simulation.now_s < until_s:
        random_fault(simulation)
        simulation.run(simulation.chance.expovariate(1 / _PAUSE_S), _EVENTS_PER_S)
    heal(simulation)
    simulation.run(1.0, _EVENTS_PER_S)
    simulation.run_until(lambda: simulation.missing() == 0, _HEALED_S, "every event is answered")
    simulation.run_until(
        simulation.is_whole, _HEALED_S, "each task has two copies where they should be, of which one answers"
    )
    simulation.run_until(
        simulation.is_steady, _BACK_S, "of each task the copy answers that comes first in the plan"
    )
    check_quiet(simulation, _QUIET_S, _EVENTS_PER_S)
    check_copies(simulation)
    check_plans(simulation)
    check_derived(simulation)
    repeats = sum(each.repeats for each in simulation.front_ends)
    return Outcome(check_replies(simulation), repeats)


def play_each(play: Callable[[Path, int], object], folder: Path) -> None:
    """Play twenty seeds, each in a folder that it makes: planted mistakes show in one of them."""
    for seed in range(20):
        play(folder / str(seed), seed)
