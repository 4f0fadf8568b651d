"""An advisory lock that lets one process at a time use a folder. The kernel drops it when its holder dies.

The store of a task, an engine, an embedded log and a Spark build lock their folders by it.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator
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
        """Release the folder. A second call changes nothing."""
        if self._fd >= 0:
            with contextlib.suppress(OSError):
                fcntl.flock(self._fd, fcntl.LOCK_UN)
            os.close(self._fd)
            self._fd = -1


@contextlib.contextmanager
def holding_all(above: Path) -> Iterator[None]:
    """Hold all folders at or below `above` that were ever held, for as long as the block runs.

    Raises StoreLockedError if one of them is taken.
    """
    with contextlib.ExitStack() as held:
        for folder, _, files in os.walk(above):
            if _NAME in files:
                held.callback(FolderLock(Path(folder)).release)
        yield


def is_any_held(above: Path) -> bool:
    """Whether any process, this one included, holds a folder at or below `above`. Others may be deleting them now."""
    return any(_is_held(os.path.join(folder, _NAME)) for folder, _, files in os.walk(above) if _NAME in files)


def _is_held(file: str) -> bool:
    """Whether a lock file is held. One that is gone, or that this user may not read, is not."""
    try:
        fd = os.open(file, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(fd)
    return False
