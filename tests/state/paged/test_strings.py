"""String items: bytes behind a hash, counted; gone when nobody holds them; ordered by their bytes."""

import numpy as np
import pytest

from railgun.state.paged.errors import BrokenPageError
from railgun.state.paged.layout import BROKEN
from railgun.state.paged.pool import PagePool
from railgun.state.paged.strings import (
    STRING_BYTES_MAX,
    str_address,
    str_length,
    str_ready,
    str_release,
    str_retain,
)
from reservoir.native.jit import address, array_at
from tests.state.paged.map_driver import Driver, checkpoint
from tests.state.paged.memory_items import MemoryItems

MIB = 1 << 20


def make_ready(driver: Driver, number: int, text: bytes) -> tuple[int, int]:
    """The item of a string, ready; `number` stands for its hash."""
    heap = np.frombuffer(text + b"\0", np.uint8)
    key = (number * 0x9E3779B9, number)
    assert driver.call(str_ready, *key, address(heap), len(text)) == 0
    return key


def text_of(driver: Driver, key: tuple[int, int]) -> bytes:
    length = driver.call(str_length, *key)
    return array_at(driver.call(str_address, *key), length, np.uint8).tobytes()


@pytest.fixture
def store() -> MemoryItems:
    return MemoryItems()


@pytest.fixture
def driver(store: MemoryItems) -> Driver:
    return Driver(PagePool(3 * MIB, store))


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 24, 25, 1000, STRING_BYTES_MAX])
def test_a_held_string_keeps_its_bytes(driver: Driver, store: MemoryItems, size: int) -> None:
    text = bytes(i * 31 % 251 for i in range(size))
    key = make_ready(driver, 5, text)
    assert driver.call(str_retain, *key) == 1
    checkpoint(driver.pool, store, 1)
    again = Driver(PagePool(3 * MIB, store))
    again.pool.set_epoch(2)
    assert text_of(again, key) == text
    assert again.call(str_retain, *key) == 2
    assert make_ready(again, 5, text) == key


def test_a_string_that_nobody_holds_is_deleted(driver: Driver, store: MemoryItems) -> None:
    key = make_ready(driver, 5, b"abc")
    driver.call(str_retain, *key)
    driver.call(str_retain, *key)
    checkpoint(driver.pool, store, 1)
    assert driver.call(str_release, *key) == 1
    checkpoint(driver.pool, store, 2)
    assert len(store.bodies(b"s")) == 1
    assert driver.call(str_release, *key) == 0
    checkpoint(driver.pool, store, 3)
    assert store.bodies(b"s") == {}


def test_a_string_never_held_is_never_stored(driver: Driver, store: MemoryItems) -> None:
    make_ready(driver, 5, b"abc")
    checkpoint(driver.pool, store, 1)
    assert store.writes == 0


def test_a_string_may_come_back_in_the_epoch_that_deleted_it(driver: Driver, store: MemoryItems) -> None:
    key = make_ready(driver, 5, b"abc")
    driver.call(str_retain, *key)
    checkpoint(driver.pool, store, 1)
    driver.call(str_release, *key)
    for number in range(100, 40_000):  # evicts it: a tombstone is stored
        make_ready(driver, number, b"x" * 60)
    assert store.bodies(b"s") == {}
    make_ready(driver, 5, b"abc")
    driver.call(str_retain, *key)
    store.crash()
    assert len(store.bodies(b"s")) == 1


def test_holding_what_is_not_there_is_broken(driver: Driver) -> None:
    key = (3, 4)
    for kernel in (str_retain, str_release, str_address, str_length):
        with pytest.raises(BrokenPageError):
            driver.call(kernel, *key)
    key = make_ready(driver, 9, b"abc")
    with pytest.raises(BrokenPageError):
        driver.call(str_release, *key)


def test_a_string_too_long_is_refused(driver: Driver) -> None:
    heap = np.zeros(STRING_BYTES_MAX + 1, np.uint8)
    assert str_ready(driver.pool.context, 1, 1, address(heap), STRING_BYTES_MAX + 1) == BROKEN


def test_another_string_under_the_same_hash_is_broken(driver: Driver) -> None:
    make_ready(driver, 7, b"abc")
    with pytest.raises(BrokenPageError):
        make_ready(driver, 7, b"abcd")
