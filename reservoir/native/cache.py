"""Where compiled kernels are kept."""

import atexit
import logging
import os
import shutil
import tempfile
import time
from functools import cache
from pathlib import Path

from reservoir.native.checked import IS_CHECKED
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
    """Where Numba keeps what it compiles: the folder above, unless NUMBA_CACHE_DIR names another."""
    named = os.environ.get("NUMBA_CACHE_DIR")
    if named is None:
        _make_room(cache_folder())
    if named is None:
        return cache_folder()
    # A process of checked kernels may have been started by one of others, which has named its own.
    return Path(named.removesuffix(_OF_CHECKED) + _OF_CHECKED)


def writable_folder() -> Path:
    """Where Numba may write. Else it would take folders of the sources, where nothing tells old kernels from new."""
    folder = numba_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        _log.warning(
            "kernels are compiled at every start (%s): name another folder by RAILGUN_KERNEL_CACHE", error
        )
        folder = Path(tempfile.mkdtemp(prefix="railgun-kernels-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
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
