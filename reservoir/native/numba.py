"""Has Numba compile a kernel: cached on disk, without the interpreter lock, with IEEE division."""

import os
from collections.abc import Callable
from typing import Any, TypeVar, cast

from reservoir.native.cache import writable_folder
from reservoir.native.kernel_mode import IS_CHECKED

os.environ["NUMBA_CACHE_DIR"] = str(writable_folder())

import numba
from numba.core import types

F = TypeVar("F", bound=Callable[..., Any])

_unliteral: Any = types.unliteral  # type: ignore[attr-defined]
numba.config.CACHE_DIR = os.environ["NUMBA_CACHE_DIR"]
_OPTIONS: dict[str, Any] = {"error_model": "numpy", "boundscheck": IS_CHECKED}


def jit(function: F) -> F:
    """Return a Numba dispatcher of a top-level function."""
    compiled: Any = numba.njit(cache=True, nogil=True, **_OPTIONS)(function)
    resolve = compiled.get_call_template

    def resolve_without_literals(args: Any, kws: Any) -> Any:
        """Resolve a call by types without literal values. Otherwise Numba would compile a kernel again for every
        constant with which it is called; LLVM inlines constants anyway.
        """
        plain = {name: _unliteral(kind) for name, kind in dict(kws).items()}
        return resolve(tuple(_unliteral(kind) for kind in args), plain)

    compiled.get_call_template = resolve_without_literals
    return cast(F, compiled)


def entry_point(function: Callable[[int], int]) -> Any:
    """Compile a top-level `int64 -> int64` function that is to be called by its address."""
    return numba.cfunc("int64(int64)", nopython=True, cache=True, **_OPTIONS)(function)
