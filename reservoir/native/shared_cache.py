"""Numba's cache for processes that compile together: one of them compiles a function, and the others load it.

Numba itself locks nothing. Two processes would compile a function twice that both need, and if they did so for two
signatures at once, the index of one could name the code of the other.
"""

import fcntl
import hashlib
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from numba.core.caching import FunctionCache
from numba.core.dispatcher import Dispatcher
from numba.core.registry import cpu_target


class _Locks:
    """A lock for each function: one byte of a file, by the hash of its name. They end with the process."""

    def __init__(self, path: Path) -> None:
        # It stays open: the process would lose all locks of a file of which it closes any descriptor.
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def take(self, name: str) -> None:
        """Wait until no other process has the lock of a function, and take it."""
        fcntl.lockf(self._file, fcntl.LOCK_EX, 1, _place(name))

    def release(self, name: str) -> None:
        """Let other processes have the lock."""
        fcntl.lockf(self._file, fcntl.LOCK_UN, 1, _place(name))


def _place(name: str) -> int:
    # As much as an offset can hold, so that no two functions share a place.
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:7], "little")


class SharedCache(FunctionCache):  # type: ignore[misc]
    """The cache of one function. Whoever finds nothing holds the function's lock until it has saved what it compiles.

    Kernels do not call themselves, directly or not, so processes never wait for one another in a circle.
    """

    def __init__(self, function: Any, locks: _Locks) -> None:
        super().__init__(function)
        self._locks, self._key = locks, self._cache_file._index_path

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return what the cache has; None if this process is to compile it."""
        found = super().load_overload(sig, target_context)
        if found is None:
            self._locks.take(self._key)
            found = super().load_overload(sig, target_context)
            if found is not None:
                self._locks.release(self._key)
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save what was compiled."""
        try:
            super().save_overload(sig, data)
        finally:
            self._locks.release(self._key)


def dispatchers(packages: Iterable[str]) -> list[Any]:
    """Return Numba's objects for all functions of the modules that are loaded."""
    return [
        value
        for name, module in list(sys.modules.items())
        if name.split(".")[0] in packages
        for value in list(vars(module).values())
        if isinstance(value, Dispatcher) and value.__module__ == name
    ]


def share(functions: Iterable[Any], path: Path) -> None:
    """Have functions use a cache that other processes add to. path: the file of the locks. Raises OSError."""
    locks = _Locks(path)
    for each in functions:
        each._cache = SharedCache(each.py_func, locks)


def is_cached(function: Any, signature: Any) -> bool:
    """Whether the cache has a function, as Python has defined it, with a signature."""
    cache: Any = FunctionCache(function)
    return (
        cache._cache_file.load(cache._index_key(signature, cpu_target.target_context.codegen())) is not None
    )


def is_begun(function: Any) -> bool:
    """Whether the cache has one of Numba's objects with any signature."""
    return os.path.exists(function._cache._cache_file._index_path)
