"""Out of order, duplicates, a hot key: many events against a vectorised reading, fewer against brute force."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from railgun.task.processor import TaskProcessor
from railgun.task.settings import MIB, TaskSettings
from tests.reliability.campaign import played
from tests.reliability.volume import START_MS, Volume, assert_equal, expected, ordered, play_volume
from tests.task.player import TINY

SMALL = TaskSettings(
    row_cache_bytes=4 * MIB,
    page_cache_bytes=8 * MIB,
    chunk_cache_bytes=MIB,
    block_cache_bytes=4 * MIB,
    checkpoint_interval_s=0.2,
    sweep_interval_s=0.01,
)
SIZES = [20_000, pytest.param(1_000_000, marks=pytest.mark.torture)]
BATCHES = (1, 2048, 300, 5000)


def out_of_order(seed: int, n: int, keys: int, *, discard: bool) -> Volume:
    """30 % late by 0 to 10 minutes, on and around the floor among them."""
    volume, rng = ordered(seed, n, keys), np.random.default_rng(seed + 1)
    late = rng.random(n) < 0.3
    lag = rng.choice([5_000, 4_999, 5_001, 60_000, 0, -1], n)
    lag = np.where(lag < 0, rng.integers(0, 600_000, n), lag)
    return replace(volume, time=np.where(late, volume.time - lag, volume.time), discard=discard)


def with_duplicates(seed: int, n: int, keys: int, horizon: int) -> Volume:
    """One to five copies of a tenth of the events, from one less than the horizon behind them to one more."""
    volume, rng = ordered(seed, n, keys), np.random.default_rng(seed + 1)
    order: list[int] = []
    waiting: dict[int, list[int]] = {}
    for i in range(n):
        order.append(i)
        order += waiting.pop(i, [])
        if rng.random() < 0.1:
            for _ in range(rng.integers(1, 6)):
                behind = i + int(
                    rng.choice([horizon - 1, horizon, horizon + 1, rng.integers(0, 3 * horizon)])
                )
                waiting.setdefault(behind, []).append(i)
    at = np.array(order)
    # A copy counts by its own time when it is taken for new: times go on.
    return Volume(volume.key[at], volume.x[at], START_MS + 20 * np.arange(len(at)), at, dedup_events=horizon)


def hot_key(seed: int, n: int) -> Volume:
    """90 % of the events on one key, the others on a million."""
    volume, rng = ordered(seed, n, 1_000_000), np.random.default_rng(seed + 1)
    return replace(volume, key=np.where(rng.random(n) < 0.9, 7, volume.key))


def bounded(task: TaskProcessor) -> None:
    """The limits hold behind every batch."""
    assert task.table.stats().used_bytes <= task.settings.row_cache_bytes
    assert task.pool.stats().size_bytes <= task.settings.page_cache_bytes
    assert task.reservoir.stats().cache_bytes <= task.settings.chunk_cache_bytes


def check(volume: Volume, folder: Path) -> None:
    assert_equal(expected(volume), play_volume(volume, folder, SMALL, BATCHES, bounded))


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("discard", [False, True])
def test_out_of_order(n: int, discard: bool, tmp_path: Path) -> None:
    check(out_of_order(1, n, 1000, discard=discard), tmp_path / "t")


@pytest.mark.parametrize("n", SIZES)
def test_duplicates(n: int, tmp_path: Path) -> None:
    volume = with_duplicates(2, n, 100, horizon=n // 20)
    wanted = expected(volume)
    assert wanted.duplicate.sum() > n // 20
    assert_equal(wanted, play_volume(volume, tmp_path / "t", SMALL, BATCHES, bounded))


@pytest.mark.parametrize("n", SIZES)
def test_a_hot_key(n: int, tmp_path: Path) -> None:
    check(hot_key(3, n), tmp_path / "t")


@pytest.mark.parametrize(
    "volume",
    [
        out_of_order(4, 600, 5, discard=False),
        out_of_order(5, 600, 5, discard=True),
        with_duplicates(6, 400, 5, horizon=40),
        hot_key(7, 600),
    ],
    ids=["rewritten", "discarded", "duplicates", "hot"],
)
def test_brute_force_agrees(volume: Volume, tmp_path: Path) -> None:
    with played(volume.case(), tmp_path / "t", TINY, crash=True) as player:
        wanted = expected(volume)
        for at, answer in player.answers.items():
            found = {name: value or 0 for name, value in answer["metrics"].items()}
            assert found == {name: int(values[at]) for name, values in wanted.values.items()}, at


def test_entities_long_gone_leave_nothing(tmp_path: Path) -> None:
    """Each key is met once, the window is a minute: rows stay few, however many keys there were."""
    n = 20_000
    volume = replace(ordered(8, n, 10), key=np.arange(n))
    most = 0

    def count(task: TaskProcessor) -> None:
        nonlocal most
        most = max(most, task.table.stats().resident)

    settings = replace(SMALL, sweep_interval_s=0.0, checkpoint_interval_s=0.0)
    assert_equal(expected(volume), play_volume(volume, tmp_path / "t", settings, (20,), count))
    assert most < n // 2
