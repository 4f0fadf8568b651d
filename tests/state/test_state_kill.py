"""kill -9 of a process that works on state, at any time: the next one goes on from a commit, exactly."""

import random
import shutil
from pathlib import Path

import pytest

from tests.reliability.nursery import Nursery
from tests.state.state_child import recovered


def killed(nursery: Nursery, folder: Path, seed: int, commits: int, after_s: float) -> int:
    """Let a child live until some time after so many commits; the last step that it called durable."""
    lines = nursery.killed(folder, seed, commits + 1, after_s)
    assert lines[0].startswith("start ")
    return int(lines[-1].split()[1])


def kill_again_and_again(folder: Path, seed: int, kills: int) -> None:
    with Nursery("tests.state.state_child") as nursery:
        checked(nursery, folder, seed, kills)


def checked(nursery: Nursery, folder: Path, seed: int, kills: int) -> None:
    rng = random.Random(seed)
    reached = []
    for i in range(kills):
        durable = killed(nursery, folder, seed, rng.randrange(4), rng.uniform(0, 0.1))
        copy = folder.with_name(f"after-{i}")
        shutil.copytree(folder, copy)
        run = recovered(copy, seed)
        run.close()
        shutil.rmtree(copy)
        assert (run.recovered or 0) >= durable
        reached.append(run.recovered or 0)
    assert reached[-1] > 0
    assert reached == sorted(reached)


def test_killed_and_going_on_a_few_times(tmp_path: Path) -> None:
    kill_again_and_again(tmp_path / "state", seed=1, kills=4)


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(10))
def test_killed_and_going_on_many_times(tmp_path: Path, seed: int) -> None:
    kill_again_and_again(tmp_path / "state", seed=100 + seed, kills=20)
