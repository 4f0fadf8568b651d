"""A pool of the smallest size and what must be in it: maps, raw pages and strings as plain Python objects.

Every operation is done on both and compared; a crash takes both back to the last commit.
"""

import copy
from bisect import bisect_left
from typing import Any

import numpy as np

from railgun.state.paged.access import page_address, page_free, page_new, page_touch
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
from railgun.state.paged.strings import str_address, str_length, str_ready, str_release, str_retain
from reservoir.native.jit import address, array_at
from tests.state.paged.map_driver import Driver
from tests.state.paged.memory_items import MemoryItems
from tests.state.paged.stored_tree import StoredTree

PAGE_WORDS = 16
MAPS = 6
COUNTED = 2  # the first maps are counted multisets, of 1 value word


def value_words(cell: int) -> int:
    """Even maps have one value word, odd ones two."""
    return 1 if cell < COUNTED or cell % 2 == 0 else 2


def small_pool(store: Any) -> PagePool:
    """The smallest pool of the smallest pages: every few operations a page has to go."""
    return PagePool(60_000, store, page_words=PAGE_WORDS, slab_bytes=2048, protected_ops=2)


class Content:
    """What the pool must hold, apart from where."""

    def __init__(self) -> None:
        self.maps: list[dict[tuple[int, int], tuple[int, ...]]] = [{} for _ in range(MAPS)]
        self.raw: dict[int, list[int]] = {}
        self.strings: dict[int, int] = {}


class Model:
    """Pool, store and model content, and the operations on all of them."""

    def __init__(self, store: Any = None) -> None:
        self.store = MemoryItems() if store is None else store
        self.epoch = 1
        self.closing: tuple[bytes, Content, np.ndarray[Any, Any]] | None = None
        self.committed = (b"", Content(), np.zeros((64, 2), np.int64))
        self.content = Content()
        self.driver = Driver(small_pool(self.store))
        self.texts = [bytes([97 + i % 26]) * (i * i) for i in range(12)]
        self.heap = np.frombuffer(b"".join(self.texts), np.uint8)
        self.starts = np.cumsum([0] + [len(text) for text in self.texts])

    # --- maps

    def insert(self, cell: int, key: tuple[int, int], value: int) -> None:
        values = (value, value ^ 5)[: value_words(cell)]
        known = self.content.maps[cell]
        words = (np.uint64(w) for w in (*key, value, value ^ 5))
        new = self.driver.call(om_insert, self.driver.root(cell), value_words(cell), *words)
        assert new == (key not in known)
        known[key] = values

    def delete(self, cell: int, key: tuple[int, int]) -> None:
        known = self.content.maps[cell]
        gone = self.driver.call(om_delete, self.driver.root(cell), *(np.uint64(w) for w in key))
        assert gone == (key in known)
        known.pop(key, None)

    def count(self, cell: int, key: tuple[int, int], delta: int) -> None:
        known = self.content.maps[cell]
        expected = known.get(key, (0,))[0] + delta
        if expected < 0:
            return
        words = (np.uint64(w) for w in key)
        assert self.driver.call(om_count, self.driver.root(cell), *words, delta) == expected
        known.pop(key, None)
        if expected:
            known[key] = (expected,)

    def clear(self, cell: int) -> None:
        assert self.driver.call(om_clear, self.driver.root(cell)) == 0
        self.content.maps[cell].clear()

    def look(self, cell: int, key: tuple[int, int]) -> None:
        """Every kind of search around a key."""
        known = self.content.maps[cell]
        ordered = sorted(known)
        at = bisect_left(ordered, key)

        def entry(index: int) -> tuple[int, ...] | None:
            if not 0 <= index < len(ordered):
                return None
            found = (*ordered[index], *known[ordered[index]])
            return found + (0,) * (4 - len(found))

        find = self.driver.find
        assert find(om_first, cell) == entry(0)
        assert find(om_last, cell) == (entry(len(ordered) - 1) if ordered else None)
        assert find(om_below, cell, *key) == entry(at - 1)
        assert find(om_at_or_above, cell, *key) == entry(at)
        assert find(om_get, cell, *key) == (entry(at) if key in known else None)
        assert self.driver.cells[cell, 1] == len(ordered)

    # --- raw pages and strings

    def raw_new(self, words: int) -> None:
        number = self.driver.call(page_new, words)
        assert number not in self.content.raw
        self.content.raw[number] = [0] * words

    def raw_change(self, number: int, value: int) -> None:
        words = self.content.raw[number]
        body = self.driver.call(page_touch, number)
        at = value % len(words)
        _words_at(body, len(words))[at] = value
        words[at] = value

    def raw_free(self, number: int) -> None:
        assert self.driver.call(page_free, number) == 0
        del self.content.raw[number]

    def raw_look(self, number: int) -> None:
        words = self.content.raw[number]
        assert _words_at(self.driver.call(page_address, number), len(words)).tolist() == words

    def string_hold(self, index: int) -> None:
        begin, length = int(self.starts[index]), len(self.texts[index])
        where = address(self.heap) + begin
        assert self.driver.call(str_ready, *_hash(index), where, length) == 0
        held = self.content.strings.get(index, 0) + 1
        assert self.driver.call(str_retain, *_hash(index)) == held
        self.content.strings[index] = held

    def string_let_go(self, index: int) -> None:
        held = self.content.strings[index] - 1
        assert self.driver.call(str_release, *_hash(index)) == held
        self.content.strings[index] = held
        if held == 0:
            del self.content.strings[index]

    def string_look(self, index: int) -> None:
        length = self.driver.call(str_length, *_hash(index))
        where = self.driver.call(str_address, *_hash(index))
        assert array_at(where, length, np.uint8).tobytes() == self.texts[index]

    # --- epochs

    def begin_checkpoint(self) -> None:
        if self.closing is None:
            pool = self.driver.pool
            self.closing = (pool.meta(), copy.deepcopy(self.content), self.driver.cells.copy())
            self.epoch += 1
            pool.set_epoch(self.epoch)

    def step_checkpoint(self, limit_bytes: int) -> None:
        if self.closing is not None:
            pool = self.driver.pool
            self.store.write(pool.pending(self.epoch - 1, limit_bytes))
            if pool.exhausted():
                self.store.commit(self.epoch - 1, self.closing[0])
                pool.committed(self.epoch - 1)
                self.committed, self.closing = self.closing, None

    def finish_checkpoint(self) -> None:
        self.begin_checkpoint()
        while self.closing is not None:
            self.step_checkpoint(1 << 20)

    def crash(self) -> None:
        self.store.crash()
        meta, content, cells = self.committed
        self.content, self.closing = copy.deepcopy(content), None
        self.driver = Driver(small_pool(self.store))
        self.driver.cells[:] = cells
        if meta:
            self.driver.pool.restore(meta)
        self.epoch = self.store.committed + 1
        self.driver.pool.set_epoch(self.epoch)

    # --- the whole

    def check_all(self) -> None:
        """Everything, through the pool, and then in the store, page by page: nothing lost, nothing left."""
        for cell, known in enumerate(self.content.maps):
            expected = [(*key, *known[key]) for key in sorted(known)]
            assert self.driver.entries(cell, value_words(cell)) == expected
        for number in self.content.raw:
            self.raw_look(number)
        for index in self.content.strings:
            self.string_look(index)
        while self.driver.pool.free_deferred(100):
            pass
        for _ in range(2):  # deletions of the first are cleaned up by the second
            self.finish_checkpoint()
        stored = StoredTree(self.store.bodies(b"p"), PAGE_WORDS)
        for cell, known in enumerate(self.content.maps):
            assert stored.entries(int(self.driver.cells[cell, 0])) == [(*k, *known[k]) for k in sorted(known)]
        assert set(stored.bodies) == stored.reached | set(self.content.raw)
        strings = {_hash(index)[1]: held for index, held in self.content.strings.items()}
        found = self.store.bodies(b"s")
        assert {lo: int.from_bytes(body[8:16], "little") for lo, body in found.items()} == strings


def _hash(index: int) -> tuple[int, int]:
    return index * 0x1234567, index * 0x7654321 + 1


def _words_at(where: int, n: int) -> np.ndarray[Any, Any]:
    return array_at(where, n, np.int64)
