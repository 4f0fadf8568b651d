"""A partition that has no leader for a while keeps no task of another partition waiting."""

from pathlib import Path

import pytest

from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyName, CopyState
from railgun.cluster.reports import decode_report
from railgun.host.task_host import TaskHost
from railgun.messaging.transport import TopicPartition
from tests.counts import seeds
from tests.simulator.checks import check_copies, check_replies
from tests.simulator.simulation import Simulation

_EVENTS_PER_S = 20.0
_AWAY_S = 20.0
# In a second a unit reports five times, whatever happens; and slower rounds of the simulation take a part of that.
_REPORTS_PER_S = 3


def _silent(simulation: Simulation, task: TaskKey) -> tuple[CopyName, TaskHost]:
    return next((name, host) for name, state, host in simulation.hosts(task) if state is CopyState.SILENT)


def _leave_behind(simulation: Simulation, task: TaskKey) -> CopyName:
    """Take the leader of a task's partition away when others have replied to what its silent copy has not read yet.
    Returns the name of that copy.
    """
    name, host = _silent(simulation, task)
    node = next(each for each in simulation.nodes if each.name == name.node)
    node.trouble(log_stuck_s=simulation.now_s + 2.0)

    def is_behind() -> bool:
        return host.limit is not None and host.limit.offset > host.position + host.lag

    while not is_behind():
        simulation.tick(_EVENTS_PER_S)
    simulation.broker.leaderless.add(_where(simulation, task))
    node.trouble(log_stuck_s=0.0)
    return name


def _where(simulation: Simulation, task: TaskKey) -> TopicPartition:
    return TopicPartition(simulation.topics.tasks(task.stream, task.partitioner), task.partition)


def _reports(simulation: Simulation, name: CopyName, first: int) -> int:
    log = simulation.broker.logs[TopicPartition(simulation.topics.positions, 0)]
    return sum(decode_report(record).copy == name for record, _ in log.records[first:])


def _play(folder: Path, seed: int) -> tuple[int, bool]:
    """Returns how often the unit with the copy that cannot go on has reported meanwhile, and whether each of the other
    tasks was answered all the time: by another copy too, where the plan moves some. Raises Broken.
    """
    simulation = Simulation(folder, seed, units=(1,))
    try:
        for node in simulation.nodes:
            node.start()
        simulation.run_until(simulation.is_whole, 30.0, "each task has two copies")
        simulation.run(3.0, _EVENTS_PER_S)
        task = simulation.chance.choice(simulation.tasks)
        name = _leave_behind(simulation, task)
        simulation.run(1.0, _EVENTS_PER_S)
        is_answered = True
        first = len(simulation.broker.logs[TopicPartition(simulation.topics.positions, 0)].records)
        for _ in range(round(_AWAY_S)):
            simulation.run(1.0, _EVENTS_PER_S)
            now = simulation.answering()
            is_answered &= all(now[each] for each in simulation.tasks if each != task)
        reports = _reports(simulation, name, first)
        simulation.broker.leaderless.clear()
        simulation.run_until(lambda: simulation.missing() == 0, 30.0, "every event is answered")
        simulation.run_until(simulation.is_whole, 30.0, "each task has two copies")
        simulation.run(1.0, 0.0)
        check_copies(simulation)
        assert check_replies(simulation) > 200
        return reports, is_answered
    finally:
        simulation.close()


@pytest.mark.parametrize("seed", seeds(range(1), range(50)))
def test_other_tasks_go_on(tmp_path: Path, seed: int) -> None:
    reports, is_answered = _play(tmp_path, seed)
    assert reports > _AWAY_S * _REPORTS_PER_S
    assert is_answered
