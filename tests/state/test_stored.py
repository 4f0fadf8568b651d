"""A state folder read from outside: what the last commit holds, with its owner running, and nothing changed."""

import os
from pathlib import Path

import pytest

from railgun.state import keys
from railgun.state.errors import StoreCorruptionError, StoreError, StoreVersionError
from railgun.state.store import Store
from railgun.state.stored import Amount, StoredState

ROWS = [keys.row_key(n % 3, n, n) for n in range(90)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A store with one committed epoch and half of the next."""
    store = Store(tmp_path)
    store.recover()
    store.write([(key, b"body", 1, 0) for key in ROWS])
    store.write([(keys.page_key(0, 1), b"page", 1, 0), (keys.string_key(1, 1), b"s", 1, 0)])
    store.commit(1, b"meta")
    store.settle(1000)
    later = [(key, None, 2, 1) for key in ROWS[:45]]
    later += [(key, b"longer body", 2, 1) for key in ROWS[45:60]]
    later += [(keys.row_key(9, n, n), b"new", 2, 0) for n in range(10)]
    store.write(later)
    store.close()
    return tmp_path


def test_what_the_last_commit_held_is_counted(folder: Path) -> None:
    stored = StoredState(folder)
    assert stored.commit() == (1, b"meta")
    amounts = stored.amounts()
    size = keys.ROW_KEY_BYTES + 5 + len(b"body")
    assert amounts.rows == {group: Amount(30, 30 * size) for group in range(3)}
    assert (amounts.pages.items, amounts.strings.items) == (1, 1)
    stored.close()


def test_the_owner_may_be_running(folder: Path) -> None:
    store = Store(folder)
    store.recover()
    store.write([(ROWS[0], None, 2, 1)])
    stored = StoredState(folder)
    assert stored.amounts().rows[0].items == 30
    stored.close()
    store.commit(2, b"more")
    stored = StoredState(folder)
    assert stored.commit() == (2, b"more")
    assert stored.amounts().rows[0].items == 29
    stored.close()
    store.close()


def test_reading_changes_nothing(folder: Path) -> None:
    before = _contents(folder)
    stored = StoredState(folder)
    stored.amounts()
    stored.close()
    assert _contents(folder) == before


def test_nothing_was_committed(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.recover()
    store.write([(ROWS[0], b"body", 1, 0)])
    store.close()
    stored = StoredState(tmp_path)
    assert stored.commit() is None
    assert stored.amounts().rows == {}
    stored.close()


def test_a_folder_without_a_database(tmp_path: Path) -> None:
    with pytest.raises(StoreCorruptionError, match="its file CURRENT is missing"):
        StoredState(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_newer_commit_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("railgun.state.values._VERSION", 2)
    store = Store(tmp_path)
    store.recover()
    store.commit(1, b"meta")
    store.close()
    monkeypatch.undo()
    stored = StoredState(tmp_path)
    with pytest.raises(StoreVersionError, match="the commit record has version 2"):
        stored.commit()
    stored.close()


def test_a_flipped_byte_of_a_row_is_found(folder: Path) -> None:
    [table, *_] = sorted(folder.glob("*.sst"))
    whole = table.read_bytes()
    found = 0
    for place in range(0, len(whole) - 200, max(1, len(whole) // 40)):
        table.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        try:
            stored = StoredState(folder)
        except StoreError:
            found += 1
            continue
        try:
            stored.amounts()
        except StoreError:
            found += 1
        finally:
            stored.close()
    assert found >= 20


def _contents(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        each.name: (each.stat().st_mtime_ns, each.read_bytes())
        for each in folder.iterdir()
        if each.is_file() and os.access(each, os.R_OK)
    }
