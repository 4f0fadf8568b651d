"""Fills give exactly the rows behind a position, in order, while the log goes on and chunks are sealed."""

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from reservoir.reservoir import Settings
from tests.reservoir import log_driver
from tests.reservoir.event_log import ALL_COLUMNS, AMOUNT, CARD, INT64_MIN, UPPER, compute_columns
from tests.reservoir.log_driver import LogDriver
from tests.reservoir.log_strategies import seeded_log
from tests.reservoir.memory_files import MemoryFiles


def filling(seed: int, cache_bytes: int = 1 << 20) -> LogDriver:
    driver = LogDriver(
        Path("reservoir"),
        seeded_log(seed, 400),
        Settings(bytes(16), chunk_events=16, segment_bytes=9_000, cache_bytes=cache_bytes),
        MemoryFiles(),
    )
    driver.set_hot((AMOUNT,))
    driver.add_edge(50)
    driver.run_all_until(200, [30])
    driver.set_hot(ALL_COLUMNS)
    return driver


def rows_of(driver: LogDriver, up_to: int) -> list[tuple[int, int]]:
    log = driver.log
    rows = [
        (r.time, seq)
        for seq, r in enumerate(log.records[: driver.position])
        if r.accepted and r.time <= up_to
    ]
    return sorted(rows)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("rows", [1, 7, 1000])
@pytest.mark.parametrize("cache_bytes", [0, 1 << 20])
def test_a_fill_gives_what_joins_ahead_of_it_and_nothing_behind(
    seed: int, rows: int, cache_bytes: int
) -> None:
    driver = filling(seed, cache_bytes)
    log, after = driver.log, driver.log.clocks[60]
    fill, given, expected_late = driver.reservoir.fill_open(after), [], set()
    done = False
    while not done or driver.position < len(log.records):
        bound = log.clocks[driver.position - 1] - 10
        found, done = driver.take(fill, rows, bound)
        given += found
        at = driver.reservoir.fill_position(fill)
        before = driver.position
        driver.run(9)
        for seq in range(before, driver.position):
            row = log.records[seq]
            if row.accepted and (row.time, seq) < at:
                expected_late.add((row.time, seq))
    bound = log.clock - 10
    while not done:
        found, done = driver.take(fill, rows, bound)
        given += found
    found, done = driver.take(fill, 10_000, bound)
    given += found
    assert done
    wanted = [row for row in rows_of(driver, bound) if row[0] > after and row not in expected_late]
    assert given == wanted
    driver.reservoir.fill_close(fill)
    driver.reservoir.close()


def test_a_fill_goes_on_from_its_position_after_a_restart() -> None:
    driver = filling(3)
    fill = driver.reservoir.fill_open(INT64_MIN, column_set=1)
    first, _ = driver.take(fill, 73, driver.log.clock)
    saved, position = driver.checkpoint(), driver.reservoir.fill_position(fill)
    driver.restart(saved)
    fill = driver.reservoir.fill_open(*position)
    rest, done = driver.take(fill, 10_000, driver.log.clock)
    assert done
    assert first + rest == rows_of(driver, driver.log.clock)
    driver.reservoir.close()


def test_two_fills_with_sets_of_their_own() -> None:
    driver = filling(5)
    columns = driver.hot
    driver.reservoir.set_columns(2, [columns.index(CARD)])
    driver.reservoir.set_columns(3, [columns.index(UPPER)])
    fills = [driver.reservoir.fill_open(INT64_MIN, column_set=column_set) for column_set in (2, 3)]
    for fill in fills:
        assert driver.reservoir.fill_next(fill, 20, driver.log.clock).count == 20
    assert driver.reservoir.fill_position(fills[0]) == driver.reservoir.fill_position(fills[1])
    driver.reservoir.fill_close(fills[0])
    assert driver.reservoir.fill_open(0) == fills[0]
    driver.reservoir.close()


def test_what_a_fill_reads_next_is_decoded_in_the_background(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks first, and waits, decodes nothing itself, chunk after chunk, up to the open rows."""
    threads: list[str] = []

    def noting(payload: Any, offsets: Any, columns: Any) -> Any:
        threads.append(threading.current_thread().name)
        return compute_columns(payload, offsets, columns)

    monkeypatch.setattr(log_driver, "compute_columns", noting)
    driver = filling(3)
    threads.clear()
    reservoir, bound = driver.reservoir, driver.log.clock
    first = reservoir.stats().cache.prefetched
    fill = reservoir.fill_open(driver.log.clocks[60])
    assert not reservoir.fill_is_ready(fill)
    assert reservoir.stats().cache.prefetched == first + 1
    given, done, asked = 0, False, 0
    while not done:
        until_s = time.monotonic() + 10
        while not reservoir.fill_is_ready(fill):
            asked += 1
            assert time.monotonic() < until_s
            time.sleep(0.001)
        found = reservoir.fill_next(fill, 5, bound, ready_only=True)
        given, done = given + found.count, found.done
    assert given > 16
    assert asked
    assert set(threads) == {"chunk-prefetch"}
    assert reservoir.fill_is_ready(fill), "the open rows are there"
    driver.reservoir.close()
