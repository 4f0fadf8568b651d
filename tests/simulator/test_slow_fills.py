"""A copy that is made anew, and fills a metric for longer than `replace_after_s`, stays where it is meanwhile."""

from dataclasses import replace
from pathlib import Path

import pytest

from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyName, CopyState
from tests.counts import seeds
from tests.simulator import canaries, node
from tests.simulator.checks import check_copies, check_replies
from tests.simulator.node import POLICY
from tests.simulator.simulation import LATER, Broken, Simulation

_EVENTS_PER_S = 40.0
_LONG_S = 1_000.0


@pytest.fixture(autouse=True)
def copies_are_made_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy that takes over another one's data has less to fill, and with several at once on a node each waits for its
    turn longer than rounds take here.
    """
    monkeypatch.setattr(node, "AFTER_RECORDS", 10**9)
    monkeypatch.setattr(node, "POLICY", replace(POLICY, moves_limit=1))


class _Fills:
    """Notes for how long copies could not answer at a stretch, while they filled a metric."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._since_s: dict[tuple[TaskKey, CopyName], float] = {}
        self.longest_s = 0.0

    def look(self) -> None:
        """Look at all copies. Raises Broken if one was given up."""
        simulation, filling = self._simulation, set[tuple[TaskKey, CopyName]]()
        for task in simulation.tasks:
            for name, state, host in simulation.hosts(task):
                if state is CopyState.BEHIND and host.is_running and host.task.metrics.warming:
                    filling.add((task, name))
        self._since_s = {copy: self._since_s.get(copy, simulation.now_s) for copy in filling}
        longest_s = max((simulation.now_s - since_s for since_s in self._since_s.values()), default=0.0)
        self.longest_s = max(self.longest_s, longest_s)
        if simulation.plan.lost:
            raise Broken(f"a copy that fills is placed again: {simulation.plan.lost}; {simulation.shown()}")


def _play(folder: Path, seed: int) -> tuple[float, int]:
    """Take a node away for good, so that copies are made anew on nodes that fill slowly. Returns for how long one of
    them filled, and how many answers were compared. Raises Broken.
    """
    simulation = Simulation(folder, seed, nodes=4, units=(1,))
    fills = _Fills(simulation)

    def is_whole() -> bool:
        fills.look()
        return simulation.is_whole()

    try:
        for node in simulation.nodes:
            node.start()
        simulation.run_until(simulation.is_whole, 30.0, "each task has two copies")
        simulation.run(15.0, _EVENTS_PER_S)
        simulation.add_metric(LATER[:3])
        simulation.run(8.0, 1.0)
        gone = simulation.chance.choice(simulation.nodes)
        gone.kill()
        for node in simulation.nodes:
            # Its rounds take long, and each fills a little.
            node.trouble(slow_rounds_s=_LONG_S)
        simulation.run(POLICY.replace_after_s, 1.0)
        simulation.run_until(is_whole, 200.0, "the copies are made on other nodes")
        for node in simulation.nodes:
            node.trouble(slow_rounds_s=0.0)
        simulation.run(1.0, _EVENTS_PER_S)
        simulation.run_until(lambda: simulation.missing() == 0, 30.0, "every event is answered")
        simulation.run_until(is_whole, 30.0, "each task has two copies")
        simulation.run(1.0, 0.0)
        check_copies(simulation)
        return fills.longest_s, check_replies(simulation)
    finally:
        simulation.close()


# In 9 the window of the metric moves on while it fills.
@pytest.mark.parametrize("seed", seeds((0, 9), range(50)))
def test_a_fill_that_takes_long_is_not_placed_again(tmp_path: Path, seed: int) -> None:
    longest_s, compared = _play(tmp_path, seed)
    assert longest_s > POLICY.replace_after_s
    assert compared > 500


def test_a_planted_mistake_places_it_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    canaries.copies_that_get_nearer_are_lost(monkeypatch)
    with pytest.raises(Broken, match="a copy that fills is placed again"):
        _play(tmp_path, 0)
