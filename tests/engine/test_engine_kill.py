"""A real process killed at any moment: what it had answered is there, and nothing counts twice."""

import math
import random
from pathlib import Path

import pytest

from tests.engine.scoring_process import event
from tests.reliability.nursery import Nursery


def check(line: str) -> int:
    """Compare an answer with what the events up to it say; its number."""
    number, n, total, of_card, newest = line.split()
    i = int(number)
    values = [event(k)["x"] for k in range(i + 1)]
    in_window = sum(1 for k in range(max(0, i - 99), i + 1) if k % 7 == i % 7)
    assert (int(n), float(total), int(of_card), float(newest)) == (
        i + 1,
        math.fsum(values),
        in_window,
        values[-1],
    )
    return i


def killed(folder: Path, times: int, seed: int) -> None:
    chance, following = random.Random(seed), 0
    with Nursery("tests.engine.scoring_process") as nursery:
        for _ in range(times):
            answers = chance.randrange(1, 150)
            # The event that the killed process was about to answer is sent again: it may be in the log or not.
            said = [check(line) for line in nursery.killed(folder, following, answers, 0.0)]
            assert said == list(range(following, following + len(said)))
            assert len(said) >= answers
            following += len(said)


def test_killed_a_few_times(tmp_path: Path) -> None:
    killed(tmp_path / "data", 3, seed=1)


@pytest.mark.torture
def test_killed_many_times(tmp_path: Path) -> None:
    killed(tmp_path / "data", 200, seed=2)
