"""The checks of pages can fail: each of these bugs, planted, is found by the random run."""

import numpy as np
import pytest

from railgun.state.errors import StateError
from railgun.state.paged.access import page_address
from railgun.state.paged.images import Outbox
from railgun.state.paged.layout import DIRTY, DIRTY_NOW, DIRTY_OLD, EPOCH, HEAD_BYTES, NEXT_ID
from railgun.state.paged.pool import PagePool
from railgun.state.resident import Image
from reservoir.native.jit import array_at
from tests.state.paged import paged_model
from tests.state.paged.test_pages_random import run


def find_the_bug() -> None:
    """Some seed must find it."""
    for seed in range(12):
        try:
            run(seed, 300)
        except (AssertionError, StateError, KeyError):
            return
    pytest.fail("a planted bug was not found")


def test_deletions_that_never_reach_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    take = Outbox.take

    def without_deletions(outbox: Outbox) -> list[Image]:
        return [image for image in take(outbox) if image[1] is not None]

    monkeypatch.setattr(Outbox, "take", without_deletions)
    find_the_bug()


def test_a_drain_that_keeps_the_last_image_of_a_page_only(monkeypatch: pytest.MonkeyPatch) -> None:
    def last_only(outbox: Outbox) -> None:
        outbox._store.write(list({image[0]: image for image in outbox.take()}.values()))

    monkeypatch.setattr(Outbox, "drain", last_only)
    find_the_bug()


def test_a_graveyard_forgotten_by_recovery(monkeypatch: pytest.MonkeyPatch) -> None:
    restore = PagePool.restore
    monkeypatch.setattr(PagePool, "restore", lambda pool, meta: restore(pool, meta[:8] + bytes(16)))
    find_the_bug()


def test_ids_given_twice_after_recovery(monkeypatch: pytest.MonkeyPatch) -> None:
    restore = PagePool.restore

    def from_the_first(pool: PagePool, meta: bytes) -> None:
        restore(pool, meta)
        array_at(pool.context + NEXT_ID, 1, np.int64)[0] = 1

    monkeypatch.setattr(PagePool, "restore", from_the_first)
    find_the_bug()


def test_a_change_that_marks_nothing_dirty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paged_model, "page_touch", page_address)
    find_the_bug()


def test_a_change_without_copying_the_old_image(monkeypatch: pytest.MonkeyPatch) -> None:
    touch = paged_model.page_touch

    def touch_without_copy(context: int, number: int) -> int:
        body = int(page_address(context, number))
        if body > 0:
            words = array_at(context, 64, np.int64)
            dirty = array_at(body - HEAD_BYTES + DIRTY, 1, np.uint32)
            if dirty[0] not in (0, words[EPOCH // 8]):
                dirty[0] = np.uint32(words[EPOCH // 8])
                words[DIRTY_OLD // 8] -= 1
                words[DIRTY_NOW // 8] += 1
        return int(touch(context, number))

    monkeypatch.setattr(paged_model, "page_touch", touch_without_copy)
    find_the_bug()


def test_a_stored_epoch_that_is_lost_on_loading(monkeypatch: pytest.MonkeyPatch) -> None:
    admit = PagePool._admit

    def as_if_new(pool: PagePool, hi: int, lo: int, key: bytes, epoch: int, body: bytes | None) -> int:
        return admit(pool, hi, lo, key, 0, body)

    monkeypatch.setattr(PagePool, "_admit", as_if_new)
    find_the_bug()
