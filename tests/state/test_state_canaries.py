"""The checks of the state can fail: each of these bugs, planted, is found by the random walk."""

from pathlib import Path

import numpy as np
import pytest

from railgun.state import image_batch
from railgun.state import store as store_module
from railgun.state.errors import StateError
from railgun.state.layouts import LayoutHistory
from railgun.state.resident import Image
from railgun.state.rocks import items
from railgun.state.rollback import MARK_BYTES, WrittenKeys
from railgun.state.rows import groups
from railgun.state.rows.context import ROW_EPOCHS, ROWS_EPOCH
from railgun.state.rows.eviction import RowEviction
from railgun.state.rows.table import EntityTable
from railgun.state.store import Store
from reservoir.native.jit import array_at
from tests.state import state_run
from tests.state.state_walk import walk

SEEDS = range(4)


def find_the_bug(folder: Path) -> None:
    """Some seed must find it."""
    for seed in range(16):
        try:
            walk(folder / str(seed), seed, steps=160, crash_every=16)
        except (AssertionError, StateError):
            return
    pytest.fail("a planted bug was not found")


@pytest.mark.parametrize("seed", SEEDS)
def test_without_a_bug_the_walk_passes(tmp_path: Path, seed: int) -> None:
    walk(tmp_path, seed, steps=160, crash_every=16)


def test_an_undo_that_is_not_applied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WrittenKeys, "overwritten", lambda written, folder, epoch, values: iter(()))
    find_the_bug(tmp_path)


def test_undo_oldest_epoch_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "items_backwards", items)
    find_the_bug(tmp_path)


def test_a_write_that_does_not_say_what_it_wrote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_batch, "mark_of", lambda key: bytes(MARK_BYTES))
    find_the_bug(tmp_path)


def test_a_row_changed_without_copying_its_old_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    touch = state_run.touch_row

    def touch_without_copy(context: int, row: int) -> int:
        epochs = array_at(row + ROW_EPOCHS, 1, np.uint64)
        stored, dirty = divmod(int(epochs[0]), 1 << 32)
        current = int(array_at(context + ROWS_EPOCH, 1, np.int64)[0])
        if dirty not in (0, current):
            epochs[0] = (stored << 32) | current
        return touch(context, row)

    monkeypatch.setattr(state_run, "touch_row", touch_without_copy)
    find_the_bug(tmp_path)


def test_copied_images_that_are_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        RowEviction, "drain", lambda room, limit_bytes=None: room.memory.copies.take() and None
    )
    find_the_bug(tmp_path)


def test_copied_images_written_after_newer_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def flush(room: RowEviction) -> None:
        if room.memory.outgoing.count:
            room._store.write(room.memory.outgoing.take())
            room.drain()

    monkeypatch.setattr(RowEviction, "flush", flush)
    find_the_bug(tmp_path)


def test_a_remembered_address_that_is_not_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_run, "row_is", lambda *arguments: True)
    find_the_bug(tmp_path)


def test_rows_that_no_new_layout_makes_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "row_name", lambda group, version: group)
    find_the_bug(tmp_path)


def test_a_stale_row_brought_to_the_newest_layout_by_its_last_change_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LayoutHistory, "to_newest", lambda history, version: history.newest.runs)
    find_the_bug(tmp_path)


def test_a_commit_before_all_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EntityTable, "exhausted", lambda table: True)
    find_the_bug(tmp_path)


def test_deletions_that_leave_no_tombstone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = Store.write

    def write_bodies(store: Store, images: list[Image], next_epoch: int | None = None) -> None:
        write(store, [image for image in images if image[1] is not None], next_epoch)

    monkeypatch.setattr(Store, "write", write_bodies)
    find_the_bug(tmp_path)


def test_values_kept_that_are_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Store, "keep", lambda store, epoch, entries: None)
    find_the_bug(tmp_path)
