"""A unit that reads no reports, while its own arrive: nobody counts on its silent copies, and it says that it ends."""

from pathlib import Path

import pytest

from railgun.cluster.copies import CopyState
from railgun.cluster.reports import UnitReport, decode_report
from railgun.messaging.transport import TopicPartition
from tests.counts import seeds
from tests.simulator.node import SimulatedUnit
from tests.simulator.simulation import Simulation

_EVENTS_PER_S = 20.0
_DEAF_S = 25.0
# Others need not find out by its silence, which takes `takeover_s`.
_AT_ONCE_S = 0.8


def _last(simulation: Simulation, unit: SimulatedUnit) -> UnitReport:
    log = simulation.broker.logs[TopicPartition(simulation.topics.positions, 0)]
    reports = (decode_report(record) for record, _ in log.records)
    generation = unit.copies.generation
    return [each for each in reports if (each.copy, each.generation) == (unit.name, generation)][-1]


@pytest.mark.parametrize("seed", seeds(range(1), range(50)))
def test_it_says_that_it_is_behind_and_ends(tmp_path: Path, seed: int) -> None:
    simulation = Simulation(tmp_path, seed, units=(1,))
    try:
        for node in simulation.nodes:
            node.start()
        simulation.run_until(simulation.is_whole, 30.0, "each task has two copies")
        simulation.run(3.0, _EVENTS_PER_S)
        node = max(simulation.nodes, key=lambda each: len(each.live_units[0].loop.hosts))
        (unit,) = node.live_units
        before = {status.task: status.state for status in _last(simulation, unit).copies}
        assert CopyState.SILENT in before.values()
        node.trouble(deaf_s=simulation.now_s + _DEAF_S)
        simulation.run(6.0, _EVENTS_PER_S)
        for status in _last(simulation, unit).copies:
            answers = before[status.task] is CopyState.ANSWERING
            assert status.state is (CopyState.ANSWERING if answers else CopyState.BEHIND)
        longest_s = 0.0
        for _ in range(150):
            simulation.run(0.1, _EVENTS_PER_S)
            longest_s = max(longest_s, simulation.waiting_s())
        assert "has not come back for 15 s" in str(unit.error)
        assert {status.state for status in _last(simulation, unit).copies} == {CopyState.CLOSED}
        assert longest_s < _AT_ONCE_S
        simulation.run_until(simulation.is_whole, 30.0, "each task has two copies again")
        simulation.run_until(lambda: simulation.missing() == 0, 5.0, "every event is answered")
    finally:
        simulation.close()
