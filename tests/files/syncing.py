"""Which files were made durable."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def synced_files(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[int]]:
    """The numbers of the inodes that are synced meanwhile."""
    fsync, found = os.fsync, set[int]()

    def noted(handle: int) -> None:
        fsync(handle)
        found.add(os.fstat(handle).st_ino)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", noted)
        yield found
