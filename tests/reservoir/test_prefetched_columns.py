"""Columns that come while events go on: decoded before, alone, once, within the limit, and never a wrong value."""

import gc
import random
import threading
import time
from concurrent.futures import wait
from typing import Any

import pytest

from reservoir.columns import ColumnKind, HotColumn
from reservoir.cursors import held_frame as held_frame_module
from reservoir.cursors.held_frame import Ahead, HeldFrame
from reservoir.layout import OPEN_NEED_BYTES, OPEN_NEED_ROWS
from tests.counts import seeds
from tests.reservoir import log_driver
from tests.reservoir.event_log import AMOUNT, CARD, NAME, TWICE, EventLog, Record, compute_columns
from tests.reservoir.log_driver import LogDriver
from tests.reservoir.small_driver import driver_of, steady_log


def computations(
    patch: pytest.MonkeyPatch, waited: list[tuple[HotColumn, ...]] | None = None
) -> list[tuple[HotColumn, ...]]:
    """The columns that are computed from records from now on; in `waited` those that were not computed ahead."""
    asked: list[tuple[HotColumn, ...]] = []

    def noting(payload: Any, offsets: Any, columns: Any) -> Any:
        asked.append(tuple(columns))
        if waited is not None and threading.current_thread().name != "chunk-prefetch":
            waited.append(tuple(columns))
        return compute_columns(payload, offsets, columns)

    patch.setattr(log_driver, "compute_columns", noting)
    return asked


def test_new_columns_are_decoded_before_they_are_met() -> None:
    driver = driver_of(steady_log(1_000, 10))
    driver.set_hot((AMOUNT,))
    for delta in (2_000, 5_000, 8_000):
        driver.add_edge(delta)
    driver.run_all_until(990, [30])
    before = driver.reservoir.stats().cache.prefetched
    driver.set_hot((AMOUNT, CARD))
    assert driver.reservoir.stats().cache.prefetched - before == 7, "three that edges are in, four ahead"
    # What was asked for before is decoded by now.
    assert not wait(driver.reservoir.prefetch_columns(0, (), driver.hot), 10).not_done
    misses = driver.reservoir.stats().cache.misses
    driver.run_all([10])
    assert driver.reservoir.stats().cache.misses == misses
    driver.reservoir.close()


def test_a_column_that_comes_is_computed_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = computations(monkeypatch)
    driver = driver_of(steady_log(1_000, 10))
    for delta in (2_000, 5_000, 8_000):
        driver.add_edge(delta)
    driver.run_all_until(980, [30])
    # Chunks were sealed without any: all are computed.
    driver.set_hot((AMOUNT, NAME))
    driver.run_all_until(990, [1])
    # What was asked for before is decoded by now.
    assert not wait(driver.reservoir.prefetch_columns(0, (), driver.hot), 10).not_done
    asked.clear()
    driver.set_hot((AMOUNT, NAME, CARD))
    assert not wait(driver.reservoir.prefetch_columns(0, (), driver.hot), 10).not_done
    driver.run_all_until(991, [1])
    # The open region, the chunks that three edges are in, and those ahead of them; what is new ahead is read whole.
    assert 4 <= asked.count((CARD,)) <= 1 + 3 + 2 * 3
    assert len(asked) - asked.count((CARD,)) <= 1
    driver.run_all([10])
    driver.reservoir.close()


def test_what_is_prefetched_is_there_when_an_edge_begins() -> None:
    driver = driver_of(steady_log(1_000, 10))
    driver.set_hot((AMOUNT,))
    driver.run_all_until(990, [30])
    reservoir = driver.reservoir
    assert reservoir.oldest_ms == 0
    asked = reservoir.stats().cache.prefetched
    reservoir.prefetch(0, 4_000)
    assert reservoir.stats().cache.prefetched == asked + 1
    reservoir.prefetch(0, 4_000)
    assert reservoir.stats().cache.prefetched == asked + 1, "once is enough"
    reservoir.prefetch(0, 1 << 62)
    assert reservoir.stats().cache.prefetched == asked + 1, "nothing that is sealed lies there"
    driver.run_all([5])
    reservoir.close()


def test_columns_that_are_prefetched_are_there_when_they_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """No event that follows waits for a chunk: all that edges are in and meet next was decoded before."""
    waited: list[tuple[HotColumn, ...]] = []
    asked = computations(monkeypatch, waited)
    driver = driver_of(steady_log(1_000, 10))
    driver.set_hot((AMOUNT, NAME))
    for delta in (2_000, 5_000, 8_000):
        driver.add_edge(delta)
    driver.run_all_until(980, [30])
    hot = (AMOUNT, NAME, CARD)
    ahead = driver.reservoir.prefetch_columns(0, (CARD,), hot)
    assert not wait(ahead, 10).not_done
    assert asked
    assert set(asked) == {(CARD,)}, "what is there is not computed again"
    waited.clear()
    driver.set_hot(hot)
    held, misses = driver.reservoir.stats().cache_bytes, driver.reservoir.stats().cache.misses
    assert waited == [(CARD,)], "the open rows alone"
    driver.run_all_until(990, [1])
    assert driver.reservoir.stats().cache.misses == misses
    assert driver.reservoir.stats().cache_bytes >= held
    driver.run_all([10])
    driver.reservoir.close()


@pytest.mark.parametrize("seed", seeds(range(8), range(20)))
def test_what_is_prefetched_changes_nothing(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever was prefetched, came or did not come, and however far it was decoded by then."""
    source, known = random.Random(seed), set[HotColumn]()

    def knowing(payload: Any, offsets: Any, columns: Any) -> Any:
        assert known.issuperset(columns)
        time.sleep(0.0005)
        return compute_columns(payload, offsets, columns)

    def set_hot(hot: tuple[HotColumn, ...]) -> None:
        # Never without those that are wanted: another thread may look meanwhile.
        known.update(hot)
        known.intersection_update(hot)
        driver.set_hot(hot)

    monkeypatch.setattr(log_driver, "compute_columns", knowing)
    driver = driver_of(steady_log(600, 10), cache_bytes=source.choice((20_000, 1 << 20)))
    columns = [AMOUNT, NAME, CARD, TWICE]
    set_hot((AMOUNT,))
    for delta in (1_000, 2_500, 4_000):
        driver.add_edge(delta)
    while driver.position < 600:
        driver.run(source.randint(1, 40))
        if source.random() < 0.6:
            coming = tuple(source.sample(columns, source.randint(1, 3)))
            hot = (*driver.hot, *(each for each in coming if each not in driver.hot))
            # Never without one that is hot: a thread may look.
            known.update(hot)
            known.intersection_update(hot)
            ahead = driver.reservoir.prefetch_columns(0, coming, hot)
            if source.random() < 0.5:
                wait(ahead, 10)
            if source.random() < 0.3:
                driver.run(source.randint(1, 40))
            made = source.choice((hot, hot, driver.hot, tuple(source.sample(columns, source.randint(1, 3)))))
            set_hot(made)
    driver.reservoir.close()


def test_what_can_be_computed_of_other_columns_needs_no_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the open region, in frames that edges are in, in chunks on their way to disk and on it."""
    asked = computations(monkeypatch)
    driver = driver_of(steady_log(1_000, 10))
    driver.set_hot((AMOUNT, CARD))
    for delta in (2_000, 5_000, 8_000):
        driver.add_edge(delta)
    driver.run_all_until(980, [30])
    driver.set_hot((AMOUNT, CARD, TWICE))
    driver.add_edge(9_000)
    driver.run_all([10])
    assert not asked
    driver.set_hot((NAME,))
    driver.set_hot((NAME, TWICE))
    assert (TWICE,) in asked, "open rows that do not have what it is computed of"
    driver.reservoir.close()


class HeldBack:
    """The callback, but it knows the hot columns of one list at a time, and in the background goes on when told to."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.known: tuple[HotColumn, ...] = ()
        self.may_go_on = threading.Event()
        patch.setattr(log_driver, "compute_columns", self)

    def driver(self) -> LogDriver:
        """One with three edges, that knows one column by now; held back from here on."""
        driver = driver_of(steady_log(1_000, 10))
        self.known = (AMOUNT,)
        driver.set_hot((AMOUNT,))
        for delta in (2_000, 5_000, 8_000):
            driver.add_edge(delta)
        self.may_go_on.set()
        driver.run_all_until(950, [30])
        self.may_go_on.clear()
        return driver

    def __call__(self, payload: Any, offsets: Any, columns: Any) -> Any:
        if threading.current_thread().name == "chunk-prefetch":
            assert self.may_go_on.wait(10)
        if not set(columns) <= set(self.known):
            raise KeyError(columns)
        return compute_columns(payload, offsets, columns)


def test_what_was_prefetched_before_may_be_unknown_by_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two changes are prefetched before the first is made: what was to be decoded for that one is not, and no event
    comes to harm by it."""
    held = HeldBack(monkeypatch)
    driver = held.driver()

    def prefetch_columns(column: HotColumn, *, crosses: bool) -> list[Ahead]:
        held.known = (*driver.hot, column)
        return driver.reservoir.prefetch_columns(0, (column,) if crosses else (), held.known)

    first = prefetch_columns(CARD, crosses=True)
    second = prefetch_columns(NAME, crosses=False)
    held.may_go_on.set()
    assert not wait((*first, *second), 10).not_done
    held.known = (AMOUNT, CARD)
    driver.set_hot((AMOUNT, CARD))
    driver.run_all([10])
    driver.reservoir.close()


def test_what_is_prefetched_anew_is_decoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many changes that are prefetched before the first is made: the background is busy with the last only."""
    held = HeldBack(monkeypatch)
    driver = held.driver()
    asked: set[Ahead] = set()
    last: list[Ahead] = []
    for number in range(20):
        column = HotColumn(f"upper(name), {number}", ColumnKind.STRING)
        held.known = (AMOUNT, column)
        last = driver.reservoir.prefetch_columns(0, (column,), held.known)
        asked.update(last)
    held.may_go_on.set()
    assert not wait(asked, 10).not_done
    assert len(set(last)) == 5, "three that edges are in, two ahead"
    assert not any(each.cancelled() for each in last)
    # There is one thread: it had begun with one at most when the next change was prefetched.
    assert sum(not each.cancelled() for each in asked.difference(last)) <= 1
    driver.run_all([10])
    driver.reservoir.close()


def test_changes_by_the_hundred_hold_no_more_frames_than_one() -> None:
    """A chunk ahead isn't met for long: what it was before each of them goes."""
    driver = driver_of(steady_log(1_000, 10))
    for delta in (2_000, 5_000, 8_000):
        driver.add_edge(delta)
    driver.set_hot((AMOUNT,))
    driver.run_all_until(950, [30])

    def changed(number: int) -> int:
        """How many frames there are after one more."""
        hot = (*driver.hot, HotColumn(f"upper(name), {number}", ColumnKind.STRING))
        assert not wait(driver.reservoir.prefetch_columns(0, hot, hot), 10).not_done
        driver.set_hot(hot)
        gc.collect()
        return sum(isinstance(each, HeldFrame) for each in gc.get_objects())

    few = max(changed(number) for number in range(3))
    # Every look takes the garbage collector through all that this process holds.
    assert max(changed(number) for number in range(3, 8)) <= few
    driver.run_all([10])
    driver.reservoir.close()


def test_columns_that_come_keep_to_the_limit() -> None:
    log = steady_log(950, 10)
    for card in range(60):
        log.add(Record(log.clock, True, 1, None, card))
    driver = driver_of(log, cache_bytes=12_000)
    for delta in range(500, 8_000, 500):
        driver.add_edge(delta)
    driver.set_hot((AMOUNT,))
    driver.run_all_until(950, [30])
    for number in range(12):
        # The clock stands still: no frame is in use.
        driver.run(5)
        hot = (*driver.hot, HotColumn(f"upper(name), {number}", ColumnKind.STRING))
        assert not wait(driver.reservoir.prefetch_columns(0, hot, hot), 10).not_done
        driver.set_hot(hot)
        assert 0 < driver.reservoir.stats().cache_bytes <= 12_000
    driver.reservoir.close()


@pytest.mark.parametrize("seed", range(6))
def test_frames_stay_as_columns_come(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many come one by one, some go and come again: descriptors that were kept show what they should."""
    source = random.Random(seed)
    monkeypatch.setattr(held_frame_module, "_ROOM_SHARE", source.choice((0, 0.1, 0.25, 5)))
    driver = driver_of(steady_log(600, 10))
    for delta in (1_000, 2_500, 4_000):
        driver.add_edge(delta)
    hot: list[HotColumn] = []
    further = [
        AMOUNT,
        NAME,
        CARD,
        TWICE,
        *(HotColumn(f"upper(name), {k}", ColumnKind.STRING) for k in range(40)),
    ]
    while driver.position < 600:
        driver.run(source.randint(1, 20))
        if source.random() < 0.8 and (left := [each for each in further if each not in hot]):
            hot.append(source.choice(left))
        elif hot and source.random() < 0.5:
            hot.remove(source.choice(hot))
        driver.set_hot(tuple(hot))
    driver.reservoir.close()


def test_open_rows_get_strings_where_the_rings_have_to_grow_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """They have other slots then."""
    log = EventLog(2_000)
    for k in range(900):
        log.add(Record(k * 10, True, k, f"name {k}", k % 5))
    driver = driver_of(log)
    driver.set_hot((AMOUNT,))
    driver.run_all_until(600, [7])
    region = driver.reservoir._open
    reserve = region._reserve

    def growing(size_bytes: int) -> int:
        region._words[OPEN_NEED_ROWS], region._words[OPEN_NEED_BYTES] = 4 * region.rows, 0
        region._grow()
        return reserve(size_bytes)

    slots = region.all_rows().slots
    with monkeypatch.context() as patch:
        patch.setattr(region, "_reserve", growing)
        driver.set_hot((AMOUNT, NAME))
    assert (region.all_rows().slots != slots).any()
    driver.add_edge(1_500)
    # Each row that crosses an edge is compared with the log.
    driver.run_all([10])
    driver.reservoir.close()
