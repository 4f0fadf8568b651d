"""One process at a time: an advisory lock on a folder, which the kernel drops when its holder dies."""

import contextlib
import fcntl
import os
from pathlib import Path

from railgun.state.errors import StoreLockedError

_NAME = "owner.lock"


class FolderLock:
    """Holds a folder until `release`. Raises StoreLockedError, naming its holder, if taken."""

    def __init__(self, folder: Path) -> None:
        self._fd = os.open(folder / _NAME, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            owner = os.read(self._fd, 32).decode("ascii", "replace").strip() or "unknown"
            os.close(self._fd)
            raise StoreLockedError(folder, owner) from error
        os.truncate(self._fd, 0)
        os.pwrite(self._fd, str(os.getpid()).encode("ascii"), 0)

    def release(self) -> None:
        """Let the folder go. Harmless when done already."""
        if self._fd >= 0:
            with contextlib.suppress(OSError):
                fcntl.flock(self._fd, fcntl.LOCK_UN)
            os.close(self._fd)
            self._fd = -1


def is_any_held(above: Path) -> bool:
    """Whether anybody, this process too, holds a folder at or below `above`. Each is held for a moment to find out."""
    for file in above.rglob(_NAME):
        try:
            FolderLock(file.parent).release()
        except StoreLockedError:
            return True
        except FileNotFoundError:
            continue
    return False
