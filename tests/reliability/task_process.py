"""A process that plays seeded cases on a task until it is killed.

It goes on from what it finds. It prints `durable SEED POSITION` and `answer SEED STEP ...` as they come, and checks
each answer against the oracle; it ends by itself only when one is wrong.
"""

import random
import sys
from pathlib import Path
from typing import Any

from railgun.wire.records import Records
from tests.reliability.disturbed import DisturbedPlayer
from tests.strategies.case import replies
from tests.strategies.generate import Profile
from tests.strategies.seeded import case
from tests.task.player import TINY, LogWriter, assert_reply

CHANGING = Profile(spread=False, explicit_warm=True, control_percent=8)
STEPS = 400


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


class Play:
    """One seed's case, its log written in full beforehand."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.seed = seed
        drawn = case(seed, STEPS, CHANGING)
        self.expected = replies(drawn)
        self.writer = LogWriter(drawn)
        for index, step in enumerate(drawn.steps):
            self.writer.write(index, step)
        self.player = DisturbedPlayer(folder / str(seed), self.writer, TINY)

    def to_the_end(self) -> None:
        task, records, rng = self.player.task, self.writer.records, random.Random()
        say("start", self.seed, task.position)
        durable = task.position
        while task.position < len(records):
            first = task.position
            some = [record for _, record in records[first : first + rng.randint(1, 5)]]
            task.process(Records.of(some), first, self.player._deliver)
            self._told()
            task.work()
            if task.checkpoints.durable_position > durable:
                durable = task.checkpoints.durable_position
                say("durable", self.seed, durable)
        self.player.task.checkpoints.take()
        self.player.task.close()

    def _told(self) -> None:
        answers: dict[int, dict[str, Any]] = self.player.answers
        for index in sorted(answers):
            assert_reply(self.expected[index], answers[index], self.writer.partitioner, f"step {index}")
            say("answer", self.seed, index, repr(answers[index]))
        answers.clear()


def main(folder: Path, seed: int) -> None:
    while True:
        done = folder / f"{seed}.done"
        if not done.exists():
            Play(folder, seed).to_the_end()
            done.touch()
        seed += 1
