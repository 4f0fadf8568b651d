"""A snapshot of a task that runs, made by its host."""

import errno
import os
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from railgun.catalog.changes import Deepen
from railgun.history.open_records import log_reader_with_history
from railgun.host import snapshot
from railgun.host.host_state import HostState
from railgun.host.snapshot import FORMATS
from railgun.state.store import Store
from railgun.task.errors import SnapshotError
from railgun.task.processor import TaskProcessor
from railgun.task.recovery import open_task
from railgun.task.replies import discard_replies
from railgun.task.snapshot_file import SNAPSHOT, VERSION, SnapshotFile, read_snapshot
from railgun.unit import held_replies
from reservoir.executor import Job
from reservoir.files import DiskFiles
from reservoir.segments.committed import CommittedFiles
from tests import forked
from tests.host.deepening.deepened_host import HISTORY, SETTINGS, WHERE, DeepenedHost, deepened_host
from tests.host.deepening.test_take_over import events
from tests.task.small_log import IDENTITY, keep_no_open_rows
from tests.task.test_open_rows import SETTINGS as OPEN_ROWS
from tests.task.test_open_rows import a_log
from tests.unit.local_units import awaited


@pytest.fixture(autouse=True)
def _quickly_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The front-end of the events is gone, and checkpoints wait for a while to be sure."""
    monkeypatch.setattr(held_replies, "GONE_S", 0.1)


def made(rig: DeepenedHost, to: Path) -> SnapshotFile:
    """Make a snapshot while the host does its work."""
    job = rig.host.make_snapshot(to)
    ended(rig, job).result()
    return read_snapshot(to)


def ended(rig: DeepenedHost, job: Job[None]) -> Job[None]:
    def is_over() -> bool:
        rig.work()
        return job.done()

    awaited(is_over)
    return job


def opened(rig: DeepenedHost, folder: Path) -> TaskProcessor:
    """The task that a folder has. Its log has nothing before the folder's position."""

    def read(first: int, end: int) -> Any:
        raise AssertionError("a recovery reads nothing before its checkpoint")

    position = read_snapshot(folder).position
    reader = log_reader_with_history(folder, read)
    return open_task(folder, IDENTITY, DiskFiles(), reader, SETTINGS, log_start=position)


def test_a_task_without_a_checkpoint_takes_one_first(tmp_path: Path) -> None:
    with deepened_host(tmp_path) as rig:
        assert rig.host.durable[0] == 0
        rig.take_all()
        found = made(rig, tmp_path / "to" / "a")
        assert found.position == rig.host.position == rig.host.durable[0] > 0
        assert (found.stream, found.created, found.partitioner, found.partition) == ("s", 1, "k", 0)
        assert found.formats == {**FORMATS, "commit": 1}
        assert found.version == VERSION


def test_the_last_checkpoint_is_enough_unless_it_is_outdated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with deepened_host(tmp_path) as rig:
        rig.take_all()
        rig.host.checkpoint()
        before = rig.host.position
        rig.add(events(0, 20))
        assert made(rig, tmp_path / "a").position == before
        monkeypatch.setattr("railgun.task.checkpoints._OUTDATED_RECORDS", 19)
        assert made(rig, tmp_path / "b").position == before + 20
        rig.add(events(20, 1))
        assert made(rig, tmp_path / "c").position == before + 20


def test_a_checkpoint_of_an_earlier_release_is_not_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with deepened_host(tmp_path) as rig:
        rig.take_all()
        with monkeypatch.context() as patch:
            keep_no_open_rows(patch)
            rig.host.checkpoint()
        made(rig, tmp_path / "a")
        task = opened(rig, tmp_path / "a")
        assert task.digest() == rig.host.task.digest()
        task.close()


def test_a_task_with_history_in_a_folder_of_its_own_gives_a_flat_one(tmp_path: Path) -> None:
    with deepened_host(tmp_path) as rig:
        rig.begin()
        rig.offer()
        rig.work_until_following()
        rig.change(Deepen)
        rig.add(events(0, 30))
        current = rig.place.folder / HISTORY
        awaited(lambda: (rig.work(), (rig.place.folder / "moved_to").exists())[1])
        assert (current / "history" / "tail.arrow").exists()
        rig.host.checkpoint()
        to = tmp_path / "copy"
        assert made(rig, to).history == HISTORY
        assert sorted(path.name for path in to.iterdir()) == ["history", "reservoir", SNAPSHOT, "state"]
        assert [path.name for path in (to / "history").iterdir()] == ["manifest.json"]
        task = opened(rig, to)
        assert task.digest() == rig.host.task.digest()
        # Both go on, and the copy takes checkpoints and is opened again.
        rig.add(events(30, 200))
        task.process(
            rig.log.read(*WHERE, task.position, 1_000, 1 << 24).records, task.position, discard_replies
        )
        assert task.digest() == rig.host.task.digest()
        task.checkpoints.take()
        digest = task.digest()
        task.close()
        task = opened(rig, to)
        assert task.digest() == digest
        task.close()


class _Fault(NamedTuple):
    """Something that goes wrong, and what is said of it."""

    where: object
    name: str
    error: Exception
    text: str


FAULTS = [
    _Fault(
        Path,
        "hardlink_to",
        OSError(errno.EXDEV, os.strerror(errno.EXDEV)),
        "can be linked into .*: both have to be on one file system that has hard links",
    ),
    _Fault(CommittedFiles, "_copy", OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), "No space left"),
    _Fault(Store, "snapshot_to", OSError(errno.EIO, os.strerror(errno.EIO)), "Input/output error"),
    _Fault(snapshot, "write_whole", OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), "No space left"),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_snapshot_that_fails_leaves_nothing_and_harms_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: _Fault
) -> None:
    with deepened_host(tmp_path) as rig:
        rig.take_all()
        rig.add(events(0, 200))

        def fails(*given: object) -> None:
            raise fault.error

        with monkeypatch.context() as patch:
            patch.setattr(fault.where, fault.name, fails)
            with pytest.raises(SnapshotError, match=fault.text) as raised:
                made(rig, tmp_path / "a")
        assert "\n" not in str(raised.value)
        assert not (tmp_path / "a").exists()
        rig.add(events(200, 10))
        rig.host.checkpoint()
        assert made(rig, tmp_path / "a").position == rig.host.position


def test_room_that_the_task_itself_may_need_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with deepened_host(tmp_path) as rig:
        rig.take_all()
        with monkeypatch.context() as patch:
            patch.setattr(
                shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(1 << 30, 1 << 30, 1 << 20)
            )
            with pytest.raises(SnapshotError, match="has 1048576 bytes left, a snapshot may take"):
                made(rig, tmp_path / "a")
        assert not (tmp_path / "a").exists()


def test_a_folder_that_is_there_is_not_touched(tmp_path: Path) -> None:
    with deepened_host(tmp_path) as rig:
        rig.take_all()
        made(rig, tmp_path / "a")
        with pytest.raises(SnapshotError, match="cannot be made: File exists"):
            made(rig, tmp_path / "a")
        read_snapshot(tmp_path / "a")


@pytest.mark.parametrize("is_begun", [False, True])
def test_a_task_that_is_closed_gives_the_snapshot_up(tmp_path: Path, *, is_begun: bool) -> None:
    with deepened_host(tmp_path) as rig:
        rig.take_all()
        rig.host.checkpoint()
        job = rig.host.make_snapshot(tmp_path / "a")
        with pytest.raises(SnapshotError, match="another snapshot is being made"):
            rig.host.make_snapshot(tmp_path / "b")
        if is_begun:
            rig.work()
        rig.host.close()
        assert job.done()
        assert not rig.host.makes_snapshot
        if isinstance(job.exception(), SnapshotError):
            assert not (tmp_path / "a").exists()
        else:
            read_snapshot(tmp_path / "a")
        assert rig.host.state is HostState.CLOSED
        with pytest.raises(SnapshotError, match="is not open here"):
            rig.host.make_snapshot(tmp_path / "b")


def test_a_checkpoint_that_is_waited_for_gives_the_snapshot_up(tmp_path: Path) -> None:
    with deepened_host(tmp_path) as rig:
        rig.take_all()
        rig.host.checkpoint()
        job = rig.host.make_snapshot(tmp_path / "a")
        rig.work()
        rig.add(events(0, 5))
        rig.host.checkpoint()
        assert job.done()
        assert rig.host.durable[0] == rig.host.position


def test_no_kill_leaves_what_looks_like_a_snapshot(tmp_path: Path) -> None:
    """Before every third of its calls that change files."""
    calls, expected = 0, ""
    while True:
        folder, to = tmp_path / f"t{calls}", tmp_path / f"to{calls}"
        ended = forked.run("tests.host.snapshot_child", [folder, to, str(calls)])
        log = a_log(1, 400)
        if not expected:
            task = log.open(folder, OPEN_ROWS)
            expected = task.digest()
            task.close()
        try:
            read_snapshot(to)
        except SnapshotError:
            assert ended.returncode != 0
        else:
            task = log.open(to, OPEN_ROWS)
            assert task.digest() == expected
            task.close()
        if ended.returncode == 0:
            break
        assert ended.returncode == -9, ended.stderr
        calls += 3
    assert calls > 10


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(SnapshotError, match="holds no snapshot"):
        read_snapshot(tmp_path)
    (tmp_path / SNAPSHOT).write_text('{"version": 1}')
    with pytest.raises(SnapshotError, match="holds no snapshot: Object missing required field"):
        read_snapshot(tmp_path)
