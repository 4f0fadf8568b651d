"""The open region alone: growth, wrapped rings, columns that come later, rows that can't be placed."""

from pathlib import Path
from random import Random

import pytest

from reservoir import layout as at
from reservoir.errors import RowOrderError
from reservoir.reservoir import Settings
from tests.reservoir.event_log import ALL_COLUMNS, AMOUNT, CARD, NAME, UPPER, EventLog, Record
from tests.reservoir.log_driver import LogDriver
from tests.reservoir.memory_files import MemoryFiles


def driver_of(log: EventLog, chunk_events: int = 16) -> LogDriver:
    settings = Settings(bytes(16), chunk_events=chunk_events, segment_bytes=1 << 20)
    return LogDriver(Path("reservoir"), log, settings, MemoryFiles())


def big_log(seed: int, n: int, lateness: int, size: int) -> EventLog:
    """Strings of up to `size` characters, so that the arena wraps and grows; times spread over the lateness."""
    random, log = Random(seed), EventLog(lateness)
    for k in range(n):
        name = random.choice([None, "b" * random.randint(0, size), "é" * random.randint(0, size // 2)])
        log.add(Record(3 * k - random.randint(0, lateness), random.random() < 0.9, k, name, k % 7))
    return log


@pytest.mark.parametrize("seed", range(3))
def test_rings_wrap_and_grow(seed: int) -> None:
    """Sizes rise, so that growth comes after the rings have gone round many times."""
    log = big_log(seed, 300, 40, 400)
    for size in (3_000, 30_000):
        for record in big_log(seed + size, 120, 40, size).records:
            time = log.clock + 3 + record.time % 20
            log.add(Record(time, record.accepted, record.amount, record.name, record.card))
    driver = driver_of(log)
    driver.set_hot(ALL_COLUMNS)
    for delta in (5, 30, 100):
        driver.add_edge(delta)
    random, sizes = Random(seed), set()
    while driver.position < len(log.records):
        driver.run(random.choice([1, 5, 20]))
        sizes.add(driver.reservoir.stats().open_bytes)
    driver.check_rows()
    assert len(sizes) > 2
    driver.reservoir.close()


def test_a_ring_does_not_grow_when_rows_leave_in_time() -> None:
    log = EventLog(0)
    for k in range(5_000):
        log.add(Record(k, True, k, "x" * 50, 1))
    driver = driver_of(log)
    driver.set_hot((AMOUNT,))
    driver.run_all_until(2_000, [32])
    driver.reservoir.sync(driver.reservoir.chunks)
    for position in range(2_100, 5_000, 100):
        driver.run_all_until(position, [32])
        driver.reservoir.sync(driver.reservoir.chunks)
    assert driver.reservoir.words[at.OPEN_CAPACITY] <= 512
    assert driver.reservoir.stats().open_bytes <= 1 << 17
    driver.reservoir.close()


def test_columns_that_come_later_are_computed_for_open_rows() -> None:
    log = big_log(9, 80, 1_000, 5_000)
    driver = driver_of(log)
    driver.set_hot((AMOUNT,))
    driver.add_edge(50)
    driver.run_all_until(50, [7])
    for hot in ((UPPER, AMOUNT, CARD), (), (CARD, NAME), ALL_COLUMNS):
        driver.set_hot(hot)
        driver.check_rows()
        scanned = list(driver.reservoir.scan(range(len(hot))))
        assert sum(len(rows.time) for rows in scanned) == driver.reservoir.stats().open_rows
    driver.run_all([9])
    driver.reservoir.close()


def test_slots_name_the_rows_of_the_batch() -> None:
    log = EventLog(10)
    for k in range(40):
        log.add(Record(100 - k % 9, k % 4 != 3, k, None, k))
    driver = driver_of(log)
    driver.set_hot((AMOUNT, CARD))
    driver.run_all_until(20, [20])
    driver.run_all_until(40, [20])
    for k in range(20):
        slot = int(driver.reservoir.slots[k])
        if log.records[20 + k].accepted:
            assert driver.check_row(0, slot) == 20 + k
        else:
            assert slot == -1
    driver.reservoir.close()


def test_rows_that_cannot_be_placed_are_refused_whole() -> None:
    log = EventLog(0)
    for k in range(40):
        log.add(Record(k, True, k, None, k))
    driver = driver_of(log)
    driver.set_hot((AMOUNT,))
    driver.run_all_until(33, [11])
    assert driver.reservoir.last_sealed == (31, 31)
    open_rows = driver.reservoir.stats().open_rows
    for begin, reason in (
        (31, "log position 31: not after the last sealed row"),
        (32, "position 32: not after the record"),
    ):
        driver._load(range(begin, 40))
        with pytest.raises(RowOrderError, match=reason):
            driver.reservoir.append()
        assert driver.reservoir.stats().open_rows == open_rows
    driver.reservoir.close()


def test_restore_leaves_out_what_is_sealed() -> None:
    log = EventLog(5)
    for k in range(60):
        log.add(Record(k - (k % 5), True, k, "n", k))
    driver = driver_of(log)
    driver.set_hot((AMOUNT,))
    driver.run_all([13])
    saved = driver.checkpoint()
    assert 0 < saved.restore_from < 60
    driver.restart(saved)
    driver.check_rows()
    assert driver.reservoir.least_open_seq() == saved.restore_from
    driver.reservoir.close()
