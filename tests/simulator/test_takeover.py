"""How long events wait while something is wrong with the node that answers them, in virtual time."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.counts import seeds
from tests.simulator import canaries
from tests.simulator.node import SimulatedNode
from tests.simulator.simulation import Simulation

_EVENTS_PER_S = 20.0
_LASTS_S = 20.0
# What is heard of a copy says nothing for this long; and its replies are not missed for this long.
_TAKEOVER_S, _STUCK_S, _SLACK_S = 1.0, 5.0, 0.5
# Others have come to answer by then, and miss no replies of it yet.
_HALTED_S = 2.0

Run = Callable[[float], None]
Wrong = Callable[[SimulatedNode, Run], None]


def _killed(node: SimulatedNode, run: Run) -> None:
    node.kill()


def _unit_killed(node: SimulatedNode, run: Run) -> None:
    node.kill_unit(0)


def _comes_back_behind(node: SimulatedNode, run: Run) -> None:
    node.kill()
    run(4.0)
    node.start()
    _trouble("log_stuck_s")(node, run)


def _halted_and_behind(node: SimulatedNode, run: Run) -> None:
    """When it goes on it still counts as one that answers, and does not get its log."""
    _trouble("log_stuck_s")(node, run)
    node.trouble(halted_s=node.around.now() + _HALTED_S)


def _trouble(name: str) -> Wrong:
    def wrong(node: SimulatedNode, run: Run) -> None:
        node.trouble(**{name: node.around.now() + _LASTS_S})
        for unit in node.live_units:
            unit.troubles.waits = True

    return wrong


def _longest_wait_s(folder: Path, seed: int, wrong: Wrong, quiet_s: float = 3.0) -> float:
    """Let something be wrong with a node that answers, and return the longest that an event has waited since."""
    simulation, longest_s = Simulation(folder, seed, units=(1,)), 0.0

    def run(seconds: float) -> None:
        nonlocal longest_s
        until_s = simulation.now_s + seconds
        while simulation.now_s < until_s:
            simulation.run(0.05, _EVENTS_PER_S)
            longest_s = max(longest_s, simulation.waiting_s())

    try:
        for node in simulation.nodes:
            node.start()
        simulation.run_until(simulation.is_whole, 30.0, "each task has two copies")
        simulation.run(quiet_s, 0.0)
        simulation.run(3.0, _EVENTS_PER_S)
        names = {name.node for names in simulation.answering().values() for name in names}
        wrong(next(node for node in simulation.nodes if node.name in names), run)
        run(_LASTS_S)
        return longest_s
    finally:
        simulation.close()


@pytest.mark.parametrize("seed", seeds(range(1), range(20)))
@pytest.mark.parametrize(
    ("wrong", "within_s"),
    [
        pytest.param(_killed, _TAKEOVER_S, id="node killed"),
        # Its node says so.
        pytest.param(_unit_killed, 0.0, id="unit killed"),
        pytest.param(_trouble("halted_s"), _TAKEOVER_S, id="halted"),
        pytest.param(_trouble("cut_s"), _TAKEOVER_S, id="cut off"),
        pytest.param(_trouble("replies_stuck_s"), _STUCK_S, id="replies stuck"),
        pytest.param(_trouble("log_stuck_s"), _STUCK_S, id="log stuck"),
        pytest.param(_trouble("deaf_s"), _TAKEOVER_S, id="deaf"),
        pytest.param(_trouble("slow_disk_s"), 0.0, id="slow disk"),
        pytest.param(_comes_back_behind, _TAKEOVER_S, id="comes back behind"),
        pytest.param(_halted_and_behind, _TAKEOVER_S, id="goes on behind"),
    ],
)
def test_events_wait_no_longer(tmp_path: Path, wrong: Wrong, within_s: float, seed: int) -> None:
    assert _longest_wait_s(tmp_path, seed, wrong) < within_s + _SLACK_S


@pytest.mark.parametrize(("wrong", "within_s"), [(_killed, _TAKEOVER_S), (_unit_killed, 0.0)])
def test_nor_after_a_quiet_minute(tmp_path: Path, wrong: Wrong, within_s: float) -> None:
    assert _longest_wait_s(tmp_path, 1, wrong, quiet_s=60.0) < within_s + _SLACK_S


@pytest.mark.parametrize(
    ("plant", "wrong", "within_s"),
    [
        (canaries.copies_are_silenced_without_progress, _trouble("log_stuck_s"), _STUCK_S),
        (canaries.copies_are_silenced_without_progress, _trouble("replies_stuck_s"), _STUCK_S),
        (canaries.copies_are_silenced_by_the_dead, _killed, _STUCK_S),
        (canaries.copies_answer_behind, _comes_back_behind, _TAKEOVER_S),
        (canaries.copies_answer_behind, _halted_and_behind, _TAKEOVER_S),
        (canaries.ended_units_are_not_reported, _unit_killed, 0.0),
    ],
)
def test_planted_mistakes_make_them_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plant: canaries.Plant, wrong: Wrong, within_s: float
) -> None:
    plant(monkeypatch)
    assert _longest_wait_s(tmp_path, 1, wrong) > within_s + _SLACK_S
