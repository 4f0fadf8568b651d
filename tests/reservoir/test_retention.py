"""Old segments go, and only when nothing needs them; ids of the last rows are found again."""

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from reservoir.errors import StorageFailedError
from reservoir.reservoir import Settings
from tests.reservoir.event_log import AMOUNT, INT64_MIN, EventLog
from tests.reservoir.failing_files import FailingFiles
from tests.reservoir.log_driver import LogDriver
from tests.reservoir.log_strategies import seeded_log
from tests.reservoir.memory_files import MemoryFiles

END = (1 << 63) - 1


def driven(log: EventLog | None = None) -> tuple[LogDriver, MemoryFiles]:
    files = MemoryFiles()
    settings = Settings(bytes(16), chunk_events=16, segment_bytes=6_000)
    driver = LogDriver(Path("reservoir"), log or seeded_log(2, 600), settings, files)
    driver.set_hot((AMOUNT,))
    driver.run_all([50])
    driver.reservoir.sync(driver.reservoir.chunks)
    return driver, files


def wait_until(happened: Callable[[], bool]) -> None:
    """Give the background thread ten seconds."""
    for _ in range(1_000):
        if happened():
            return
        time.sleep(0.01)


def sealed_seqs(driver: LogDriver) -> list[int]:
    """Of all rows in chunks, from first to last."""
    chunks = list(driver.reservoir.scan())[: driver.reservoir.chunks]
    return sorted(int(seq) for scanned in chunks for seq in scanned.seq)


def kept(driver: LogDriver) -> int:
    return sum(len(scanned.time) for scanned in driver.reservoir.scan())


def test_segments_go_when_their_last_time_is_reached() -> None:
    driver, files = driven()
    before, rows = len(files.names), kept(driver)
    bound = driver.log.clocks[300]
    dropped = driver.reservoir.drop_before(bound)
    assert 0 < dropped < before
    wait_until(lambda: len(files.names) <= before - dropped)
    assert len(files.names) == before - dropped
    driver.check_rows(complete=False)
    missing = rows - kept(driver)
    times = sorted(r.time for r in driver.log.records if r.accepted)
    assert 0 < missing <= sum(time <= bound for time in times)
    assert driver.reservoir.drop_before(bound) == 0
    driver.reservoir.close()


def test_the_segment_that_is_written_to_stays() -> None:
    driver, files = driven()
    driver.reservoir.drop_before(END)
    driver.reservoir.close()
    assert len(files.names) == 1


def test_a_failed_deletion_is_told() -> None:
    driver, _ = driven()
    driver.reservoir._writer._files = FailingFiles(MemoryFiles(), 0)
    assert driver.reservoir.drop_before(END) > 0
    wait_until(lambda: driver.reservoir._writer.failure is not None)
    with pytest.raises(StorageFailedError, match="delete failed"):
        driver.reservoir.append()
    driver.reservoir.close()


@pytest.mark.parametrize("what", ["edge", "fill"])
def test_what_a_cursor_needs_stays(what: str) -> None:
    driver, files = driven()
    before = len(files.names)
    if what == "edge":
        number = driver.add_edge(END // 2)
    else:
        number = driver.reservoir.fill_open(INT64_MIN)
    assert driver.reservoir.drop_before(END) == 0
    if what == "edge":
        driver.reservoir.seek(number, driver.log.clocks[300])
    else:
        driver.reservoir.fill_next(number, 10_000, driver.log.clocks[300])
    assert 0 < driver.reservoir.drop_before(END) < before - 1
    driver.reservoir.close()


def test_a_checkpoint_opens_after_a_drop() -> None:
    driver, _ = driven()
    saved = driver.checkpoint()
    assert driver.reservoir.drop_before(driver.log.clocks[400]) > 0
    driver.restart(saved)
    driver.check_rows(complete=False)
    assert driver.reservoir.chunks == saved.length.chunks
    assert driver.reservoir.drop_before(END) > 0
    driver.reservoir.close()


def test_nothing_goes_for_ever() -> None:
    driver, _ = driven()
    assert driver.reservoir.drop_before(INT64_MIN) == 0
    driver.check_rows()
    driver.reservoir.close()


@pytest.mark.parametrize("rows", [0, 1, 50, 10_000])
def test_recent_ids_hold_the_latest_rows(rows: int) -> None:
    driver, _ = driven()
    found = list(driver.reservoir.recent_ids(rows))
    seqs = [seq for each, _ in found for seq in each.tolist()]
    pairs = [tuple(pair) for _, each in found for pair in each.tolist()]
    sealed = sealed_seqs(driver)
    assert driver.reservoir.sealed_rows == len(sealed)
    wanted = sealed[-rows:] if rows else []
    assert set(wanted) <= set(seqs) <= set(sealed)
    assert seqs == sorted(set(seqs))
    assert len(seqs) <= rows + 64
    assert max((len(each) for each, _ in found), default=0) <= 64
    assert pairs == [driver.log.records[seq].id for seq in seqs]
    driver.reservoir.close()


@pytest.mark.parametrize("rows", [0, 3, 40, 100, 5_000])
def test_so_they_do_where_chunks_overlap_by_position_and_do_not_come_in_their_order(rows: int) -> None:
    driver, _ = driven(seeded_log(9, 900, lateness=400, spread=(-350, 60)))
    least = driver.reservoir._index.each("least_seq")
    assert np.any(least[1:] < least[:-1]), "the log has chunks that are not in the order of their positions"
    seqs = [seq for each, _ in driver.reservoir.recent_ids(rows) for seq in each.tolist()]
    assert seqs == sorted(set(seqs))
    assert set(sealed_seqs(driver)[-rows:] if rows else []) <= set(seqs)
    driver.reservoir.close()
