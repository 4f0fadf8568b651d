"""The topic of a partitioner is deleted and made anew, at the same leader epoch: its copies stop, whether the new log
is shorter or longer than what they have processed. Once that is accepted, they begin anew from it.
"""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from railgun.catalog.task_key import TaskKey
from railgun.cluster.records import AcceptedCut
from railgun.messaging.transport import TopicPartition
from tests.counts import seeds
from tests.simulator.canaries import ids_of_topics_are_not_compared
from tests.simulator.checks import check_copies
from tests.simulator.simulation import Broken, Simulation

_EVENTS_PER_S = 20.0


def _shorter(simulation: Simulation, replace: Callable[[], None]) -> None:
    """The topic is made anew under running copies."""
    replace()


def _longer(simulation: Simulation, replace: Callable[[], None]) -> None:
    """The topic is made anew while all nodes are away, and gets more events than there were."""
    for node in simulation.nodes:
        node.kill()
    replace()
    simulation.run(24.0, _EVENTS_PER_S)
    for node in simulation.nodes:
        node.start()


def _play(folder: Path, seed: int, how: Callable[[Simulation, Callable[[], None]], None]) -> None:
    """Raises Broken."""
    simulation, chance = Simulation(folder, seed), random.Random(seed)
    try:
        definitions = {where: list(log.records) for where, log in simulation.broker.logs.items()}
        for node in simulation.nodes:
            node.start()
        simulation.run_until(simulation.is_whole, 30.0, "each task has two copies")
        simulation.run(8.0, _EVENTS_PER_S)
        simulation.run_until(lambda: simulation.missing() == 0, 30.0, "every event is answered")
        partitioner = chance.choice(simulation.tasks).partitioner
        tasks = [task for task in simulation.tasks if task.partitioner == partitioner]
        positions = {task: _position(simulation, task) for task in tasks}
        topic = simulation.topics.tasks(tasks[0].stream, partitioner)

        def replace() -> None:
            simulation.broker.replace(topic)
            for task in tasks:
                where = TopicPartition(topic, task.partition)
                simulation.broker.append(where, [record for record, _ in definitions[where]])

        how(simulation, replace)
        ends = {task: simulation.broker.logs[TopicPartition(topic, task.partition)].end for task in tasks}
        assert all((ends[task] > positions[task]) is (how is _longer) for task in tasks)

        def have_stopped() -> bool:
            hosts = [host for task in tasks for _, _, host in simulation.hosts(task)]
            return len(hosts) >= 2 * len(tasks) and all(host.replaced is not None for host in hosts)

        simulation.run_until(have_stopped, 30.0, "the copies have stopped")
        simulation.run(1.0, _EVENTS_PER_S)
        (topic_id,) = simulation.nodes[0].live_units[0].transport.topic_ids([topic]).values()
        for task in tasks:
            simulation.say(AcceptedCut(**task._asdict(), offset=0, leader_epoch=-1, topic_id=topic_id))
        simulation.run_until(lambda: simulation.missing() == 0, 60.0, "every event is answered")
        simulation.run_until(simulation.is_whole, 30.0, "each task has two copies again")
        simulation.run(1.0, 0.0)
        check_copies(simulation)
    finally:
        simulation.close()


def _position(simulation: Simulation, task: TaskKey) -> int:
    return max(host.position for _, _, host in simulation.hosts(task))


@pytest.mark.parametrize("how", [_shorter, _longer])
@pytest.mark.parametrize("seed", seeds(range(2), range(50)))
def test_copies_stop_and_begin_anew(
    tmp_path: Path, seed: int, how: Callable[[Simulation, Callable[[], None]], None]
) -> None:
    _play(tmp_path, seed, how)


@pytest.mark.parametrize("how", [_shorter, _longer])
def test_ids_that_are_not_compared_are_caught(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    how: Callable[[Simulation, Callable[[], None]], None],
) -> None:
    ids_of_topics_are_not_compared(monkeypatch)
    with pytest.raises(Broken, match="the copies have stopped"):
        _play(tmp_path, 1, how)
