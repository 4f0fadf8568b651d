"""A disk that makes the loop of a unit stand still for 2 s every 10 s: its copies do not take turns with others."""

from pathlib import Path

import pytest

from railgun.cluster.copies import CopyName
from tests.counts import seeds
from tests.simulator import canaries
from tests.simulator.checks import check_copies, check_replies
from tests.simulator.simulation import Simulation

_EVENTS_PER_S = 4.0
_SLOW_S, _EVERY_S, _SHORT_S, _LONG_S = 2.0, 10.0, 100.0, 600.0
_MOST_CHANGES = 6
# Others take over within this time.
_LONGEST_WAIT_S = 1.5


def _changes(folder: Path, seed: int, for_s: float) -> int:
    """How often, of one task, another copy answers than did before: the most of any task."""
    simulation = Simulation(folder, seed, units=(1,))
    try:
        for node in simulation.nodes:
            node.start()
        simulation.run_until(simulation.is_whole, 30.0, "each task has two copies")
        simulation.run(3.0, _EVENTS_PER_S)
        answered = simulation.answering()
        names = {name for names in answered.values() for name in names}
        [slow] = [node for node in simulation.nodes if node.name == min(names).node]
        changes = dict.fromkeys(answered, 0)
        until_s, stalls_s = simulation.now_s + for_s, simulation.now_s
        while simulation.now_s < until_s:
            if simulation.now_s >= stalls_s:
                [unit] = slow.live_units
                unit.stall(_SLOW_S)
                stalled_s, stalls_s = stalls_s + _SLOW_S, stalls_s + _EVERY_S
            simulation.run(0.05, _EVENTS_PER_S)
            stalled: set[CopyName] = {unit.name} if simulation.now_s < stalled_s else set()
            for task, copies in simulation.answering().items():
                answering = [copy for copy in copies if copy not in stalled]
                if len(answering) == 1 and answering != answered[task]:
                    answered[task] = answering
                    changes[task] += 1
            assert simulation.waiting_s() < _LONGEST_WAIT_S
        simulation.run_until(simulation.is_steady, 330.0, "activity is taken back")
        simulation.run(2.0)
        check_copies(simulation)
        check_replies(simulation)
        return max(changes.values())
    finally:
        simulation.close()


def test_who_answers_changes_a_few_times_only(tmp_path: Path) -> None:
    assert 0 < _changes(tmp_path, 0, _SHORT_S) <= _MOST_CHANGES


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", seeds((), range(50)))
def test_nor_more_often_within_ten_minutes(tmp_path: Path, seed: int) -> None:
    assert 0 < _changes(tmp_path, seed, _LONG_S) <= _MOST_CHANGES


def test_activity_that_is_taken_back_at_once_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    canaries.activity_is_taken_back_at_once(monkeypatch)
    assert _changes(tmp_path, 0, _SHORT_S) > _MOST_CHANGES
