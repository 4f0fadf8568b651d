"""Plays a case against a task of which snapshots are made at random moments, and opens each of them elsewhere."""

import random
import shutil
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from railgun.host.snapshot_making import SnapshotMaking
from railgun.task.environment import TaskEnvironment
from railgun.task.processor import TaskProcessor
from railgun.task.snapshot_file import read_snapshot
from reservoir.inline_executor import InlineExecutor
from tests.strategies.case import Case
from tests.task.player import TINY, LogWriter, TaskPlayer, assert_same
from tests.task.test_orders import Clock


@dataclass
class Seen:
    """How many snapshots there were, and how many of them had a fill under way, full segments, a segment that was
    copied, open rows; and how many were of a task that had deleted segments.
    """

    snapshots: int = 0
    half_filled: int = 0
    with_links: int = 0
    with_copies: int = 0
    with_open_rows: int = 0
    deleted: int = 0


class SnapshotRun(TaskPlayer):
    """Work in lanes runs at random moments, in a random order."""

    def __init__(self, drawn: Case, folder: Path, seed: int) -> None:
        self.drawn, self.seen, self.rng = drawn, Seen(), random.Random(seed)
        self.executor = InlineExecutor(self.rng.randrange)
        self.digests: dict[int, str] = {}
        salts = random.Random(f"salts {seed}")
        environment = TaskEnvironment(Clock(), Clock(), salts.randbytes, self.executor)
        super().__init__(folder / "t", LogWriter(drawn), TINY, environment)
        self.copies = folder / "snapshots"
        self.making = SnapshotMaking(self.executor, 1)
        self.asked: Future[None] | None = None
        self.made = 0

    def run(self) -> dict[int, dict[str, Any]]:
        """Return the answers of the task, once each snapshot was tried."""
        index = 0
        try:
            for batch in self.drawn.batches():
                if batch.restart:
                    self._restart()
                for step in batch.steps:
                    self.writer.write(index, step)
                    index += 1
                self.catch_up()
                for _ in range(self.rng.randrange(6)):
                    self._turn()
                    self.work()
            while self.asked is not None:
                self._turn()
                self.work()
            digest = _filled(self.task).digest()
        finally:
            self.making.give_up()
            self.task.close()
        for number in range(self.made):
            self._try(self.copies / str(number), digest)
        return self.answers

    def work(self) -> None:
        """Let the task work, and a snapshot go on."""
        self.task.work(brief=self.rng.random() < 0.5)
        self.making.step(self.task)
        if self.asked is None and self.rng.random() < 0.5:
            self.asked = self.making.begin(self.copies / str(self.made))
        elif self.asked is not None and self.asked.done():
            self.asked.result()
            self.asked, self.made = None, self.made + 1

    def _turn(self) -> None:
        for _ in range(self.rng.choice((0, 0, 1, 3))):
            self.executor.run_next()

    def _restart(self) -> None:
        """Give up the snapshot that is being made. Its folder is gone then, if it was not finished."""
        self.making.give_up()
        if self.asked is not None and self.asked.exception() is None:
            self.made += 1
        elif self.asked is not None:
            assert not (self.copies / str(self.made)).exists()
        self.asked = None
        self.crash() if self.rng.random() < 0.5 else self.reopen()

    def _deliver(self, found: Any) -> None:
        self._turn()
        super()._deliver(found)

    def _open(self) -> TaskProcessor:
        """Note the digest at the moment at which each checkpoint begins."""
        task = super()._open()
        begin = task.checkpoints.begin

        def noted() -> None:
            self.digests[task.checkpointer.epoch] = task.digest()
            begin()

        task.checkpoints.begin = noted  # type: ignore[method-assign]
        return task

    def _try(self, folder: Path, digest: str) -> None:
        """Open a snapshot as a task of its own, and let it process the rest of the log."""
        what, seen = read_snapshot(folder), self.seen
        names = [path.name for path in (folder / "reservoir").iterdir()]
        segments = sorted(name for name in names if name.endswith(".seg"))
        links = [(folder / "reservoir" / name).stat().st_nlink for name in segments]
        assert all(each == 1 for each in links[-1:]), (
            "a task that is opened here cuts and appends to this file"
        )
        seen.snapshots += 1
        seen.with_links += len(segments) > 1
        seen.with_copies += bool(segments)
        seen.with_open_rows += len(segments) < len(names)
        seen.deleted += bool(segments) and segments[0] != "000000000001.seg"
        other = TaskPlayer(folder, self.writer, TINY)
        try:
            assert other.task.position == what.position
            seen.half_filled += any(not fill.full for fill in other.task.metrics.fills.values())
            assert other.task.digest() == self.digests[what.epoch]
            while other.task.position < len(self.writer.records):
                end = min(len(self.writer.records), other.task.position + self.rng.randrange(1, 40))
                other._process(end)
                other.task.work()
            assert _filled(other.task).digest() == digest
        finally:
            other.task.close()
        for at, answer in other.answers.items():
            assert_same(self.answers[at], answer, f"step {at}, snapshot at {what.position}")
        shutil.rmtree(folder)


def _filled(task: TaskProcessor) -> TaskProcessor:
    """A digest has only the fills that have ended."""
    while task.fills.waiting:
        task.work()
    return task
