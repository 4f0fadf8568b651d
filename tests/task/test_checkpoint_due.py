"""When a checkpoint begins: by the clock, and earlier where there is much to do again and time to spare."""

from itertools import pairwise
from pathlib import Path

import pytest

from railgun.task.settings import MIB, TaskSettings
from railgun.wire.records import Records
from tests.task.small_log import SmallLog, stream_text

SETTINGS = TaskSettings(checkpoint_interval_s=10.0, replay_s=1.0)


def began_after_s(
    folder: Path, load: float, others: float = 0.0, settings: TaskSettings = SETTINGS, *, at_once: int = 1
) -> float:
    """Seconds until a task begins a checkpoint that processes for this share of the time, in a process that does
    other things for the share `others`. at_once: records each tenth of a second."""
    clock_s = used_s = 0.0

    def now() -> float:
        return clock_s

    def used() -> float:
        return used_s

    log = SmallLog(stream_text())
    task = log.open(folder, settings, now=now, used_s=used)
    try:
        log.feed(task)
        task.checkpoints.take()
        begun_s = clock_s
        for n in range(1_000):
            for part in range(at_once):
                log.event(f"e{n}.{part}", 1_000_000 + n)
            task.process(Records.of(log.records[task.position :]), task.position, lambda replies: None)
            task.busy_s += 0.1 * load
            clock_s, used_s = clock_s + 0.1, used_s + 0.1 * (load + others)
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


def test_rows_that_a_recovery_would_have_to_read_count(tmp_path: Path) -> None:
    settings = TaskSettings(checkpoint_interval_s=10.0, replay_s=0.025)
    assert began_after_s(tmp_path, 0.0, settings=settings, at_once=100) == pytest.approx(2.5, abs=0.25)


def test_under_full_load_only_the_clock_counts(tmp_path: Path) -> None:
    assert began_after_s(tmp_path, 1.0) == pytest.approx(10.0, abs=0.15)


def test_a_task_that_hardly_waits_is_under_full_load(tmp_path: Path) -> None:
    assert began_after_s(tmp_path, 0.8) == pytest.approx(1.0 / (0.8 * 0.2), abs=0.25)
    # With less spare time than a sixth; by the balance alone it would come after 7.8 s.
    assert began_after_s(tmp_path, 0.85) == pytest.approx(10.0, abs=0.15)
    assert began_after_s(tmp_path, 0.9) == pytest.approx(10.0, abs=0.15)


def test_what_the_process_does_otherwise_leaves_less_to_spare(tmp_path: Path) -> None:
    assert began_after_s(tmp_path, 0.3, 0.2) == pytest.approx(1.0 / (0.3 * 0.5), abs=0.25)


def test_nor_does_a_process_that_keeps_several_processors_busy_checkpoint_early(tmp_path: Path) -> None:
    assert began_after_s(tmp_path, 0.5, 1.2) == pytest.approx(10.0, abs=0.15)


def test_a_task_that_waits_for_a_processor_has_no_time_to_spare(tmp_path: Path) -> None:
    assert began_after_s(tmp_path, 1.0, -0.7) == pytest.approx(10.0, abs=0.15)


def test_the_soonest_is_four_times_what_would_be_replayed(tmp_path: Path) -> None:
    assert began_after_s(tmp_path, 0.5) == pytest.approx(4.0, abs=0.25)


def test_never_means_never(tmp_path: Path) -> None:
    never = float("inf")
    with pytest.raises(AssertionError, match="never began"):
        began_after_s(tmp_path, 0.5, settings=TaskSettings(checkpoint_interval_s=never, replay_s=never))


def test_slices_of_a_checkpoint_that_take_long_become_smaller(tmp_path: Path) -> None:
    clock_s = 0.0
    limits: list[int] = []

    def step(limit_bytes: int) -> bool:
        nonlocal clock_s
        limits.append(limit_bytes)
        clock_s += 1e-6 * limit_bytes if 10 < len(limits) <= 20 else 1e-9
        return False

    log = SmallLog(stream_text())
    task = log.open(tmp_path, SETTINGS, now=lambda: clock_s)
    real_step = task.checkpointer.step
    try:
        log.feed(task)
        task.checkpoints.begin()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(task.checkpointer, "step", step)
            for _ in range(30):
                task.checkpoints.step()
    finally:
        assert task.checkpointer.step == real_step
        task.close()
    grown, shrunk, grown_again = limits[9], limits[10:20], limits[29]
    assert grown == grown_again == SETTINGS.trickle_bytes
    assert shrunk[-1] == 8_192
    assert all(2 * after == before or after == before == 8_192 for before, after in pairwise(shrunk))


@pytest.mark.parametrize("is_brief", [False, True])
def test_a_checkpoint_comes_to_its_end_where_every_write_is_slow(tmp_path: Path, is_brief: bool) -> None:
    """1 GiB on a disk where a write takes 11 ms, however small it is."""
    clock_s = 0.0
    left_bytes = 1 << 30

    def step(limit_bytes: int) -> bool:
        nonlocal clock_s, left_bytes
        clock_s += 0.011
        left_bytes -= limit_bytes
        return False

    log = SmallLog(stream_text())
    task = log.open(tmp_path, SETTINGS, now=lambda: clock_s)
    try:
        log.feed(task)
        task.checkpoints.begin()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(task.checkpointer, "step", step)
            while left_bytes > 0 and clock_s < 1_200:
                task.checkpoints.step(16 if is_brief else 1)
    finally:
        task.close()
    assert clock_s < (500 if is_brief else 170)


@pytest.mark.parametrize(("limit_bytes", "comes"), [(1 * MIB, True), (1024 * MIB, False)])
def test_what_has_no_room_in_memory_brings_one(limit_bytes: int, comes: bool, tmp_path: Path) -> None:
    never = float("inf")
    settings = TaskSettings(
        row_cache_bytes=2 * MIB,
        checkpoint_interval_s=never,
        replay_s=never,
        checkpoint_bytes=limit_bytes,
    )
    log = SmallLog(stream_text(window="SLIDING 1 DAY"))
    for n in range(60_000):
        log.event(f"e{n}", 1_000_000 + n, f"key {n}")
    task = log.open(tmp_path, settings)
    try:
        log.feed(task, 2048)
        assert task.store.written_bytes > 1 * MIB
        for _ in range(100):
            task.work()
        # How soon it ends is the disk's affair.
        has_begun = task.checkpointer.is_in_flight or task.checkpoints.taken > 0
        assert has_begun is comes
    finally:
        task.close()
