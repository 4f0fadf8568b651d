"""Who holds a folder."""

import fcntl
import os
from pathlib import Path

import pytest

from railgun.state.errors import StoreLockedError
from railgun.state.lock import FolderLock, is_any_held


def test_a_folder_is_held_by_one(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    lock = FolderLock(inner)
    with pytest.raises(StoreLockedError, match=str(os.getpid())):
        FolderLock(inner)
    assert is_any_held(tmp_path)
    assert not is_any_held(tmp_path / "other")
    lock.release()
    lock.release()
    assert not is_any_held(tmp_path)
    FolderLock(inner).release()


def test_what_is_deleted_meanwhile_or_cannot_be_read_is_not_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("deleted", "foreign"):
        (tmp_path / name).mkdir()
    (tmp_path / "deleted" / "owner.lock").symlink_to("gone")
    foreign = tmp_path / "foreign" / "owner.lock"
    foreign.touch()
    opened = os.open

    def refused(path: str, *rest: int) -> int:
        if path == str(foreign):
            raise PermissionError(13, "Permission denied", path)
        return opened(path, *rest)

    monkeypatch.setattr(os, "open", refused)
    assert not is_any_held(tmp_path)
    # One beside them is found all the same.
    (tmp_path / "held").mkdir()
    with (tmp_path / "held" / "owner.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert is_any_held(tmp_path)
