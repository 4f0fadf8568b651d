"""kill -9 of a process that works on state, at any time: the next one goes on from a commit, exactly."""

import random
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.state.state_child import recovered

_COMMAND = [sys.executable, "-m", "tests.state.state_child"]


def killed(folder: Path, seed: int, commits: int, after_s: float) -> int:
    """Run the child, kill it some time after so many commits; the last step that it called durable."""
    root = Path(__file__).resolve().parents[2]
    command = [*_COMMAND, str(folder), str(seed)]
    with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True) as child:
        guard = threading.Timer(60, child.kill)
        guard.start()
        assert child.stdout is not None
        lines = [child.stdout.readline() for _ in range(commits + 1)]
        time.sleep(after_s)
        child.kill()
        lines += child.stdout.readlines()
        guard.cancel()
    assert lines[0].startswith("start "), "the child did not come up; it prints why"
    assert child.returncode == -9, "the child ended by itself; it prints why"
    return int(lines[-1].split()[1])


def kill_again_and_again(folder: Path, seed: int, kills: int) -> None:
    rng = random.Random(seed)
    reached = []
    for i in range(kills):
        durable = killed(folder, seed, rng.randrange(4), rng.uniform(0, 0.1))
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
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(10))
def test_killed_and_going_on_many_times(tmp_path: Path, seed: int) -> None:
    kill_again_and_again(tmp_path / "state", seed=100 + seed, kills=20)
