"""The data folder of a node, which one node at a time uses."""

import fcntl
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from railgun.host.data_folder import TASKS
from railgun.node.identity import IDENTITY
from railgun.private_folder import exposure, make_private

_LOCK = "node.lock"
_PID_BYTES_MAX = 32
# A node's folder may hold these before a node has run there: what a backfill has built, and what file systems put
# there.
_OWN = {"backfill", "lost+found", IDENTITY}

_log = logging.getLogger("railgun.node")


class NodeFolderError(Exception):
    """The node's folder cannot be used."""


@contextmanager
def held_folder(folder: Path) -> Iterator[None]:
    """Hold a node's folder, which is created if it is missing, while the block runs.

    Raises NodeFolderError if another node holds it, or if it holds other things than a node's data.
    """
    _check_folder(folder)
    handle = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(handle, _PID_BYTES_MAX, 0).decode("ascii", "replace") or "unknown"
            raise NodeFolderError(
                f"{folder}: another node, process {owner}, uses this folder; stop it, or give this one a folder of its "
                "own"
            ) from None
        with suppress(OSError):
            # The process id is needed only for the message above. If a full disk refuses it, the node may still
            # start.
            os.truncate(handle, 0)
            os.pwrite(handle, str(os.getpid()).encode("ascii"), 0)
        make_private(folder / TASKS)
        exposed = exposure(folder)
        if exposed is not None:
            _log.warning("%s", exposed)
        yield
    finally:
        os.close(handle)


def _check_folder(folder: Path) -> None:
    """Create the folder, or check that it is empty or a node's. Raises NodeFolderError."""
    try:
        make_private(folder)
        names = {path.name for path in folder.iterdir()}
    except OSError as error:
        raise NodeFolderError(
            f"{folder}: no data folder can be made here: {error.strerror or error}; name a folder on a disk that can "
            "be written to"
        ) from error
    others = sorted(names - _OWN)
    if _LOCK not in names and others:
        raise NodeFolderError(
            f"{folder}: it holds {others[0]} and other things, but no data of a node; name an empty folder, or a new "
            "one"
        )
