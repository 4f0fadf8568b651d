"""Compiles and calls kernels: has the one `jit`, the functions that kernels use, and access to memory by address.

Kernels take a few integers (addresses of numpy arrays) instead of dozens of arrays: unboxing an array
costs Numba about 0.2 µs, which at one event per batch would be most of the time.  An address is a plain
`int64`; the Python object that made the array keeps it alive for as long as the address is in use.

Where this process has an image of all kernels that Python calls (`image`), `jit` gives what is in the image;
Numba is not imported.  Should another kernel be called after all, all are made by Numba from then on (`use_numba`).

Numba's cache does not notice that a function imported from another file has changed, so the cache folder
is keyed by a hash of the files with kernels and of all that these import.

The address of a `bytes` object's bytes is found in 0.1 µs, instead of 1 µs through an array.
"""

import ctypes
import importlib
import sys
import threading
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from reservoir.native import checked
from reservoir.native import image as kernel_image
from reservoir.native.kernel_mode import IS_CHECKED
from reservoir.native.sources import PACKAGES

# CPython keeps the bytes inside the object, after its head. The object's basic size counts the final zero byte.
_HEAD_BYTES = bytes.__basicsize__ - 1


def bytes_address(data: bytes) -> int:
    """Address of the first byte. The caller must keep the object alive, and must not write there."""
    start = id(data) + _HEAD_BYTES
    if IS_CHECKED:
        checked.ranges.add(start, len(data), data)
    return start


__all__ = (
    "address",
    "array_at",
    "bits_f64",
    "call_entry",
    "clz64",
    "copy_bytes",
    "entry_address",
    "entry_points",
    "f64_bits",
    "is_image",
    "jit",
    "keeps_interpreter",
    "ld8",
    "ld16",
    "ld32",
    "ld64",
    "ldi32",
    "ldi64",
    "load_be64",
    "move_bytes",
    "mulhi64",
    "prefetch",
    "st8",
    "st32",
    "st64",
    "stack_words",
    "sti32",
    "sti64",
    "store_be64",
    "use_numba",
    "view_u8",
    "view_u64",
)

F = TypeVar("F", bound=Callable[..., Any])

_PACKAGES = (*PACKAGES, "bench", "tests")


class Later:
    """Stands for a function that only Numba can make. If Python calls it, Numba makes all kernels (`use_numba`)."""

    def __init__(self) -> None:
        self.made: Any = None

    def __call__(self, *arguments: Any) -> Any:
        use_numba()
        return self.made(*arguments)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)  # somebody looks what this is
        use_numba()
        return getattr(self.made, name)


_image = None if IS_CHECKED else kernel_image.load()
_lock = threading.Lock()
# In a process with an image: every kernel's Python function, and the object that modules hold instead of it.
_given: list[tuple[Callable[..., Any], Any]] = []

if TYPE_CHECKING or _image is None:
    from reservoir.native.intrinsics import (
        bits_f64,
        call_entry,
        clz64,
        copy_bytes,
        f64_bits,
        ld8,
        ld16,
        ld32,
        ld64,
        ldi32,
        ldi64,
        load_be64,
        move_bytes,
        mulhi64,
        prefetch,
        st8,
        st32,
        st64,
        stack_words,
        sti32,
        sti64,
        store_be64,
        view_u8,
        view_u64,
    )
else:
    bits_f64, call_entry, clz64, copy_bytes, f64_bits = (Later() for _ in range(5))
    ld8, ld16, ld32, ld64, ldi32, ldi64, load_be64 = (Later() for _ in range(7))
    move_bytes, mulhi64, prefetch, stack_words = (Later() for _ in range(4))
    st8, st32, st64, sti32, sti64, store_be64, view_u8, view_u64 = (Later() for _ in range(8))


def jit(function: F) -> F:
    """Compile a top-level function: cached on disk, without the interpreter lock, IEEE division."""
    # The lock excludes `use_numba`, which would miss a kernel that is added meanwhile.
    with _lock:
        if _image is not None and not _is_numba:
            held = _image.calls.get((function.__module__, function.__name__)) or Later()
            _given.append((function, held))
            return cast(F, held)
    from reservoir.native import numba as numba_jit

    return numba_jit.jit(function)


_is_numba = _image is None


def is_image() -> bool:
    """Whether the kernels of this process are those of an image."""
    return not _is_numba


class _KeepsInterpreter:
    """Has kernels that this thread calls keep the interpreter lock; see `keeps_interpreter`."""

    def __init__(self) -> None:
        self._keeper = memoryview(bytearray(8)).cast("Q") if _image is None else _image.keeper

    def __enter__(self) -> None:
        self._keeper[0] = threading.get_ident()

    def __exit__(self, *_: object) -> None:
        self._keeper[0] = 0


keeps_interpreter = _KeepsInterpreter()
"""Within, the kernels of an image that this thread calls keep the interpreter lock: for calls of a few microseconds.

A thread that lets go of the lock gets it back from one that is busy in Python after the switch interval, half a
millisecond: an event whose ten kernels each let go of it would wait for milliseconds where anything else is done
beside. For one thread at a time: where two are within, the one that came first lets go of the lock as ever.
"""


def use_numba() -> None:
    """Replace every kernel by Numba's, in each module that holds it by name.

    Other holders continue with the kernel of the image, which does the same.
    """
    global _is_numba
    with _lock:
        if _is_numba:
            return
        intrinsics, numba_jit = (
            importlib.import_module(f"reservoir.native.{name}") for name in ("intrinsics", "numba")
        )
        made = {}
        for name, value in list(globals().items()):
            if isinstance(value, Later):
                made[id(value)] = value.made = getattr(intrinsics, name)
        for function, held in _given:
            made[id(held)] = numba_jit.jit(function)
            if isinstance(held, Later):
                held.made = made[id(held)]
        _is_numba = True
        entry_address.cache_clear()
        for module_name, module in list(sys.modules.items()):
            if module_name.split(".")[0] in _PACKAGES:
                for name, value in list(vars(module).items()):
                    if id(value) in made:
                        setattr(module, name, made[id(value)])


def address(array: np.ndarray[Any, Any]) -> int:
    """Byte address of the first element of a C-contiguous array. The caller must keep the array alive."""
    start = int(array.__array_interface__["data"][0])
    if IS_CHECKED:
        checked.let_use(array, start)
    return start


@cache
def entry_address(function: Callable[[int], int]) -> int:
    """Compile a top-level `int64 -> int64` function as an entry point of its own and give its address.

    A kernel that calls it with `call_entry` does not take it in: what is rarely needed, and large, is compiled
    once, not again inside everything that can reach it.
    """
    if not _is_numba:
        assert _image is not None
        if found := _image.addresses.get((function.__module__, function.__name__)):
            return int(found)
        use_numba()
    from reservoir.native import numba as numba_jit

    entry = numba_jit.entry_point(function)
    _ENTRIES.append(entry)
    return int(entry.address)


_ENTRIES: list[Any] = []  # keeps the code of entry points in memory


def entry_points() -> list[Any]:
    """The entry points that Numba has compiled for `entry_address` in this process."""
    return list(_ENTRIES)


def array_at(where: int, n: int, dtype: type[np.generic]) -> np.ndarray[Any, Any]:
    """The n items at a byte address as an array that owns nothing: valid while their owner keeps them."""
    size = np.dtype(dtype).itemsize * n
    if IS_CHECKED:
        checked.check(where, size)
    memory: Any = (ctypes.c_char * size).from_address(where) if size else b""
    return np.frombuffer(memory, dtype)
