"""Copies of the committed state of a store that goes on."""

from pathlib import Path

import pytest

from railgun.state.end_marker import END_MARK, EndMarker, read_mark
from railgun.state.errors import EpochOrderError, StoreError
from railgun.state.store import Store
from reservoir.files import DiskFiles
from tests.state.test_store import LIMITS, content, store

__all__ = ["store"]


def test_a_snapshot_has_the_commit_whatever_is_written_meanwhile(tmp_path: Path, store: Store) -> None:
    """Images of later epochs are in it, and are undone; its end mark is of its own commit."""
    store.write([(b"ra", b"1", 1, 0), (b"rb", b"1", 1, 0)])
    store.commit(1, b"first")
    store.write([(b"ra", b"2", 2, 1), (b"rc", b"2", 2, 0)])
    store.snapshot_to(tmp_path / "copy", 1)
    store.write([(b"rb", b"2", 2, 1)])
    store.commit(2, b"second")
    copy = Store(tmp_path / "copy", LIMITS)
    try:
        assert copy.recover() == (1, b"first") == copy.last_commit()
        assert content(copy) == {b"ra": b"1", b"rb": b"1"}
        copy.write([(b"ra", b"3", 2, 1)])
        copy.commit(2, b"another")
    finally:
        copy.close()
    mark = read_mark(DiskFiles(), tmp_path / "copy" / END_MARK)
    assert mark is not None
    assert mark.synced == 2
    assert store.last_commit() == (2, b"second")
    assert content(store) == {b"ra": b"2", b"rb": b"2", b"rc": b"2"}


def test_a_snapshot_of_another_commit_is_refused(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.commit(1, b"")
    with pytest.raises(EpochOrderError, match="a snapshot of epoch 0, but 1 is committed"):
        store.snapshot_to(tmp_path / "copy", 0)
    assert not (tmp_path / "copy").exists()

    class Meanwhile(EndMarker):
        def sync(self) -> None:
            with monkeypatch.context() as patch:
                patch.setattr("railgun.state.store.EndMarker", EndMarker)
                store.commit(2, b"")

    monkeypatch.setattr("railgun.state.store.EndMarker", Meanwhile)
    with pytest.raises(EpochOrderError, match="a snapshot of epoch 1, but 2 is committed"):
        store.snapshot_to(tmp_path / "copy", 1)


def test_a_snapshot_that_fails_names_the_folder(tmp_path: Path, store: Store) -> None:
    (tmp_path / "copy").mkdir()
    with pytest.raises(StoreError, match=r"state in .*/state: snapshot: "):
        store.snapshot_to(tmp_path / "copy", 0)
