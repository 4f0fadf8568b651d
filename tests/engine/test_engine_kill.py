"""A real process killed at any moment: what it had answered is there, and nothing counts twice."""

import math
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engine.scoring_process import event


def lived(folder: Path, first: int, answers: int) -> list[str]:
    """Start a process, kill it after some answers; all that it said."""
    command = [sys.executable, "-m", "tests.engine.scoring_process", str(folder), str(first)]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as process:
        assert process.stdout is not None
        said = [process.stdout.readline() for _ in range(answers)]
        process.kill()
        said += process.stdout.readlines()
    return [line for line in said if line.endswith("\n")]


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
    for _ in range(times):
        answers = chance.randrange(1, 150)
        # The event that the killed process was about to answer is sent again: it may be in the log or not.
        said = [check(line) for line in lived(folder, following, answers)]
        assert said == list(range(following, following + len(said)))
        assert len(said) >= answers
        following += len(said)


def test_killed_a_few_times(tmp_path: Path) -> None:
    killed(tmp_path / "data", 3, seed=1)


@pytest.mark.torture
@pytest.mark.timeout(3600)
def test_killed_many_times(tmp_path: Path) -> None:
    killed(tmp_path / "data", 200, seed=2)
