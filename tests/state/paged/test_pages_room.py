"""The pool's memory: bounded whatever is put in, moved between size classes, refused when far too small."""

import numpy as np
import pytest

from railgun.state.paged.access import page_address, page_free, page_new, page_touch
from railgun.state.paged.errors import PageMissingError, PoolTooSmallError
from railgun.state.paged.layout import LARGEST_BLOCK_WORDS
from railgun.state.paged.ordered_map import om_insert
from railgun.state.paged.pool import PagePool
from reservoir.native.jit import array_at
from tests.state.paged.map_driver import CELLS, Driver, checkpoint
from tests.state.paged.memory_items import MemoryItems
from tests.state.paged.paged_model import small_pool

MIB = 1 << 20


def test_raw_pages_begin_zeroed_and_keep_what_is_written_through_eviction() -> None:
    driver = Driver(small_pool(MemoryItems()))
    numbers = []
    for i in range(300):
        words = (34, 68)[i % 2]
        number = driver.call(page_new, words)
        where = driver.call(page_touch, number)
        body = array_at(where, words, np.int64)
        assert not body.any()
        body[:] = i + 1
        numbers.append((number, words))
    assert driver.pool.stats().evictions > 0
    for i, (number, words) in enumerate(numbers):
        assert (array_at(driver.call(page_address, number), words, np.int64) == i + 1).all()
        assert driver.call(page_free, number) == 0
    assert driver.pool.stats().pages == 0


def test_ids_are_never_given_twice() -> None:
    driver = Driver(small_pool(MemoryItems()))
    seen = set()
    for _ in range(50):
        number = driver.call(page_new, 4)
        assert number not in seen
        seen.add(number)
        driver.call(page_free, number)


@pytest.mark.parametrize("limit_bytes", [3 * MIB, 5 * MIB])
def test_memory_stays_within_the_limit_whatever_sizes_come(limit_bytes: int) -> None:
    """Waves of one size each: what the wave before used must become room for this one."""
    store = MemoryItems()
    driver = Driver(PagePool(limit_bytes, store))
    for words in (4, 12, 60, 252, 1000, 4000, LARGEST_BLOCK_WORDS - 4, 28, 4):
        for _ in range(2 * limit_bytes // (8 * (words + 4))):
            driver.call(page_new, words)
        assert driver.pool.stats().size_bytes <= limit_bytes
    assert driver.pool.stats().pages * 64 <= limit_bytes


def test_memory_follows_need() -> None:
    driver = Driver(PagePool(256 * MIB, MemoryItems()))
    for _ in range(1000):
        driver.call(page_new, 4)
    assert driver.pool.stats().size_bytes < 40 * MIB


def test_what_is_used_again_and_again_stays() -> None:
    """A hundred hot trees among ten thousand cold ones: the hot ones hardly ever have to be loaded."""
    driver = Driver(PagePool(3 * MIB, MemoryItems()))
    cells = np.zeros((20_000, 2), np.int64)
    driver.cells = cells
    for i in range(100):
        driver.call(om_insert, driver.root(i), 1, i, 0, 0, 0)
    hot_faults = 0
    for i in range(60_000):
        cold = 100 + i * 7919 % 19_900
        driver.call(om_insert, driver.root(cold), 1, cold, i, 0, 0)
        before = driver.pool.stats().faults
        driver.call(om_insert, driver.root(i % 100), 1, i % 100, 0, i, 0)
        hot_faults += driver.pool.stats().faults - before
    assert driver.pool.stats().evictions > 10
    assert hot_faults < 600


def test_a_pool_too_small_says_so_at_once() -> None:
    with pytest.raises(PoolTooSmallError, match="Raise the limit"):
        PagePool(100_000, MemoryItems())


def test_a_page_too_large_for_the_slabs_says_so() -> None:
    driver = Driver(small_pool(MemoryItems()))
    with pytest.raises(PoolTooSmallError):
        driver.call(page_new, 2000)


def test_a_page_that_is_not_stored_stops() -> None:
    driver = Driver(small_pool(MemoryItems()))
    with pytest.raises(PageMissingError, match="not stored"):
        driver.call(page_address, 77)


@pytest.mark.parametrize("damage", ["cut", "grown", "kind", "count", "empty"])
def test_a_stored_body_that_is_no_page_stops(damage: str) -> None:
    store = MemoryItems()
    driver = Driver(small_pool(store))
    number = driver.call(page_new, 3)
    checkpoint(driver.pool, store, 1)
    (key,) = store.values
    epoch, body = store.values[key]
    assert body is not None
    changed = {
        "cut": body[:-8],
        "grown": body + bytes(8),
        "kind": bytes([body[0] & 0x0F]) + body[1:],
        "count": body[:2] + b"\x07\x00" + body[4:],
        "empty": b"",
    }
    store.values[key] = (epoch, changed[damage])
    again = Driver(small_pool(store))
    with pytest.raises(PageMissingError):
        again.call(page_address, number)


def test_prefetch_loads_in_one_look_up_and_only_what_is_missing() -> None:
    store = MemoryItems()
    driver = Driver(PagePool(4 * MIB, store))
    numbers = [driver.call(page_new, 5) for _ in range(100)]
    meta = checkpoint(driver.pool, store, 1)
    again = Driver(PagePool(4 * MIB, store))
    again.pool.restore(meta)
    again.call(page_address, numbers[3])
    ids = np.array([(0, number) for number in numbers + numbers], np.uint64)
    assert again.pool.prefetch(ids) == 99
    assert again.pool.prefetch(ids) == 0
    faults = again.pool.stats().faults
    for number in numbers:
        again.call(page_address, number)
    assert again.pool.stats().faults == faults
    assert len(again.cells) == CELLS
