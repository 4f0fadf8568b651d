"""A server killed with -9 under load: what was answered counts once, what was not counts once it is sent again."""

import threading
from pathlib import Path

import pytest

from tests.frontend.serving_process import process
from tests.reliability.compared_load import Load


def kill_again_and_again(folder: Path, seed: int, times: int) -> Load:
    """Kill a server on one data folder so many times, each at a moment of its own."""
    load = Load(seed)
    for _ in range(times):
        with process(folder / "data") as (child, client):
            timer = threading.Timer(load.random.uniform(0.02, 0.5), child.kill)
            timer.start()
            assert load.run(client) is None
            timer.join()
            child.wait()
    # However slow the machine is: what the kills left is there, and goes on.
    with process(folder / "data") as (child, client):
        assert load.run(client, batches=5) is None
        assert load.unanswered is None
    return load


def test_killed_five_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAILGUN_ENGINE__DURABILITY", "os")
    assert kill_again_and_again(tmp_path, 1, 5).compared > 5


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(5))
def test_killed_fifty_times(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAILGUN_ENGINE__DURABILITY", "os" if seed % 2 else "fsync")
    load = kill_again_and_again(tmp_path, 100 + seed, 10)
    assert load.compared > 50
