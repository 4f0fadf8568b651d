"""A server whose disk fills at one moment or another: what it acknowledged is kept, what it cannot do it says, and with
space again it goes on."""

import os
import random
import subprocess
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.forked import Forked
from tests.frontend.serving import PATIENCE_S
from tests.frontend.serving_process import ROOT, process
from tests.reliability.compared_load import Load
from tests.reliability.small_disk import SmallDisk

# Fifty rounds' events, state and log have room on it: what fills it is the test.
DISK_BYTES = 192 << 20
# From nothing left to what the log, events, state and checkpoints of some seconds take.
POINTS = [int(2_000_000 * (place / 49) ** 3) for place in range(50)]
BATCHES_MAX = 20_000


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checkpoints happen all the time: they meet the full disk too."""
    monkeypatch.setenv("RAILGUN_ENGINE__CHECKPOINT_INTERVAL_S", "0.1")


def fill_again_and_again(folder: Path, points: Sequence[int], seed: int) -> Load:
    """One data folder on one small disk; a server on it meets the end of the disk at each of the points."""
    load, source = Load(seed), random.Random(seed)
    with SmallDisk.mounted(folder / "disk", DISK_BYTES) as disk:

        def served() -> AbstractContextManager[tuple["subprocess.Popen[str] | Forked", httpx.Client]]:
            return process(disk.folder / "data", before=disk.inside, definitions=folder / "payments.toml")

        for left_bytes in points:
            with served() as (child, client):
                # What the full disk left unanswered is sent again first.
                assert load.run(client, source.randint(1, 40)) is None
                assert load.unanswered is None
                disk.fill(left_bytes)
                refusal = load.run(client, BATCHES_MAX)
                assert load.unanswered is not None, "the disk never filled"
                if refusal is not None:
                    check(refusal)
                assert child.wait(PATIENCE_S) == 1
                assert child.stderr is not None
                said = child.stderr.read()
                assert "No space left on device" in said
                assert "Traceback" not in said
            disk.clear()
        with served() as (child, client):
            assert load.run(client, 40) is None
            child.terminate()
            assert child.wait(PATIENCE_S) == 0
    return load


def check(refusal: httpx.Response) -> None:
    """It says what is wrong and what can be done, and promises nothing."""
    assert refusal.status_code == 503
    assert refusal.headers["content-type"] == "application/problem+json"
    detail: str = refusal.json()["detail"]
    assert "No space left on device" in detail
    assert "start again" in detail


@pytest.mark.timeout(300)
def test_the_disk_fills_at_three_moments(tmp_path: Path) -> None:
    load = fill_again_and_again(tmp_path, POINTS[::20], 1)
    assert load.compared > 50


@pytest.mark.torture
@pytest.mark.parametrize("durability", ["os", "fsync"])
def test_the_disk_fills_at_fifty_moments(
    durability: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAILGUN_ENGINE__DURABILITY", durability)
    fill_again_and_again(tmp_path, POINTS, 2)


def test_a_disk_that_is_full_at_the_start(tmp_path: Path) -> None:
    with SmallDisk.mounted(tmp_path / "disk", DISK_BYTES) as disk:
        disk.fill(4_096)
        words: list[Any] = [*disk.inside, sys.executable, "-m", "railgun", "serve", "--http", "127.0.0.1:0"]
        done = subprocess.run(
            [*words, "--data", disk.folder / "data"],
            cwd=ROOT,
            env=os.environ | {"RAILGUN_LOGGING__FORMAT": "json"},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
    assert done.returncode == 2
    assert done.stderr.startswith("railgun serve: ")
    assert "space" in done.stderr
    assert done.stderr.count("\n") == 1
