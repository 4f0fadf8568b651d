"""Edges where it is hard: clocks that jump, small limits, small caches, the ends of time."""

from collections.abc import Sequence

import numpy as np
import pytest

from reservoir import layout as at
from reservoir.errors import CapacityError
from reservoir.reservoir import Reservoir
from reservoir.segments.length import Length
from reservoir.thread_executor import ThreadExecutor
from tests.reservoir.event_log import AMOUNT, CARD, EventLog, Record, compute_columns
from tests.reservoir.log_driver import LogDriver
from tests.reservoir.log_strategies import seeded_log
from tests.reservoir.memory_files import MemoryFiles
from tests.reservoir.small_driver import FOLDER, driver_of, steady_log


def test_a_clock_that_jumps_far_expires_everything_in_bounded_memory() -> None:
    log = steady_log(3_000, 10)
    log.add(Record(10**9, True, 1, None, 1))
    driver = driver_of(log, cache_bytes=8_000, changelog_entries=500)
    driver.set_hot((AMOUNT, CARD))
    for delta in (0, 7, 40_000, 40_001, 200_000):
        driver.add_edge(delta)
    driver.run_all_until(3_000, [100])
    held, drains, advance = [], [], driver.reservoir.advance

    def watched(done: int, to: int, limit: int | None = None) -> int:
        reached = advance(done, to, limit)
        held.append(driver.reservoir.stats().cache_bytes)
        drains.append(reached == done)
        assert int(driver.reservoir.changelog.end.max()) <= 500
        return reached

    driver.reservoir.advance = watched  # type: ignore[method-assign]
    driver.run(1)
    assert sum(drains) >= 3 * 3_000 // 500 - 3
    assert max(held) < 8_000 + 60 * 16 * 40
    driver.reservoir.close()


def test_smaller_deltas_are_drained_first() -> None:
    """Or a window's tail would take away what its head has not brought yet."""
    log = steady_log(200, 1)
    log.add(Record(10**6, True, 1, None, 1))
    driver = driver_of(log, changelog_entries=30)
    driver.set_hot(())
    late, soon = driver.add_edge(5_000), driver.add_edge(1_000)
    driver.run_all_until(200, [50])
    driver._load(range(200, 201))
    driver.reservoir.append()
    given = []
    while driver.reservoir.advance(0, 1) == 0:
        changes = driver.reservoir.changelog
        given.append([int(changes.end[edge] - changes.start[edge]) for edge in (soon, late)])
    assert given[0] == [30, 0]
    brought = np.cumsum(given, axis=0)
    assert (brought[:, 0] >= brought[:, 1]).all()
    driver.reservoir.close()


@pytest.mark.parametrize("limit", [None, 1, 3, 40])
@pytest.mark.parametrize("seed", range(2))
def test_limits_do_not_change_what_crosses(seed: int, limit: int | None) -> None:
    driver = driver_of(seeded_log(seed, 400, spread=(-25, 40)))
    driver.limit = limit
    driver.set_hot((AMOUNT,))
    for delta in (3, 19, 20, 21, 200, 1_000):
        driver.add_edge(delta)
    driver.run_all([1, 64, 9])
    driver.reservoir.close()


@pytest.mark.parametrize("start", [-(1 << 63) + 1, -70_000, (1 << 63) - 40_001])
def test_the_ends_of_time(start: int) -> None:
    log = EventLog(30)
    for k in range(200):
        log.add(Record(start + 200 * k, True, k, None, k))
    driver = driver_of(log)
    driver.set_hot((AMOUNT,))
    for delta in (0, 1, 500, 10_000, 1 << 62, (1 << 63) - 1):
        driver.add_edge(delta)
    driver.run_all([7])
    saved = driver.checkpoint()
    driver.restart(saved)
    driver.check_rows()
    driver.reservoir.close()


def test_edges_share_what_was_decoded_and_are_served_ahead() -> None:
    driver = driver_of(steady_log(2_000, 10))
    driver.set_hot((AMOUNT, CARD))
    for delta in range(4_000, 4_300, 10):
        driver.add_edge(delta)
    driver.run_all([20])
    stats = driver.reservoir.stats().cache
    assert stats.hits + stats.misses <= 2_000 // 16 + 1
    assert stats.prefetched > 80
    assert stats.hits > 0
    driver.reservoir.close()


def test_chunks_stay_where_all_their_columns_are_still_there() -> None:
    driver = driver_of(steady_log(1_000, 10))
    driver.set_hot((AMOUNT, CARD))
    for delta in (2_000, 5_000, 8_000):
        driver.add_edge(delta)
    driver.run_all_until(960, [30])
    for position, hot in ((970, (AMOUNT, CARD)), (980, (CARD, AMOUNT)), (990, (CARD,))):
        held_bytes, asked = driver.reservoir.stats().cache_bytes, driver.reservoir.stats().cache.prefetched
        driver.set_hot(hot)
        # Those that the cursors are in; what lies ahead of them may be asked for again.
        assert driver.reservoir.stats().cache_bytes > held_bytes // 2
        assert driver.reservoir.stats().cache.prefetched - asked <= 3
        driver.run_all_until(position, [2])
    driver.run_all([5])
    driver.reservoir.close()


def test_a_set_holds_only_its_columns() -> None:
    driver = driver_of(steady_log(500, 10))
    driver.set_hot((AMOUNT, CARD))
    driver.reservoir.set_columns(0, [1])
    driver.add_edge(1_000)
    driver.hot = (CARD,)
    driver.check_row = lambda frame, row: _check_second(driver, frame, row)  # type: ignore[method-assign]
    driver._load = _loader(driver)  # type: ignore[method-assign]
    driver.run_all([50])
    driver.reservoir.close()


def _loader(driver: LogDriver):  # type: ignore[no-untyped-def]
    load = type(driver)._load

    def both(seqs: Sequence[int]) -> None:
        driver.hot = (AMOUNT, CARD)
        load(driver, seqs)

    return both


def _check_second(driver: LogDriver, frame: int, row: int) -> int:
    from reservoir import frames as f

    frames = driver.reservoir.words[at.FRAMES]
    if frame:
        assert f.frame_rows(frames, frame) == 16
        kinds = [driver_kind(f.column_at(frames, frame, number)) for number in (0, 1)]
        assert kinds == [0, int(CARD.kind)]
    return int(f.frame_seq(frames, frame, row))


def driver_kind(descriptor: int) -> int:
    from reservoir.frames import COLUMN_KIND
    from reservoir.native.jit import array_at

    return int(array_at(descriptor, 8, np.int64)[COLUMN_KIND])


def test_edge_numbers_are_reused_and_grow() -> None:
    driver = driver_of(steady_log(300, 10))
    driver.set_hot(())
    edges = [driver.add_edge(10 * k) for k in range(40)]
    assert edges == list(range(40))
    driver.run_all_until(100, [25])
    driver.remove_edge(7)
    assert driver.add_edge(123) == 7
    driver.run_all([25])
    driver.reservoir.close()


def test_seek_finds_every_place() -> None:
    log = seeded_log(5, 300)
    driver = driver_of(log)
    driver.set_hot((AMOUNT,))
    driver.run_all([40])
    for delta in range(0, 400, 3):
        edge = driver.add_edge(delta)
        assert edge == 0
        position, driver.log = driver.position, log
        log.add(Record(log.clock + 50, True, 1, None, 1))
        driver.run(1)
        driver.remove_edge(edge)
        assert driver.position == position + 1
    driver.reservoir.close()


def test_too_many_frames_at_once_is_a_typed_error(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = driver_of(steady_log(300, 10), changelog_entries=1 << 12)
    driver.set_hot(())
    cache = driver.reservoir._cache
    cache.table = cache.table[:3]
    driver.add_edge(100_000)
    driver.run_all([50])
    driver.log.add(Record(10**8, True, 1, None, 1))
    with pytest.raises(CapacityError, match="frames"):
        driver.run(1)
    driver.reservoir.close()


def test_an_empty_reservoir_opens_and_closes() -> None:
    reservoir = Reservoir.open(
        FOLDER, MemoryFiles(), compute_columns=compute_columns, executor=ThreadExecutor(), length=Length()
    )
    assert (reservoir.chunks, reservoir.last_sealed, reservoir.least_open_seq()) == (0, None, None)
    assert reservoir.sync(0) == Length()
    assert list(reservoir.scan()) == []
    assert (reservoir.sealed_rows, list(reservoir.recent_ids(10))) == (0, [])
    assert reservoir.drop_before((1 << 63) - 1) == 0
    reservoir.close()
