"""A snapshot of a task that runs, made by its host."""

from concurrent.futures import Future
from pathlib import Path

from railgun.host.snapshot import FORMATS
from railgun.task.snapshot_file import VERSION, SnapshotFile, read_snapshot
from tests.host.deepening.deepened_host import DeepenedHost, deepened_host
from tests.unit.local_units import awaited


def made(rig: DeepenedHost, to: Path) -> SnapshotFile:
    """A snapshot, while the host does its work."""
    job = rig.host.make_snapshot(to)
    worked_until_done(rig, job)
    job.result()
    return read_snapshot(to)


def worked_until_done(rig: DeepenedHost, job: object) -> None:
    def done() -> bool:
        rig.work()
        assert isinstance(job, Future)
        return job.done()

    awaited(done)


def test_a_task_without_a_checkpoint_takes_one_first(tmp_path: Path) -> None:
    with deepened_host(tmp_path) as rig:
        assert rig.host.durable[0] == 0
        rig.take_all()
        found = made(rig, tmp_path / "to" / "a")
        assert found.position == rig.host.position == rig.host.durable[0] > 0
        assert (found.stream, found.created, found.partitioner, found.partition) == ("s", 1, "k", 0)
        assert found.formats == FORMATS
        assert found.version == VERSION
