"""The k-th call of a task's files fails: a typed error; the last durable checkpoint is there, the log leads on."""

from pathlib import Path

import pytest

from reservoir.errors import ReservoirError
from reservoir.files import DiskFiles
from tests.reliability.disturbed import DisturbedPlayer
from tests.reservoir.failing_files import FailingFiles
from tests.strategies.case import Case, replies
from tests.strategies.generate import Profile
from tests.strategies.seeded import case
from tests.task.player import TINY, LogWriter, assert_reply

ONE_TASK = Profile(spread=False, explicit_warm=True)
SEED, SIZE = 6, 120


class Run:
    """A case on files that fail once; after the failure the task is opened anew on files that do not."""

    def __init__(self, drawn: Case, folder: Path, files: FailingFiles) -> None:
        self.drawn, self.folder, self.files = drawn, folder, files
        self.writer = LogWriter(drawn)
        self.player: DisturbedPlayer | None = None
        self.errors = 0
        self.durable = 0

    def play(self) -> None:
        expected = replies(self.drawn)
        index = 0
        try:
            for batch in self.drawn.batches():
                for step in batch.steps:
                    self.writer.write(index, step)
                    index += 1
                self.attempt(restart=batch.restart)
            player = self.attempt(restart=True)
            assert player.task.position == len(self.writer.records)
        finally:
            if self.player is not None:
                self.player.task.close()
        for at, answer in player.answers.items():
            assert_reply(expected[at], answer, self.writer.partitioner, f"step {at}")

    def attempt(self, *, restart: bool) -> DisturbedPlayer:
        try:
            player = self.player = self.player or self.opened(self.files)
            if restart:
                player.reopen()
            player.catch_up()
            self.durable = player.task.checkpoints.durable_position
            return player
        except ReservoirError:
            if not self.files.failed:
                raise
            self.errors += 1
            return self.after_the_failure()

    def after_the_failure(self) -> DisturbedPlayer:
        if self.player is None:
            player = self.player = self.opened(DiskFiles())
        else:
            player = self.player
            self.durable = max(self.durable, player.task.checkpoints.durable_position)
            player.files = DiskFiles()
            player.crash()
        assert player.task.position >= self.durable
        player.catch_up()
        return player

    def opened(self, files: object) -> DisturbedPlayer:
        return DisturbedPlayer(self.folder, self.writer, TINY, files)  # type: ignore[arg-type]


def calls_of_a_whole_run(folder: Path) -> int:
    counting = FailingFiles(DiskFiles(), None)
    Run(case(SEED, SIZE, ONE_TASK), folder, counting).play()
    return counting.calls


@pytest.mark.parametrize("step", [53, pytest.param(1, marks=pytest.mark.torture)])
@pytest.mark.parametrize("sticky", [False, True])
@pytest.mark.parametrize("how", ["EIO", "ENOSPC", "short"])
def test_the_kth_call_of_a_task_fails(how: str, sticky: bool, step: int, tmp_path: Path) -> None:
    calls = calls_of_a_whole_run(tmp_path / "whole")
    assert calls > 100
    errors = 0
    for k in range(0, calls, step):
        failing = FailingFiles(DiskFiles(), k, how, sticky=sticky)
        run = Run(case(SEED, SIZE, ONE_TASK), tmp_path / str(k), failing)
        run.play()
        errors += run.errors
        assert failing.misuse == [], f"k={k}"
    assert errors or how == "short"
