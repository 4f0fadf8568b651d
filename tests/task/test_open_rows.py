"""A checkpoint needs nothing of the log before its position: it keeps the rows that no chunk holds yet."""

import random
from pathlib import Path

import pytest

from railgun.task.settings import TaskSettings
from reservoir.files import DiskFiles
from reservoir.open_region.saved_rows import FILES_MAX, read_rows
from tests.task.small_log import IDENTITY, SmallLog, keep_no_open_rows, stream_text

SETTINGS = TaskSettings(
    chunk_events=16, segment_bytes=1 << 12, checkpoint_interval_s=3_600.0, replay_s=3_600.0
)


def a_log(seed: int, events: int) -> SmallLog:
    """Events out of order by up to the lateness and beyond it; every seventh is a duplicate."""
    rng = random.Random(seed)
    policy = ("discard", "rewrite")[seed % 2]
    log = SmallLog(
        stream_text(
            ['lateness = "2s"', f'late_policy = "{policy}"', "dedup_events = 300"], "SLIDING 3 SECONDS"
        )
    )
    for n in range(events):
        same = n - rng.randrange(1, 400) if n % 7 == 6 else n
        log.event(f"e{max(0, same)}", 1_000_000 + 50 * n - rng.randrange(3_000), f"k{rng.randrange(9)}")
    return log


def files_of(folder: Path) -> list[Path]:
    return sorted((folder / "reservoir").glob("*.open"))


def rows_in(folder: Path) -> int:
    return sum(
        len(rows.seq) for path in files_of(folder) for rows in read_rows(DiskFiles(), path, IDENTITY.key)
    )


@pytest.mark.parametrize("seed", range(6))
def test_a_recovery_reads_no_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Every recovery has the content, the memory of duplicates and the replies of a task that never stopped. From time
    to time an earlier release goes on with the folder: it reads the log, and leaves files that nobody needs.
    """
    rng, log = random.Random(seed), a_log(seed, 2_000)
    whole = log.open(tmp_path / "whole", SETTINGS)
    duplicates = log.feed(whole)
    assert any(duplicates)
    records, log.records = log.records, []
    task, told, is_earlier = log.open(tmp_path / "t", SETTINGS), [], False
    while len(log.records) < len(records):
        log.records += records[len(log.records) :][: rng.randrange(1, 120)]
        told += log.feed(task, rng.choice((1, 7, 64)))
        if rng.random() < 0.6:
            continue
        with monkeypatch.context() as patch:
            is_earlier = rng.random() < 0.2
            if is_earlier:
                keep_no_open_rows(patch)
            task.checkpoints.take()
        digest = task.digest()
        assert len(files_of(tmp_path / "t")) <= FILES_MAX + 1
        if rng.random() < 0.5:
            task.close()
            log.read_from.clear()
            task = log.open(tmp_path / "t", SETTINGS, log_start=0 if is_earlier else task.position)
            assert is_earlier or not log.read_from
            assert task.digest() == digest
    assert told == duplicates
    assert task.digest() == whole.digest()
    task.close()
    whole.close()


def test_the_checkpoint_of_an_earlier_release_is_replaced_once_though_no_record_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It needs more of the log than the checkpoints that figures speak of."""
    log, now = a_log(2, 300), [0.0]
    task = log.open(tmp_path, SETTINGS)
    log.feed(task)
    with monkeypatch.context() as patch:
        keep_no_open_rows(patch)
        task.checkpoints.take()
    digest = task.digest()
    task.close()
    for taken in (1, 0):
        task = log.open(tmp_path, SETTINGS, log_start=0 if taken else task.position, now=lambda: now[0])
        for _ in range(50):
            now[0] += SETTINGS.checkpoint_interval_s / 10
            while task.work():
                pass
        assert (task.checkpoints.taken, task.digest()) == (taken, digest)
        task.close()


def test_files_hold_at_most_as_many_sealed_rows_as_open_ones(tmp_path: Path) -> None:
    log = a_log(3, 3_000)
    task, records = log.open(tmp_path, SETTINGS), log.records
    numbers = set[str]()
    for end in range(10, len(records), 10):
        log.records = records[:end]
        log.feed(task)
        task.checkpoints.take()
        task.close()
        task = log.open(tmp_path, SETTINGS, log_start=end)
        numbers |= {path.name for path in files_of(tmp_path)}
        assert rows_in(tmp_path) <= 2 * task.reservoir.stats().open_rows
    assert len(numbers) > 200, "most checkpoints write the new rows only, in a file of their own"
    task.close()


def test_a_file_that_no_checkpoint_names_is_deleted(tmp_path: Path) -> None:
    """A crash before the commit leaves one."""
    log = a_log(1, 500)
    task = log.open(tmp_path, SETTINGS)
    log.feed(task)
    task.checkpoints.take()
    named = files_of(tmp_path)
    log.event("more", 1_030_000)
    log.feed(task)
    task.reservoir.save_open_rows().write()
    task.close()
    assert len(files_of(tmp_path)) == len(named) + 1
    log.open(tmp_path, SETTINGS).close()
    assert files_of(tmp_path) == named
