"""A million entries: first in, first out within a small pool; a counted multiset in random order."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from railgun.state.paged.pool import PagePool
from railgun.state.store import Store
from reservoir.native.jit import address
from tests.state.paged import map_loops
from tests.state.paged.map_driver import Driver, checkpoint
from tests.state.paged.memory_items import MemoryItems

MIB = 1 << 20
MILLION = 1_000_000


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path / "state")
    store.recover()
    yield store
    store.close()


def test_a_million_first_in_first_out_stays_within_the_limit(store: Store) -> None:
    """36 MB of entries through 4 MiB, with a checkpoint in the middle; not a page is left in the end."""
    pool = PagePool(4 * MIB, store)
    driver = Driver(pool)
    out = address(driver.out)
    map_loops.run(map_loops.append, pool, driver.root(0), 0, MILLION, out)
    assert driver.cells[0, 1] == MILLION
    assert pool.stats().size_bytes <= 4 * MIB
    checkpoint(pool, store, 1)
    map_loops.run(map_loops.take_first, pool, driver.root(0), 0, MILLION, out)
    assert pool.stats().size_bytes <= 4 * MIB
    assert driver.cells[0].tolist() == [0, 0]
    assert pool.stats().pages == 0
    checkpoint(pool, store, 2)
    checkpoint(pool, store, 3)
    store.settle(1 << 30)
    assert store.scan(b"p", b"q", 10) == []


def test_a_queue_that_moves_on_uses_few_pages() -> None:
    """Always 1,000 entries, a million in all: full pages in the middle, none left half empty."""
    pool = PagePool(4 * MIB, MemoryItems())
    driver = Driver(pool)
    out = address(driver.out)
    most = 0
    for at in range(0, MILLION, 1000):
        map_loops.run(map_loops.append, pool, driver.root(0), at, at + 1000, out)
        if at:
            map_loops.run(map_loops.take_first, pool, driver.root(0), at - 1000, at, out)
        most = max(most, pool.stats().pages)
    assert most <= 2000 // 63 + 5
    assert pool.stats().evictions == 0


def multiset(pool: PagePool, n: int, distinct: int) -> None:
    """Count n random keys up, compare with NumPy, then down in another order, to nothing."""
    rng = np.random.default_rng(7)
    keys = rng.integers(0, 2**64, distinct, np.uint64)[rng.integers(0, distinct, n)]
    driver = Driver(pool)
    map_loops.run(map_loops.count_up, pool, driver.root(0), 0, n, address(keys))
    expected, counts = np.unique(keys, return_counts=True)
    found = np.concatenate(list(pool.walk(driver.root(0), 1)))
    assert (found[:, 0] == expected).all()
    assert (found[:, 2] == counts.astype(np.uint64)).all()
    assert driver.cells[0, 1] == len(expected)
    again = rng.permutation(keys)
    map_loops.run(map_loops.count_down, pool, driver.root(0), 0, n, address(again))
    assert driver.cells[0].tolist() == [0, 0]
    assert pool.stats().pages == 0


def test_a_multiset_of_a_million_in_memory() -> None:
    multiset(PagePool(64 * MIB, MemoryItems()), MILLION, 600_000)


def test_a_multiset_far_larger_than_the_pool(store: Store) -> None:
    pool = PagePool(3 * MIB, store, slab_bytes=64 * 1024)
    multiset(pool, 200_000, 1_000_000)
    assert pool.stats().faults > 100_000


@pytest.mark.torture
def test_a_multiset_of_a_million_far_larger_than_the_pool(store: Store) -> None:
    multiset(PagePool(8 * MIB, store), MILLION, 900_000)
