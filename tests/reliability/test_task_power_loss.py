"""Power goes after any change to a task's segments: the last checkpoint is whole, and the log leads on from it."""

import hashlib
import random
import shutil
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest

from railgun.wire.records import Records
from tests.reliability.disturbed import DisturbedPlayer
from tests.reservoir.memory_files import MemoryFiles
from tests.strategies.case import replies
from tests.strategies.generate import Profile
from tests.strategies.seeded import case
from tests.task.player import TINY, LogWriter, assert_reply

CHANGING = Profile(spread=False, explicit_warm=True, control_percent=8)


@dataclass
class Durable:
    """A checkpoint: a copy of the state as it was then, the changes to segments before it, its position."""

    state: Path
    changes: int
    position: int


class Story:
    """A case played on files in memory, with a checkpoint now and then."""

    def __init__(self, folder: Path, seed: int, steps: int) -> None:
        drawn = case(seed, steps, CHANGING)
        self.expected: list[Any] = replies(drawn)
        self.writer = LogWriter(drawn)
        for index, step in enumerate(drawn.steps):
            self.writer.write(index, step)
        self.files, self.saved = MemoryFiles(), list[Durable]()
        player = DisturbedPlayer(folder / "whole", self.writer, TINY, self.files)
        task, rng = player.task, random.Random(seed)
        forget = task.reservoir.forget_saved_rows

        def committed() -> None:
            """Keep the state at each commit, before the files are deleted that it does not name."""
            state = folder / f"checkpoint-{len(self.saved)}"
            shutil.copytree(folder / "whole", state)
            self.saved.append(Durable(state, len(self.files.journal), task.checkpoints.durable_position))
            forget()

        task.reservoir.forget_saved_rows = committed  # type: ignore[method-assign]
        records = [record for _, record in self.writer.records]
        while task.position < len(records):
            first = task.position
            task.process(Records.of(records[first : first + rng.randint(1, 12)]), first, player._deliver)
            task.work()
            if rng.random() < 0.7:
                task.checkpoints.take()
        task.close()
        self.compare(player.answers)

    def compare(self, answers: dict[int, dict[str, Any]]) -> None:
        for at, answer in answers.items():
            assert_reply(self.expected[at], answer, self.writer.partitioner, f"step {at}")

    def after_the_power_came_back(self, folder: Path, durable: Durable, files: MemoryFiles) -> str:
        """Recover what is there, play on to the end; the digest."""
        shutil.copytree(durable.state, folder)
        player = DisturbedPlayer(folder, self.writer, TINY, files)
        try:
            assert player.task.position == durable.position
            player.catch_up()
            while player.task.fills.waiting:
                player.task.work()
            self.compare(player.answers)
            return player.task.digest()
        finally:
            player.task.close()
            shutil.rmtree(folder)


def found(files: MemoryFiles, durable: Durable) -> bytes:
    """What a recovery has to go by, as a hash."""
    held = sorted((name, bytes(inode.data)) for name, inode in files.names.items())
    return hashlib.sha256(repr((durable.position, held)).encode()).digest()


@pytest.mark.parametrize(
    ("cuts", "seeds"),
    [(24, 1), pytest.param(10_000, 20, marks=pytest.mark.torture)],
)
def test_power_loss_after_a_change(cuts: int, seeds: int, tmp_path: Path) -> None:
    told = Story(tmp_path, seed=6, steps=200)
    assert len(told.saved) > 3
    changes = range(told.saved[0].changes, len(told.files.journal) + 1)
    digests: set[str] = set()
    tried: set[bytes] = set()
    for k in sorted(Random(1).sample(changes, min(cuts, len(changes)))):
        durable = [saved for saved in told.saved if saved.changes <= k][-1]
        for seed in range(seeds):
            files = MemoryFiles.replayed(told.files.journal[:k]).without_power(Random(f"{k} {seed}"))
            # What is found is often just what another loss has left: it would go on in the same way.
            left = found(files, durable)
            if left in tried:
                continue
            tried.add(left)
            digests.add(told.after_the_power_came_back(tmp_path / "again", durable, files))
    assert len(digests) == 1
