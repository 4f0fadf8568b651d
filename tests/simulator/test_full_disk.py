"""A disk that is full for minutes: its unit begins, catches up, and ends at each checkpoint."""

from pathlib import Path

import pytest

from railgun.catalog.task_key import TaskKey
from tests.counts import seeds
from tests.simulator import canaries
from tests.simulator.checks import check_copies, check_quiet, check_replies
from tests.simulator.node import POLICY
from tests.simulator.simulation import Broken, Simulation

_EVENTS_PER_S = 4.0
_LONG_S = 600.0
# A copy that was passed takes activity back within this time.
_BACK_S = 30.0
# A unit's end is reported.
_LONGEST_WAIT_S = 0.6


class _Places:
    """Notes on which nodes copies are made.

    made: by task, the nodes on which the plan has put another copy.
    """

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._nodes = self._now()
        self.made: dict[TaskKey, list[str]] = {task: [] for task in simulation.tasks}

    def look(self) -> None:
        before, self._nodes = self._nodes, self._now()
        for task, nodes in self._nodes.items():
            self.made[task] += sorted(nodes - before[task])

    def _now(self) -> dict[TaskKey, set[str]]:
        return {
            task: {each.copy.node for each in copies} for task, copies in self._simulation.plan.copies.items()
        }


def _play(folder: Path, seed: int, full_s: float) -> None:
    """Let the disk of a node be full for a while. Raises Broken."""
    simulation = Simulation(folder, seed, units=(1,))
    try:
        for node in simulation.nodes:
            node.start()
        simulation.run_until(simulation.is_whole, 30.0, "each task has two copies")
        simulation.run(5.0, _EVENTS_PER_S)
        full = simulation.chance.choice(simulation.nodes)
        others = [unit for node in simulation.nodes if node is not full for unit in node.live_units]
        places, on_it = (
            _Places(simulation),
            {task for task, nodes in _copies(simulation) if full.name in nodes},
        )
        full.full_disk_s = until_s = simulation.now_s + full_s
        while simulation.now_s < until_s:
            simulation.run(0.05, _EVENTS_PER_S)
            places.look()
            if simulation.waiting_s() > _LONGEST_WAIT_S:
                raise Broken(f"an event waits for {simulation.waiting_s():.2f} s; {simulation.shown()}")
        made = {task: nodes for task, nodes in places.made.items() if nodes}
        if set(made) != on_it or any(len(nodes) != 1 for nodes in made.values()):
            raise Broken(f"not made elsewhere once: {made} of {on_it}; {simulation.shown()}")
        if others != [unit for node in simulation.nodes if node is not full for unit in node.live_units]:
            raise Broken("a unit on another node has ended")
        simulation.run_until(simulation.is_steady, _BACK_S, "all is well again")
        if any(full.name in nodes for task, nodes in _copies(simulation) if task in on_it):
            raise Broken(f"made on it again: {simulation.shown()}")
        check_quiet(simulation, 2.0, _EVENTS_PER_S)
        check_copies(simulation)
        check_replies(simulation)
    finally:
        simulation.close()


def _copies(simulation: Simulation) -> list[tuple[TaskKey, set[str]]]:
    return [(task, {each.copy.node for each in copies}) for task, copies in simulation.plan.copies.items()]


def test_the_copies_are_made_elsewhere_once(tmp_path: Path) -> None:
    _play(tmp_path, 0, 8 * POLICY.replace_after_s)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", seeds((), range(5)))
def test_nor_again_within_ten_minutes(tmp_path: Path, seed: int) -> None:
    _play(tmp_path, seed, _LONG_S)


def test_flapping_that_counts_as_well_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    canaries.copies_that_flap_are_well(monkeypatch)
    with pytest.raises(Broken, match="not made elsewhere once"):
        _play(tmp_path, 0, 8 * POLICY.replace_after_s)
