"""The logs of tasks are deleted up to the checkpoints of their copies while all nodes are away: for days, in order or
not. All come back, in any order, answer as the oracle does, and are equal.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from railgun.host.place import task_folder
from railgun.messaging.transport import TopicPartition
from reservoir.segments.writer import ChunkWriter
from tests.counts import seeds
from tests.simulator import faults
from tests.simulator.checks import check_copies, check_derived, check_quiet, check_replies
from tests.simulator.simulation import Simulation
from tests.task.committed import committed_at
from tests.task.small_log import keep_no_open_rows

_FAULTS = (
    faults.crash_unit,
    faults.restart_unit,
    faults.halt_leader,
    faults.slow_disk,
    faults.cold_rows,
    faults.replies_stuck,
    faults.add_metric,
    faults.add_metric,
    faults.drop_metric,
)
_DAYS_S = 5 * 86_400.0
_EVENTS_PER_S = 20.0


def empty_logs(simulation: Simulation) -> int:
    """Delete from each task's log what no copy needs any more. Returns how many records."""
    deleted = 0
    for task in simulation.tasks:
        where = TopicPartition(simulation.topics.tasks(task.stream, task.partitioner), task.partition)
        key = task.stream, task.created, task.partitioner, task.partition
        folders = [task_folder(node.folder, *key) for node in simulation.nodes]
        needed = min(committed_at(folder) for folder in folders if folder.is_dir())
        deleted += needed - simulation.broker.logs[where].start
        simulation.broker.delete_before(where, needed)
    return deleted


def all_stop_and_start(folder: Path, seed: int) -> tuple[int, int]:
    """Returns how many records were deleted, and how many replies were compared."""
    folder.mkdir()
    simulation = Simulation(folder, seed, nodes=2)
    chance, deleted = simulation.chance, 0
    try:
        for node in simulation.nodes:
            node.start()
        simulation.run(2.0, _EVENTS_PER_S)
        for _ in range(2):
            for _ in range(5):
                chance.choice(_FAULTS)(simulation)
                simulation.run(chance.uniform(0.1, 1.0), _EVENTS_PER_S)
            stop(simulation)
            deleted += empty_logs(simulation)
            simulation.now_s += _DAYS_S
            for node in chance.sample(simulation.nodes, 2):
                node.start()
                simulation.run(chance.choice((0.0, 3.0)), _EVENTS_PER_S)
            simulation.run(2.0, _EVENTS_PER_S)
        faults.heal(simulation)
        simulation.run_until(lambda: simulation.missing() == 0, 30.0, "every event is answered")
        simulation.run_until(simulation.is_whole, 30.0, "each task has two copies, of which one answers")
        check_quiet(simulation, 2.0, _EVENTS_PER_S)
        check_copies(simulation)
        check_derived(simulation)
        return deleted, check_replies(simulation)
    finally:
        simulation.close()


def stop(simulation: Simulation) -> None:
    """End all nodes: some in order, some at once, amid whatever they do."""
    for node in simulation.nodes:
        if simulation.chance.random() < 0.5:
            node.kill()
        else:
            node.leave()
    simulation.run_until(
        lambda: not any(node.is_up for node in simulation.nodes), 60.0, "all nodes have ended"
    )


@pytest.mark.parametrize("seed", seeds(range(3), range(200)))
def test_all_stop_logs_are_emptied_and_all_start(tmp_path: Path, seed: int) -> None:
    deleted, compared = all_stop_and_start(tmp_path / "nodes", seed)
    assert min(deleted, compared) > 200


def commit_before_chunks(patch: pytest.MonkeyPatch) -> None:
    """A checkpoint does not wait until the chunks that were sealed before it are written."""
    patch.setattr(ChunkWriter, "sync", lambda self, chunks: self._length)


@pytest.mark.parametrize(
    ("plant", "caught"),
    [
        (keep_no_open_rows, "the log begins at offset"),
        (commit_before_chunks, "first .*, then|copies of .* differ"),
    ],
)
def test_planted_mistakes_are_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plant: Callable[[pytest.MonkeyPatch], None], caught: str
) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError, match=caught):
        all_stop_and_start(tmp_path / "nodes", 1)
