"""kill -9 of a process that runs a task under load: what was durable is there, answers come again as they were."""

import random
from pathlib import Path

import pytest

from tests.reliability.nursery import Nursery


def kill_again_and_again(folder: Path, seed: int, kills: int) -> None:
    with Nursery("tests.reliability.task_process") as nursery:
        checked(nursery, folder, seed, kills)


def checked(nursery: Nursery, folder: Path, seed: int, kills: int) -> None:
    folder.mkdir()
    rng = random.Random(seed)
    answers: dict[tuple[str, str], str] = {}
    durable: dict[str, int] = {}
    repeated = 0
    for _ in range(kills):
        for line in nursery.killed(folder, seed, rng.randint(1, 150), rng.uniform(0, 0.1)):
            kind, case, number, *rest = line.split(" ", 3)
            if kind == "start":
                assert int(number) >= durable.get(case, 0), f"case {case} has lost what was durable"
            elif kind == "durable":
                durable[case] = int(number)
            elif kind == "answer":
                repeated += (case, number) in answers
                assert answers.setdefault((case, number), rest[0]) == rest[0], f"case {case} step {number}"
    assert answers
    assert durable
    assert repeated, "no kill came between a checkpoint and an answer"


def test_killed_a_few_times(tmp_path: Path) -> None:
    kill_again_and_again(tmp_path / "tasks", seed=1, kills=10)


@pytest.mark.torture
def test_killed_many_times(tmp_path: Path) -> None:
    kill_again_and_again(tmp_path / "tasks", seed=100_000, kills=200)
