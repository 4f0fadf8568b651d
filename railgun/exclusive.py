"""A lock on a file, for one process at a time. The kernel releases it when its holder ends."""

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TypeAlias

Waits: TypeAlias = Callable[[int | None], object]
"""What is called while another process holds a lock: with the number of that process, None if it is not known."""

_LOOK_S = 0.25


@contextmanager
def exclusive(path: Path, waits: Waits | None = None) -> Iterator[None]:
    """Hold the lock of a file while the block runs, after waiting for it. The file and its folder are made.

    waits: is called several times a second while another process holds the lock.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # Without a buffer, a number that could not be written is not written again when the file is closed.
    with path.open("ab", buffering=0) as file:
        _lock(file, path, waits)
        with suppress(OSError):
            file.truncate(0)
            file.write(str(os.getpid()).encode())
        yield


def _lock(file: IO[bytes], path: Path, waits: Waits | None) -> None:
    if waits is None:
        fcntl.flock(file, fcntl.LOCK_EX)
        return
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waits(_holder(path))
            time.sleep(_LOOK_S)
        else:
            return


def _holder(path: Path) -> int | None:
    """Return the number of the process that holds the lock; None if the file does not have it."""
    written = path.read_bytes()
    return int(written) if written.isdigit() else None
