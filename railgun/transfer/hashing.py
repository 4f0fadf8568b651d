"""Hashes the files of snapshots. A file is known by its size and its BLAKE2b hash."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

CHUNK_BYTES: Final = 1 << 20
"""Files are read, sent and written in chunks of this size."""

_KNOWN_MAX = 100_000


def new_hash() -> "hashlib.blake2b":
    """Return the state of a hash: BLAKE2b of 32 bytes."""
    return hashlib.blake2b(digest_size=32)


def hash_of(path: Path, between: Callable[[], object] = lambda: None) -> str:
    """Return the hash of a file, in hexadecimal digits. Raises OSError. between: is called between two chunks."""
    state = new_hash()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            between()
            state.update(chunk)
    return state.hexdigest()


class FileHashes:
    """The hashes of files that do not change. A file is recognized by its inode, size and time, so that the next
    snapshot of a task does not read its segments again. One thread at a time uses it.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[int, int, int, int], str] = {}

    def of(self, path: Path) -> tuple[int, str]:
        """Return the size and the hash of a file. Raises OSError."""
        found = os.stat(path)
        key = found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
        if key not in self._known:
            while len(self._known) >= _KNOWN_MAX:
                del self._known[next(iter(self._known))]
            self._known[key] = hash_of(path)
        return found.st_size, self._known[key]
