"""Hashes the files of snapshots. A file is known by its size and its BLAKE2b hash."""

import hashlib
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

CHUNK_BYTES: Final = 1 << 20
"""Files are read, sent and written in chunks of this size."""

_KNOWN_MAX = 100_000


def new_hash() -> "hashlib.blake2b":
    """Return the state of a hash: BLAKE2b of 32 bytes."""
    return hashlib.blake2b(digest_size=32)


def hash_of(path: Path, read: Callable[[int], object] = lambda size: None) -> str:
    """Return the hash of a file, in hexadecimal digits. Raises OSError. read: is called with the size of each chunk."""
    state = new_hash()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            read(len(chunk))
            state.update(chunk)
    return state.hexdigest()


class FileHashes:
    """The hashes of files that do not change. A file is recognized by its inode, size and time, so that the next
    snapshot of a task does not read its segments again. Any thread may use it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[_Key, str] = {}

    def of(self, path: Path, read: Callable[[int], object] = lambda size: None) -> tuple[int, str]:
        """Return the size and the hash of a file. Raises OSError.

        read: is called with the size of each chunk that is read; with that of the file if its hash is known.
        """
        key = _key(path)
        found = self._known.get(key)
        if found is None:
            found = hash_of(path, read)
            self._note(key, found)
        else:
            read(key.size)
        return key.size, found

    def note(self, path: Path, known: str) -> None:
        """Note the hash of a file that was verified while it was written. Raises OSError."""
        self._note(_key(path), known)

    def _note(self, key: "_Key", known: str) -> None:
        with self._lock:
            while len(self._known) >= _KNOWN_MAX:
                del self._known[next(iter(self._known))]
            self._known[key] = known


class _Key(NamedTuple):
    """What tells a file from others, and from itself once it was changed."""

    device: int
    inode: int
    size: int
    time_ns: int


def _key(path: Path) -> _Key:
    found = os.stat(path)
    return _Key(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
