"""The bytes of stored pages, as railgun/state/paged/FORMAT.md draws them: these must be read for ever."""

import numpy as np

from railgun.state.paged.access import page_address, page_new, page_touch
from railgun.state.paged.ordered_map import om_insert
from railgun.state.paged.pool import PagePool
from railgun.state.paged.strings import str_address, str_length, str_ready, str_retain
from reservoir.native.jit import address, array_at
from tests.state.paged.map_driver import Driver, checkpoint
from tests.state.paged.memory_items import MemoryItems

LEAF = (
    "9000020008000000"
    "0100000000000000"
    + "02" * 8
    + "0300000000000000"
    + "0400000000000000"
    + ("0500000000000000" + "0000000000000000" + "0700000000000000" + "0800000000000000")
)
INTERNAL_HEAD = "50010200" + "06000000"
TEXT = "20000300" + "02000000" + "0200000000000000" + "6162630000000000"
RAW = "30000200" + "02000000" + "0b00000000000000" + "0c00000000000000"


def pool(store: MemoryItems) -> Driver:
    return Driver(PagePool(1 << 20, store, page_words=16, slab_bytes=4096))


def test_pages_are_written_as_drawn() -> None:
    store = MemoryItems()
    driver = pool(store)
    driver.call(om_insert, driver.root(0), 2, 5, 0, 7, 8)
    driver.call(om_insert, driver.root(0), 2, 1, 0x0202020202020202, 3, 4)
    array_at(driver.call(page_touch, driver.call(page_new, 2)), 2, np.int64)[:] = (11, 12)
    text = np.frombuffer(b"abc", np.uint8)
    driver.call(str_ready, 1, 2, address(text), 3)
    for _ in range(2):
        driver.call(str_retain, 1, 2)
    for key in range(5):  # one more than fits a leaf of this size
        driver.call(om_insert, driver.root(1), 1, key, 0, 0, 0)
    checkpoint(driver.pool, store, 1)
    bodies = {key.hex(): (body or b"").hex() for key, (_, body) in store.values.items()}
    assert bodies["70" + "00" * 8 + "0000000000000001"] == LEAF
    assert bodies["70" + "00" * 8 + "0000000000000002"] == RAW
    assert bodies["73" + "8000000000000001" + "0000000000000002"] == TEXT
    root = bodies["70" + "00" * 8 + f"{int(driver.cells[1, 0]):016x}"]
    assert root.startswith(INTERNAL_HEAD)


def test_pages_are_read_as_drawn() -> None:
    store = MemoryItems()
    store.values = {
        b"p" + bytes(15) + b"\x01": (1, bytes.fromhex(LEAF)),
        b"p" + bytes(15) + b"\x02": (1, bytes.fromhex(RAW)),
        bytes.fromhex("73" + "8000000000000001" + "0000000000000002"): (1, bytes.fromhex(TEXT)),
    }
    store.committed = 1
    driver = pool(store)
    driver.pool.set_epoch(2)
    driver.cells[0] = (1, 2)
    assert driver.entries(0, 2) == [(1, 0x0202020202020202, 3, 4), (5, 0, 7, 8)]
    assert array_at(driver.call(page_address, 2), 2, np.int64).tolist() == [11, 12]
    assert driver.call(str_length, 1, 2) == 3
    assert array_at(driver.call(str_address, 1, 2), 1, np.int64)[0] == int.from_bytes(b"abc", "little")
    assert driver.call(str_retain, 1, 2) == 3
