"""Recovery: the duplicate horizon where segments are gone, logs that do not reach, floods of duplicates."""

import random
from pathlib import Path

import pytest

from railgun.task.errors import LogGapError
from railgun.task.settings import TaskSettings
from reservoir.reservoir import Reservoir
from tests.task.small_log import SmallLog, keep_no_open_rows, stream_text

SMALL = TaskSettings(chunk_events=16, segment_bytes=1 << 12, checkpoint_interval_s=0.0)
BY_HAND = TaskSettings(chunk_events=16, checkpoint_interval_s=3_600.0, replay_s=3_600.0)
HORIZON = 1_000


def horizon_after_recovery(folder: Path) -> None:
    """Segments are dropped by time, the horizon counts positions: a recovery must still find all of its ids."""
    log = SmallLog(stream_text(['lateness = "20s"', 'retention = "20s"', f"dedup_events = {HORIZON}"]))
    task, rng = log.open(folder, SMALL), random.Random(5)
    ids: list[str] = []
    for n in range(3_000):
        ids.append(f"e{n}")
        log.event(ids[-1], 1_000_000 + 100 * n - rng.randrange(19_000))
    assert not any(log.feed(task))
    task.checkpoints.take()
    sealed = task.reservoir.chunks * SMALL.chunk_events
    task.close()
    task = log.open(folder, SMALL)
    kept = sum(len(rows.seq) for rows in task.reservoir.scan())
    assert kept < sealed // 2, "segments were dropped"
    try:
        for id_ in ids[-HORIZON:]:
            log.event(id_, 1_300_000)
        assert all(log.feed(task)), "every id within the horizon is known"
        log.event(ids[-HORIZON - 1], 1_300_000)
        assert log.feed(task) == [False], "the one behind it is forgotten"
    finally:
        task.close()


def test_the_duplicate_horizon_after_segments_were_dropped(tmp_path: Path) -> None:
    horizon_after_recovery(tmp_path)


def test_that_test_can_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Reservoir, "time_before_last", lambda reservoir, rows: 2**62)
    with pytest.raises(AssertionError, match="known"):
        horizon_after_recovery(tmp_path)


def bytes_of(folder: Path) -> dict[str, bytes]:
    """The reservoir's files."""
    return {
        str(path): path.read_bytes() for path in sorted((folder / "reservoir").rglob("*")) if path.is_file()
    }


@pytest.mark.parametrize("is_of_now", [True, False])
@pytest.mark.parametrize("short_by", [1, 40])
def test_a_log_that_begins_behind_what_the_checkpoint_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, short_by: int, is_of_now: bool
) -> None:
    if not is_of_now:
        keep_no_open_rows(monkeypatch)
    log = SmallLog(stream_text(['lateness = "1s"']))
    task = log.open(tmp_path, BY_HAND)
    for n in range(4_000):
        log.event(f"e{n}", 1_000_000 + 10 * n)
    log.feed(task)
    task.checkpoints.take()
    assert 1_000 < task.checkpoints.durable_log_start < task.position, "some rows are sealed, some are open"
    needed = task.position if is_of_now else task.checkpoints.durable_log_start
    for n in range(4_000, 4_100):
        log.event(f"e{n}", 1_000_000 + 10 * n)
    log.feed(task)
    task.close()
    before = bytes_of(tmp_path)
    with pytest.raises(LogGapError, match=f"begins at offset {needed + short_by}, offset {needed} is needed"):
        log.open(tmp_path, BY_HAND, log_start=needed + short_by)
    assert bytes_of(tmp_path) == before, "nothing was cut"
    log.read_from.clear()
    task = log.open(tmp_path, BY_HAND, log_start=needed)
    assert bool(log.read_from) != is_of_now
    log.feed(task)
    assert task.position == len(log.records)
    task.close()


def test_a_log_that_has_lost_its_beginning_and_no_checkpoint(tmp_path: Path) -> None:
    log = SmallLog(stream_text())
    with pytest.raises(LogGapError, match=r"its checkpoint is lost.*offset 0 is needed.*restore the whole"):
        log.open(tmp_path, BY_HAND, log_start=3)


def test_a_log_that_ends_before_the_checkpoint_of_an_earlier_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_no_open_rows(monkeypatch)
    log = SmallLog(stream_text(['lateness = "1s"']))
    task = log.open(tmp_path, BY_HAND)
    for n in range(50):
        log.event(f"e{n}", 1_000_000 + 10 * n)
    log.feed(task)
    task.checkpoints.take()
    task.close()
    del log.records[-3:]
    with pytest.raises(LogGapError, match=r"s/k/0.*the log ends at offset 49, 52 is needed"):
        log.open(tmp_path, BY_HAND)


def test_a_flood_of_duplicates_behind_an_open_row_is_neither_kept_nor_read_again(tmp_path: Path) -> None:
    log = SmallLog(stream_text(['lateness = "1s"']))
    task = log.open(tmp_path, BY_HAND)
    first = log.event("open", 1_000_000)
    for _ in range(20_000):
        log.event("open", 1_000_000)
    log.event("next", 1_000_500)
    log.feed(task, 512)
    assert len(task.journal.pages) <= 3
    task.checkpoints.take()
    assert task.checkpoints.durable_log_start <= first, "the log is needed from the open row on"
    digest = task.digest()
    task.close()
    log.read_records = 0
    task = log.open(tmp_path, BY_HAND)
    assert log.read_records < 4_000
    assert task.digest() == digest
    log.event("open", 1_000_000)
    log.event("third", 1_000_600)
    assert log.feed(task) == [True, False]
    task.close()
