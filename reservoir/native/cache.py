"""Where compiled kernels are kept."""

import atexit
import logging
import os
import shutil
import stat
import tempfile
import time
from functools import cache
from pathlib import Path

from reservoir.native.kernel_mode import IS_CHECKED
from reservoir.native.sources import digest, kernel_sources

_CACHES_KEPT = 4
# Numba does not tell checked kernels from others.
_OF_CHECKED = "-checked" if IS_CHECKED else ""
_KEPT_S = 7 * 86_400  # other checkouts, and versions that run side by side, have caches of their own

_log = logging.getLogger("railgun.kernels")


@cache
def cache_folder() -> Path:
    """Where compiled kernels of these sources are kept; there once one has been compiled."""
    base = os.environ.get("RAILGUN_KERNEL_CACHE") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache"),
        "railgun",
        "kernels",
    )
    return Path(base) / (digest(kernel_sources()) + _OF_CHECKED)


@cache
def numba_folder() -> Path:
    """Where Numba keeps what it compiles: the folder above, unless NUMBA_CACHE_DIR names another.

    Code that is found there is run. So where other users may write, it is a new folder, which goes with this process.
    """
    named = os.environ.get("NUMBA_CACHE_DIR")
    if named is None:
        folder = cache_folder()
        _make_room(folder)
    else:
        # A process of checked kernels may have been started by one of others, which has named its own.
        folder = Path(named.removesuffix(_OF_CHECKED) + _OF_CHECKED)
    # In a folder with the sticky bit nobody can replace what another user has put there, but can add to it.
    for each, is_added_to in ((folder, True), (folder.parent, False)):
        if others_may_write(each, is_added_to=is_added_to):
            _log.warning(
                "kernels are compiled at every start, as other users may write to %s: make it yours alone "
                "(chown, chmod go-w), or name another folder by RAILGUN_KERNEL_CACHE",
                each,
            )
            return _passing_folder()
    return folder


def others_may_write(path: Path, *, is_added_to: bool = True) -> bool:
    """Whether everybody, or a user who is neither this process's nor root, may change a file or what is in a folder.

    is_added_to: whether it matters that they add something.  False where there is nothing.
    """
    try:
        found = path.stat()
    except OSError:
        return False
    is_everybodys = found.st_mode & stat.S_IWOTH and (is_added_to or not found.st_mode & stat.S_ISVTX)
    return bool(is_everybodys) or found.st_uid not in (0, os.geteuid())


def _passing_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="railgun-kernels-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def writable_folder() -> Path:
    """Where Numba may write. Else it would take folders of the sources, where nothing tells old kernels from new."""
    folder = numba_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o755)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        _log.warning(
            "kernels are compiled at every start (%s): name another folder by RAILGUN_KERNEL_CACHE", error
        )
        folder = _passing_folder()
    return folder


def _make_room(folder: Path) -> None:
    """Before a new cache is begun: delete those of sources long gone, but for the latest few and the young."""
    if folder.exists():
        return
    found = sorted(((_changed_s(path), path) for path in folder.parent.glob("*/")), reverse=True)
    long_ago_s = time.time() - _KEPT_S
    for changed_s, old in found[_CACHES_KEPT - 1 :]:
        if changed_s < long_ago_s:
            shutil.rmtree(old, ignore_errors=True)


def _changed_s(path: Path) -> float:
    """When something was last compiled into a cache; another process may delete it meanwhile."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
