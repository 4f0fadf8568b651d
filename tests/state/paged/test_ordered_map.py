"""Ordered maps on pages that all fit: each kernel against what it says, on trees of few and many levels."""

import numpy as np
import pytest

from railgun.state.paged.errors import BrokenPageError
from railgun.state.paged.layout import BROKEN
from railgun.state.paged.ordered_map import (
    om_at_or_above,
    om_below,
    om_clear,
    om_count,
    om_delete,
    om_first,
    om_get,
    om_insert,
    om_last,
)
from railgun.state.paged.pool import PagePool
from tests.state.paged.map_driver import Driver
from tests.state.paged.memory_items import MemoryItems


@pytest.fixture(params=[16, 32, 256])
def driver(request: pytest.FixtureRequest) -> Driver:
    pool = PagePool(4 << 20, MemoryItems(), page_words=request.param, slab_bytes=64 * 1024)
    return Driver(pool)


def insert(driver: Driver, cell: int, value_words: int, k0: int, k1: int, v0: int, v1: int = 0) -> int:
    words = (np.uint64(word) for word in (k0, k1, v0, v1))
    return driver.call(om_insert, driver.root(cell), value_words, *words)


def delete(driver: Driver, cell: int, k0: int, k1: int) -> int:
    return driver.call(om_delete, driver.root(cell), np.uint64(k0), np.uint64(k1))


def test_an_empty_map_finds_nothing(driver: Driver) -> None:
    for kernel in (om_first, om_last):
        assert driver.find(kernel, 0) is None
    for kernel in (om_get, om_below, om_at_or_above):
        assert driver.find(kernel, 0, 5, 5) is None
    assert delete(driver, 0, 5, 5) == 0
    assert driver.call(om_clear, driver.root(0)) == 0
    assert driver.entries(0, 1) == []


def test_insert_says_whether_the_key_is_new(driver: Driver) -> None:
    assert insert(driver, 0, 2, 1, 2, 3, 4) == 1
    assert insert(driver, 0, 2, 1, 2, 5, 6) == 0
    assert driver.find(om_get, 0, 1, 2) == (1, 2, 5, 6)
    assert driver.cells[0, 1] == 1


def test_keys_are_ordered_as_unsigned_pairs(driver: Driver) -> None:
    keys = [(0, 0), (0, 1), (0, 2**64 - 1), (1, 0), (2**63 - 1, 5), (2**63, 4), (2**64 - 1, 0)]
    for k0, k1 in reversed(keys):
        insert(driver, 0, 1, k0, k1, 7)
    assert [entry[:2] for entry in driver.entries(0, 1)] == keys
    assert driver.find(om_below, 0, 2**63, 4) == (2**63 - 1, 5, 7, 0)
    assert driver.find(om_at_or_above, 0, 2**63, 5) == (2**64 - 1, 0, 7, 0)


@pytest.mark.parametrize("value_words", [1, 2])
def test_neighbours_across_page_borders(driver: Driver, value_words: int) -> None:
    n = 300
    for i in range(n):
        insert(driver, 0, value_words, 10 * i, 0, i, i + 1)
    v1 = (lambda i: i + 1) if value_words == 2 else (lambda i: 0)
    for i in range(n):
        here = (10 * i, 0, i, v1(i))
        before = (10 * i - 10, 0, i - 1, v1(i - 1)) if i else None
        assert driver.find(om_get, 0, 10 * i, 0) == here
        assert driver.find(om_below, 0, 10 * i, 0) == before
        assert driver.find(om_at_or_above, 0, 10 * i, 0) == here
        assert driver.find(om_below, 0, 10 * i + 3, 0) == here
        assert driver.find(om_at_or_above, 0, 10 * i - 3 if i else 0, 0) == here
        assert driver.find(om_get, 0, 10 * i + 3, 0) is None
    assert driver.find(om_first, 0) == (0, 0, 0, v1(0))
    assert driver.find(om_last, 0) == (10 * n - 10, 0, n - 1, v1(n - 1))
    assert driver.find(om_at_or_above, 0, 10 * n, 0) is None


def test_a_map_emptied_from_any_side_holds_no_page(driver: Driver) -> None:
    orders = [lambda n: range(n), lambda n: reversed(range(n)), lambda n: ((7 * i) % n for i in range(n))]
    for cell, order in enumerate(orders):
        for i in range(500):
            insert(driver, cell, 1, i, i, i)
        for i in order(500):
            assert delete(driver, cell, i, i) == 1
            assert delete(driver, cell, i, i) == 0
        assert driver.cells[cell].tolist() == [0, 0]
    assert driver.pool.stats().pages == 0


def test_ascending_keys_leave_full_pages_behind() -> None:
    driver = Driver(PagePool(4 << 20, MemoryItems()))
    n = 84 * 50
    for i in range(n):
        insert(driver, 0, 1, i, 0, i)
    # 50 full leaves of 84 entries and one root, none half empty.
    assert driver.pool.stats().pages == 51


def test_a_thinned_out_tree_is_joined_together() -> None:
    driver = Driver(PagePool(4 << 20, MemoryItems()))
    n = 84 * 100
    for i in range(n):
        insert(driver, 0, 1, i, 0, i)
    full = driver.pool.stats().pages
    for i in range(n):
        if i % 20:
            delete(driver, 0, i, 0)
    assert [entry[0] for entry in driver.entries(0, 1)] == list(range(0, n, 20))
    assert driver.pool.stats().pages < full / 4


def test_a_count_that_comes_to_nothing_leaves_the_map(driver: Driver) -> None:
    counts = [driver.call(om_count, driver.root(0), np.uint64(9), np.uint64(9), d) for d in (1, 2, -1, -2)]
    assert counts == [1, 3, 2, 0]
    assert driver.cells[0].tolist() == [0, 0]
    assert driver.call(om_count, driver.root(0), np.uint64(9), np.uint64(9), 0) == 0


def test_a_count_below_zero_is_broken(driver: Driver) -> None:
    for present in (0, 1):
        if present:
            driver.call(om_count, driver.root(0), np.uint64(3), np.uint64(0), 1)
        status = int(om_count(driver.pool.context, driver.root(0), np.uint64(3), np.uint64(0), -2))
        assert status == BROKEN
        with pytest.raises(BrokenPageError):
            driver.pool.handle(status)
        assert driver.cells[0, 1] == present


def test_counts_of_many_keys(driver: Driver) -> None:
    for delta in (2, 1, -2):
        for i in range(400):
            driver.call(om_count, driver.root(0), np.uint64(i * 7919 % 400), np.uint64(1), delta)
    assert driver.entries(0, 1) == [(i, 1, 1) for i in range(400)]
    for i in range(400):
        assert driver.call(om_count, driver.root(0), np.uint64(i), np.uint64(1), -1) == 0
    assert driver.pool.stats().pages == 0


def test_a_cleared_map_is_empty_at_once_and_its_pages_go_in_slices(driver: Driver) -> None:
    for i in range(700):
        insert(driver, 3, 2, i * 13 % 700, 0, i, i)
    pages = driver.pool.stats().pages
    assert driver.call(om_clear, driver.root(3)) == 0
    assert driver.cells[3].tolist() == [0, 0]
    assert driver.entries(3, 2) == []
    insert(driver, 3, 1, 5, 5, 5)
    rounds = 0
    while driver.pool.free_deferred(3):
        rounds += 1
        assert rounds < 1000
    assert rounds >= pages // 4 - 1
    assert driver.pool.stats().pages == 1
    assert driver.entries(3, 1) == [(5, 5, 5)]


def test_python_integers_do_as_words(driver: Driver) -> None:
    assert driver.call(om_insert, driver.root(0), 2, 5, 6, 7, 8) == 1
    assert driver.find(om_first, 0) == (5, 6, 7, 8)
    assert driver.call(om_delete, driver.root(0), 5, 6) == 1
