"""Epochs and copy on write: each image is that of its epoch, however pages change while it is on its way."""

import numpy as np
import pytest

from railgun.state.errors import EpochOrderError
from railgun.state.paged.access import page_free, page_new, page_touch
from railgun.state.paged.ordered_map import om_clear, om_delete, om_insert
from railgun.state.paged.pool import PagePool
from reservoir.native.jit import array_at
from tests.state.paged.map_driver import Driver, checkpoint
from tests.state.paged.memory_items import MemoryItems

PAGE_WORDS = 16


@pytest.fixture
def store() -> MemoryItems:
    return MemoryItems()


@pytest.fixture
def driver(store: MemoryItems) -> Driver:
    return Driver(PagePool(1 << 20, store, page_words=PAGE_WORDS, slab_bytes=4096))


def fill(driver: Driver, cell: int, keys: range, value: int) -> None:
    for key in keys:
        driver.call(om_insert, driver.root(cell), 1, key, 0, value, 0)


def values(driver: Driver, cell: int) -> set[int]:
    return {entry[2] for entry in driver.entries(cell, 1)}


def reopened(store: MemoryItems, cells: np.ndarray) -> Driver:
    store.crash()
    driver = Driver(PagePool(1 << 20, store, page_words=PAGE_WORDS, slab_bytes=4096))
    driver.cells[:] = cells
    assert store.meta is not None
    driver.pool.restore(store.meta)
    driver.pool.set_epoch(store.committed + 1)
    return driver


def test_what_changes_after_begin_is_not_in_the_checkpoint(driver: Driver, store: MemoryItems) -> None:
    fill(driver, 0, range(100), 1)
    meta, cells = driver.pool.meta(), driver.cells.copy()
    driver.pool.set_epoch(2)
    fill(driver, 0, range(0, 100, 3), 2)  # half of the pages: copied when they change
    store.write(driver.pool.pending(1, 200))
    for key in range(50):
        driver.call(om_delete, driver.root(0), key, 0)
    fill(driver, 0, range(200, 260), 3)
    while not driver.pool.exhausted():
        store.write(driver.pool.pending(1, 200))
    store.commit(1, meta)
    recovered = reopened(store, cells)
    assert [entry[0] for entry in recovered.entries(0, 1)] == list(range(100))
    assert values(recovered, 0) == {1}


def test_images_of_the_next_epoch_do_not_commit_with_the_first(driver: Driver, store: MemoryItems) -> None:
    fill(driver, 0, range(60), 1)
    checkpoint(driver.pool, store, 1)
    cells = driver.cells.copy()
    fill(driver, 0, range(90), 2)
    meta = driver.pool.meta()
    driver.pool.set_epoch(3)
    while not driver.pool.exhausted():
        store.write(driver.pool.pending(2, 1000))
    assert meta  # epoch 2 is written whole, and never committed
    recovered = reopened(store, cells)
    assert recovered.entries(0, 1) == [(key, 0, 1) for key in range(60)]


def test_a_page_freed_while_its_image_is_on_the_way_is_in_the_checkpoint(
    driver: Driver, store: MemoryItems
) -> None:
    number = driver.call(page_new, 10)
    array_at(driver.call(page_touch, number), 10, np.int64)[:] = 5
    meta, cells = driver.pool.meta(), driver.cells.copy()
    driver.pool.set_epoch(2)
    driver.call(page_free, number)
    while not driver.pool.exhausted():
        store.write(driver.pool.pending(1, 1))
    store.commit(1, meta)
    assert store.bodies(b"p") == {}  # deleted in epoch 2 by now
    recovered = reopened(store, cells)
    assert (array_at(recovered.call(page_touch, number), 10, np.int64) == 5).all()


def test_a_page_made_and_freed_within_an_epoch_never_reaches_the_store(
    driver: Driver, store: MemoryItems
) -> None:
    fill(driver, 0, range(100), 1)
    driver.call(om_clear, driver.root(0))
    while driver.pool.free_deferred(50):
        pass
    checkpoint(driver.pool, store, 1)
    assert store.writes == 0


def test_a_dropped_tree_is_freed_after_a_crash_in_the_middle(driver: Driver, store: MemoryItems) -> None:
    fill(driver, 0, range(300), 1)
    checkpoint(driver.pool, store, 1)
    assert len(store.bodies(b"p")) > 80
    driver.call(om_clear, driver.root(0))
    driver.pool.free_deferred(10)
    checkpoint(driver.pool, store, 2)
    driver.pool.free_deferred(20)
    recovered = reopened(store, driver.cells)
    assert recovered.pool.stats().graves > 0
    while recovered.pool.free_deferred(7):
        pass
    checkpoint(recovered.pool, store, 3)
    checkpoint(recovered.pool, store, 4)
    assert store.values == {}


def test_pending_is_bounded_and_comes_to_an_end(driver: Driver, store: MemoryItems) -> None:
    fill(driver, 0, range(1000), 1)
    driver.pool.set_epoch(2)
    rounds, images = 0, []
    while not driver.pool.exhausted():
        part = driver.pool.pending(1, 500)
        assert sum(len(body or b"") for _, body, _, _ in part) <= 500 + 2 * 8 * PAGE_WORDS
        images += part
        rounds += 1
    assert rounds > 20
    assert len(images) == driver.pool.stats().pages


def test_a_clean_pool_has_nothing_pending(driver: Driver, store: MemoryItems) -> None:
    fill(driver, 0, range(100), 1)
    checkpoint(driver.pool, store, 1)
    writes = store.writes
    values(driver, 0)
    checkpoint(driver.pool, store, 2)
    assert store.writes == writes


def test_an_epoch_cannot_close_over_an_unwritten_one(driver: Driver) -> None:
    fill(driver, 0, range(10), 1)
    driver.pool.set_epoch(2)
    with pytest.raises(EpochOrderError):
        driver.pool.set_epoch(3)
    with pytest.raises(EpochOrderError):
        driver.pool.pending(2, 100)
