"""The folders in which compiled kernels are kept."""

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
# Numba does not distinguish checked kernels (`checked`) from others, so they get folders of their own.
_OF_CHECKED = "-checked" if IS_CHECKED else ""
_KEPT_S = 7 * 86_400  # other checkouts, and versions that run side by side, have caches of their own

_log = logging.getLogger("railgun.kernels")


@cache
def cache_folder() -> Path:
    """Return the folder of the compiled kernels of these sources. It exists once one has been compiled."""
    base = os.environ.get("RAILGUN_KERNEL_CACHE") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache"),
        "railgun",
        "kernels",
    )
    return Path(base) / (digest(kernel_sources()) + _OF_CHECKED)


@cache
def numba_folder() -> Path:
    """Return the folder in which Numba keeps what it compiles: `cache_folder()`, unless NUMBA_CACHE_DIR names another.

    Code that is found there is run. So if other users may write there, it is a new folder, deleted with this process.
    """
    named = os.environ.get("NUMBA_CACHE_DIR")
    if named is None:
        folder = cache_folder()
        _make_room(folder)
    else:
        # A process of checked kernels may have inherited the name from a process of unchecked ones.
        folder = Path(named.removesuffix(_OF_CHECKED) + _OF_CHECKED)
    # In a folder with the sticky bit, nobody can replace another user's files, but everybody can add files.
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
    """Whether a user other than root and this process's may change a file, or the content of a folder.

    is_added_to: whether it matters if they add something. Returns False if nothing is there.
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
    """Return a folder in which Numba may write. Otherwise it would use the folders of the sources, in which nothing
    tells old kernels from new ones.
    """
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
    """Delete caches of old sources before a new one is begun. The latest few, and recent ones, are kept."""
    if folder.exists():
        return
    found = sorted(((_changed_s(path), path) for path in folder.parent.glob("*/")), reverse=True)
    long_ago_s = time.time() - _KEPT_S
    for changed_s, old in found[_CACHES_KEPT - 1 :]:
        if changed_s < long_ago_s:
            shutil.rmtree(old, ignore_errors=True)


def _changed_s(path: Path) -> float:
    """Return when something was last compiled into a cache. Another process may delete the cache meanwhile."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
