"""The runs with snapshots notice each rule that is left out."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from railgun.host import snapshot
from railgun.host.snapshot_making import SnapshotMaking
from railgun.state.checkpoint import Checkpointer
from railgun.state.errors import EpochOrderError
from railgun.state.store import Store
from railgun.task.checkpoints import CheckpointWork
from railgun.task.errors import SnapshotError
from railgun.task.processor import TaskProcessor
from reservoir.errors import CorruptionError, ReservoirError
from reservoir.executor import Job
from reservoir.inline_executor import InlineExecutor
from tests.host.snapshot_run import SnapshotRun
from tests.host.test_snapshot_under_load import CHANGING
from tests.strategies.seeded import case
from tests.task.test_open_rows import SETTINGS, a_log

_SEEDS = (2, 3, 7)
_EAGER = replace(SETTINGS, checkpoint_interval_s=0.0)


def caught(folder: Path) -> list[BaseException]:
    """What the runs raise."""
    found: list[BaseException] = []
    for seed in _SEEDS:
        try:
            SnapshotRun(case(seed + 4_000, 300, CHANGING), folder / str(seed), seed).run()
        except (AssertionError, SnapshotError, ReservoirError) as error:
            found.append(error)
    return found


class SlowSnapshots(InlineExecutor):
    """An executor of which no lane for snapshots gets a turn, as long as `is_slow`."""

    is_slow = True

    def run_next(self) -> bool:
        ready = [
            each for each in self._lanes if each.is_ready and not (self.is_slow and each.name == "snapshots")
        ]
        if ready:
            ready[0].run_next()
        return bool(ready)


def hold_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(CheckpointWork, "hold_for", lambda work, job: None)


class GoingOn:
    """A task that goes on while the lane that puts its snapshot together gets no turn."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.executor, self.log = folder, SlowSnapshots(), a_log(1, 1_200)
        self.records = self.log.records
        self.log.records = self.records[:700]
        self.task = self.log.open(folder / "t", _EAGER, executor=self.executor)
        self.log.feed(self.task)
        self.task.checkpoints.take()
        self.digest = self.task.digest()

    def snapshot(self) -> Job[None]:
        """Make a snapshot in `copy`, which takes until the task has processed the rest of its log. Many checkpoints
        are due meanwhile, and each would be followed by deletions.
        """
        making = SnapshotMaking(self.executor, 1)
        job = making.begin(self.folder / "copy")
        making.step(self.task)
        for end in range(700, len(self.records), 8):
            self.log.records = self.records[:end]
            self.log.feed(self.task)
            while self.executor.run_next():
                pass
        self.executor.is_slow = False
        while not job.done():
            self.executor.run_next()
            making.step(self.task)
        self.task.close()
        return job


def test_a_task_that_goes_on_begins_no_checkpoint(tmp_path: Path) -> None:
    going_on = GoingOn(tmp_path)
    taken, job = going_on.task.checkpoints.taken, going_on.snapshot()
    job.result()
    assert going_on.task.checkpoints.taken == taken
    copy = going_on.log.open(tmp_path / "copy", _EAGER)
    assert copy.digest() == going_on.digest
    copy.close()


def test_a_commit_while_a_snapshot_is_made_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold_nothing(monkeypatch)
    error = GoingOn(tmp_path).snapshot().exception()
    assert isinstance(error, SnapshotError)
    assert isinstance(error.__cause__, EpochOrderError)
    assert not (tmp_path / "copy").exists()


def test_deletions_while_a_snapshot_is_made_are_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold_nothing(monkeypatch)
    monkeypatch.setattr(Store, "_check_committed", lambda store, epoch: None)
    error = GoingOn(tmp_path).snapshot().exception()
    assert isinstance(error, SnapshotError)
    assert isinstance(error.__cause__, FileNotFoundError)


def test_a_snapshot_begun_while_a_checkpoint_is_in_flight_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold_nothing(monkeypatch)
    step = SnapshotMaking.step

    def careless(making: SnapshotMaking, task: TaskProcessor) -> None:
        with monkeypatch.context() as patch:
            if making._has_current:
                patch.setattr(Checkpointer, "is_in_flight", False)
            step(making, task)

    monkeypatch.setattr(SnapshotMaking, "step", careless)
    assert caught(tmp_path)


def test_files_of_open_rows_that_are_left_out_are_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = snapshot._files

    def without(*of: Any) -> Any:
        found = files(*of)
        return replace(found, fixed=[path for path in found.fixed if path.suffix != ".open"])

    monkeypatch.setattr(snapshot, "_files", without)
    assert any(isinstance(each, CorruptionError) for each in caught(tmp_path))
