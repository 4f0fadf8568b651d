"""When a checkpoint begins: by the clock, and earlier where there is much to do again and time to spare."""

from pathlib import Path

import pytest

from railgun.task.settings import TaskSettings
from tests.task.small_log import SmallLog, stream_text

SETTINGS = TaskSettings(checkpoint_interval_s=10.0, replay_s=1.0)


def began_after_s(folder: Path, load: float, settings: TaskSettings = SETTINGS) -> float:
    """Seconds until a task begins a checkpoint that processes for this share of the time."""
    clock_s = 0.0

    def now() -> float:
        return clock_s

    log = SmallLog(stream_text())
    task = log.open(folder, settings, now=now)
    try:
        log.feed(task)
        task.checkpoints.take()
        begun_s = clock_s
        for n in range(1_000):
            log.event(f"e{n}", 1_000_000 + n)
            task.process(log.records[task.position :], task.position, lambda replies: None)
            task.busy_s += 0.1 * load
            clock_s += 0.1
            task.work()
            if task.checkpointer.is_in_flight:
                return clock_s - begun_s
    finally:
        task.close()
    raise AssertionError("it never began")


def test_a_task_with_little_to_do_goes_by_the_clock(tmp_path: Path) -> None:
    assert began_after_s(tmp_path, 0.05) == pytest.approx(10.0, abs=0.15)


def test_where_much_would_be_done_again_it_comes_earlier(tmp_path: Path) -> None:
    assert began_after_s(tmp_path, 0.3) == pytest.approx(1.0 / (0.3 * 0.7), abs=0.25)


def test_under_full_load_only_the_clock_counts(tmp_path: Path) -> None:
    assert began_after_s(tmp_path, 1.0) == pytest.approx(10.0, abs=0.15)


def test_it_is_never_early_by_more_than_four_times_the_replay(tmp_path: Path) -> None:
    assert began_after_s(tmp_path, 0.5) == pytest.approx(4.0, abs=0.25)


def test_never_means_never(tmp_path: Path) -> None:
    never = float("inf")
    with pytest.raises(AssertionError, match="never began"):
        began_after_s(tmp_path, 0.5, TaskSettings(checkpoint_interval_s=never, replay_s=never))
