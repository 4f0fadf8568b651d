"""A log that loses its last records under two copies: they stop; once that is accepted, they are made anew."""

import random
from pathlib import Path

import pytest

from frontend.kafka.accepted_losses import cut_before
from railgun.cluster.records import AcceptedCut
from railgun.messaging.transport import TopicPartition
from tests.counts import seeds
from tests.simulator.checks import check_copies, check_replies
from tests.simulator.simulation import Simulation

_EVENTS_PER_S = 20.0


def _play(folder: Path, seed: int) -> int:
    """Cut 1 to 100 records off a log, and accept it once the copies have stopped. Returns how many answers were
    compared. Raises Broken.
    """
    simulation, chance = Simulation(folder, seed), random.Random(seed)
    try:
        for node in simulation.nodes:
            node.start()
        simulation.run_until(simulation.is_whole, 30.0, "each task has two copies")
        simulation.run(8.0, _EVENTS_PER_S)
        simulation.run(0.5, 0.0)
        task = chance.choice(simulation.tasks)
        where = TopicPartition(simulation.topics.tasks(task.stream, task.partitioner), task.partition)
        simulation.broker.cut_end(
            where, chance.randint(1, min(100, len(simulation.broker.logs[where].records) - 10))
        )
        if chance.random() < 0.5:
            chance.choice(simulation.nodes).kill_unit(0)
        simulation.run(chance.choice((0.0, 3.0, 12.0)), _EVENTS_PER_S)

        def have_stopped() -> bool:
            hosts = [host for _, _, host in simulation.hosts(task)]
            return len(hosts) > 1 and all(host.lost is not None for host in hosts)

        simulation.run_until(have_stopped, 30.0, "the copies that have the lost records have stopped")
        point = max(host.lost for _, _, host in simulation.hosts(task) if host.lost is not None)
        cut = cut_before(simulation.nodes[0].live_units[0].reports, where, point)
        simulation.say(AcceptedCut(**task._asdict(), offset=cut.offset, leader_epoch=cut.leader_epoch))
        simulation.run(2.0, _EVENTS_PER_S)
        simulation.run_until(lambda: simulation.missing() == 0, 30.0, "every event is answered")
        simulation.run_until(simulation.is_whole, 30.0, "each task has two copies again")
        simulation.run(1.0, 0.0)
        check_copies(simulation)
        return check_replies(simulation, has_lost_records=True)
    finally:
        simulation.close()


@pytest.mark.parametrize("seed", seeds(range(4), range(100)))
def test_copies_stop_and_begin_anew(tmp_path: Path, seed: int) -> None:
    assert _play(tmp_path, seed) > 200
