"""Pages on the real store: reopening after a crash gives the last commit, whatever was written since."""

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from railgun.state.checkpoint import Checkpointer
from railgun.state.keys import after
from railgun.state.paged.ordered_map import om_clear, om_delete, om_insert
from railgun.state.resident import Image
from railgun.state.store import Store
from reservoir.thread_executor import ThreadExecutor
from tests.state.paged.map_driver import Driver
from tests.state.paged.paged_model import Model, small_pool
from tests.state.paged.test_pages_random import STEPS


class StoreItems:
    """The real store with what `Model` needs besides: a crash is to close it in the middle and recover."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = Store(folder)
        self.store.recover()

    @property
    def committed(self) -> int:
        return self.store.committed_epoch

    def get(self, wanted: list[bytes]) -> list[tuple[int, bytes | None]]:
        return self.store.get(wanted)

    def write(self, images: Sequence[Image]) -> None:
        self.store.write(images)

    def commit(self, epoch: int, meta: bytes) -> None:
        self.store.commit(epoch, meta)
        self.store.settle(100)

    def crash(self) -> None:
        self.store.close()
        self.store = Store(self.folder)
        self.store.recover()

    def bodies(self, letter: bytes) -> dict[int, bytes]:
        found = self.store.scan(letter, after(letter), 1 << 30)
        return {int.from_bytes(key[9:], "big"): body for key, _, body in found if body is not None}


@pytest.fixture
def items(tmp_path: Path) -> Iterator[StoreItems]:
    items = StoreItems(tmp_path / "state")
    yield items
    items.store.close()


@pytest.mark.parametrize("seed", range(3))
def test_random_operations_on_the_real_store(items: StoreItems, seed: int) -> None:
    rng = random.Random(seed)
    model = Model(items)
    for step in rng.choices(list(STEPS), list(STEPS.values()), k=150):
        step(model, rng)
    model.crash()
    model.check_all()


def test_a_checkpointer_takes_the_pool_as_a_resident(items: StoreItems) -> None:
    """What changes between `begin` and the commit belongs to the next epoch; a dropped map is freed later."""
    driver = Driver(small_pool(items))
    checkpointer = Checkpointer(items.store, [driver.pool], ThreadExecutor())
    for key in range(400):
        driver.call(om_insert, driver.root(0), 2, key, 0, 1, 1)
        driver.call(om_insert, driver.root(1), 1, key, 0, 1, 0)
    driver.call(om_clear, driver.root(1))
    checkpointer.begin(driver.pool.meta() + driver.cells.tobytes())
    key = 0
    while not checkpointer.step(2000):
        driver.call(om_delete, driver.root(0), key, 0)
        driver.call(om_insert, driver.root(0), 2, key + 1000, 0, 2, 2)
        driver.pool.free_deferred(1)
        key += 1
    assert key > 5
    checkpointer.close()

    items.crash()
    epoch, meta = items.store.recover() or (0, b"")
    assert epoch == 1
    again = Driver(small_pool(items))
    again.pool.restore(meta[:24])
    again.cells[:] = np.frombuffer(meta[24:], np.int64).reshape(again.cells.shape)
    second = Checkpointer(items.store, [again.pool], ThreadExecutor())
    assert again.entries(0, 2) == [(key, 0, 1, 1) for key in range(400)]
    assert again.entries(1, 1) == []
    again.call(om_clear, again.root(0))
    while again.pool.free_deferred(50):
        pass
    for _ in range(2):
        second.begin(again.pool.meta())
        second.finish()
    second.close()
    assert items.bodies(b"p") == {}
