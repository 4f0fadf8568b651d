"""How kernels are compiled: the one `jit`, its on-disk cache, and memory reached by address.

Kernels take a few integers (addresses of numpy arrays) instead of dozens of arrays: unboxing an array
costs Numba about 0.2 µs, which at one event per batch would be most of the time.  An address is a plain
`int64`; the Python object that made the array keeps it alive for as long as the address is in use.

Numba's cache does not notice that a function imported from another file has changed, so the cache folder
is keyed by a hash of the files with kernels and of all that these import.
"""

import ctypes
import os
import shutil
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

from reservoir.kernel_sources import digest, kernel_sources

F = TypeVar("F", bound=Callable[..., Any])

_CACHES_KEPT = 4
_KEPT_S = 7 * 86_400  # other checkouts, and versions that run side by side, have caches of their own


@cache
def cache_folder() -> Path:
    """Where compiled kernels of these sources are kept; there once one has been compiled."""
    base = os.environ.get("RAILGUN_KERNEL_CACHE") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache"),
        "railgun",
        "kernels",
    )
    return Path(base) / digest(kernel_sources())


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


if "NUMBA_CACHE_DIR" not in os.environ:
    _make_room(cache_folder())
    os.environ["NUMBA_CACHE_DIR"] = str(cache_folder())

import numba  # noqa: E402  (reads NUMBA_CACHE_DIR when imported)
from numba.core import cgutils, types  # noqa: E402
from numba.extending import intrinsic  # noqa: E402

_unliteral: Any = types.unliteral  # type: ignore[attr-defined]
numba.config.CACHE_DIR = os.environ["NUMBA_CACHE_DIR"]


def jit(function: F) -> F:
    """Compile a top-level function: cached on disk, without the interpreter lock, IEEE division."""
    compiled: Any = numba.njit(cache=True, nogil=True, error_model="numpy", boundscheck=False)(function)
    resolve = compiled.get_call_template

    def resolve_without_literals(args: Any, kws: Any) -> Any:
        """Numba would compile a kernel again for every constant it is called with; LLVM inlines them anyway."""
        plain = {name: _unliteral(kind) for name, kind in dict(kws).items()}
        return resolve(tuple(_unliteral(kind) for kind in args), plain)

    compiled.get_call_template = resolve_without_literals
    return cast(F, compiled)


def address(array: np.ndarray[Any, Any]) -> int:
    """Byte address of the first element of a C-contiguous array. The caller keeps the array alive."""
    return int(array.__array_interface__["data"][0])


def _pointer(llvm_type: Any) -> Any:
    return llvm_type.as_pointer()


def _loader(numba_type: Any) -> Any:
    @intrinsic  # type: ignore[untyped-decorator]
    def load(typingctx: Any, where: Any) -> Any:
        signature = numba_type(types.int64)

        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            pointer = builder.inttoptr(args[0], _pointer(context.get_value_type(numba_type)))
            return builder.load(pointer, align=1)

        return signature, codegen

    return load


def _storer(numba_type: Any) -> Any:
    @intrinsic  # type: ignore[untyped-decorator]
    def store(typingctx: Any, where: Any, value: Any) -> Any:
        signature = types.void(types.int64, numba_type)

        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            pointer = builder.inttoptr(args[0], _pointer(context.get_value_type(numba_type)))
            builder.store(args[1], pointer, align=1)
            return context.get_dummy_value()

        return signature, codegen

    return store


# Loads and stores at a byte address, aligned or not: ld64(addr) -> uint64, st64(addr, uint64), and so on.
ld64, st64 = _loader(types.uint64), _storer(types.uint64)
ldi64, sti64 = _loader(types.int64), _storer(types.int64)
ld32, st32 = _loader(types.uint32), _storer(types.uint32)
ldi32, sti32 = _loader(types.int32), _storer(types.int32)
ld16 = _loader(types.uint16)
ld8, st8 = _loader(types.uint8), _storer(types.uint8)


@intrinsic  # type: ignore[untyped-decorator]
def _as_pointer(typingctx: Any, where: Any) -> Any:
    signature = types.voidptr(types.int64)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], cgutils.voidptr_t)

    return signature, codegen


@jit
def view_u64(where, n):  # type: ignore[no-untyped-def]
    """The n uint64 at a byte address, as an array that owns nothing."""
    return numba.carray(_as_pointer(np.int64(where)), (n,), np.uint64)


@jit
def view_u8(where, n):  # type: ignore[no-untyped-def]
    """The n uint8 at a byte address."""
    return numba.carray(_as_pointer(np.int64(where)), (n,), np.uint8)


@intrinsic  # type: ignore[untyped-decorator]
def bits_f64(typingctx: Any, word: Any) -> Any:
    """The double whose IEEE bits are this uint64."""
    signature = types.float64(types.uint64)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.bitcast(args[0], context.get_value_type(types.float64))

    return signature, codegen


@intrinsic  # type: ignore[untyped-decorator]
def f64_bits(typingctx: Any, value: Any) -> Any:
    """The IEEE bits of a double, as uint64."""
    signature = types.uint64(types.float64)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.bitcast(args[0], context.get_value_type(types.uint64))

    return signature, codegen


@intrinsic  # type: ignore[untyped-decorator]
def clz64(typingctx: Any, word: Any) -> Any:
    """Leading zero bits of a uint64 (64 for zero), as int64."""
    signature = types.int64(types.uint64)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.ctlz(args[0], context.get_constant(types.boolean, 0))

    return signature, codegen


@intrinsic  # type: ignore[untyped-decorator]
def mulhi64(typingctx: Any, a: Any, b: Any) -> Any:
    """The upper 64 bits of the 128-bit product of two uint64."""
    signature = types.uint64(types.uint64, types.uint64)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        from llvmlite import ir

        wide = ir.IntType(128)
        product = builder.mul(builder.zext(args[0], wide), builder.zext(args[1], wide))
        return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), ir.IntType(64))

    return signature, codegen


@intrinsic  # type: ignore[untyped-decorator]
def prefetch(typingctx: Any, where: Any) -> Any:
    """Ask for the cache line at a byte address, to be written soon; any address will do."""
    signature = types.void(types.int64)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        from llvmlite import ir

        flag = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, flag, flag, flag])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(function, [builder.inttoptr(args[0], cgutils.voidptr_t), flag(1), flag(3), flag(1)])
        return context.get_dummy_value()

    return signature, codegen


@intrinsic  # type: ignore[untyped-decorator]
def copy_bytes(typingctx: Any, target: Any, source: Any, n: Any) -> Any:
    """Copy n bytes from one address to another; the two do not overlap."""
    signature = types.void(types.int64, types.int64, types.int64)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        pointers = [builder.inttoptr(arg, cgutils.voidptr_t) for arg in args[:2]]
        cgutils.raw_memcpy(builder, pointers[0], pointers[1], args[2], 1)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic  # type: ignore[untyped-decorator]
def move_bytes(typingctx: Any, target: Any, source: Any, n: Any) -> Any:
    """Copy n bytes from one address to another; the two may overlap."""
    signature = types.void(types.int64, types.int64, types.int64)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        pointers = [builder.inttoptr(arg, cgutils.voidptr_t) for arg in args[:2]]
        cgutils.raw_memmove(builder, pointers[0], pointers[1], args[2], 1)
        return context.get_dummy_value()

    return signature, codegen


@cache
def entry_address(function: Callable[[int], int]) -> int:
    """Compile a top-level `int64 -> int64` function as an entry point of its own and give its address.

    A kernel that calls it with `call_entry` does not take it in: what is rarely needed, and large, is compiled
    once, not again inside everything that can reach it.
    """
    options = {"error_model": "numpy", "boundscheck": False}
    entry = numba.cfunc("int64(int64)", nopython=True, cache=True, **options)(function)
    _ENTRIES.append(entry)
    return int(entry.address)


_ENTRIES: list[Any] = []  # keeps the code of entry points in memory


def entry_points() -> list[Callable[[int], int]]:
    """The functions that `entry_address` was asked for, in this process."""
    return [entry.__wrapped__ for entry in _ENTRIES]


@intrinsic  # type: ignore[untyped-decorator]
def call_entry(typingctx: Any, where: Any, argument: Any) -> Any:
    """Call the entry point at an address with one int64; its int64."""
    signature = types.int64(types.int64, types.int64)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        from llvmlite import ir

        word = ir.IntType(64)
        pointer = builder.inttoptr(args[0], ir.FunctionType(word, [word]).as_pointer())
        return builder.call(pointer, [args[1]])

    return signature, codegen


def array_at(where: int, n: int, dtype: type[np.generic]) -> np.ndarray[Any, Any]:
    """The n items at a byte address as an array that owns nothing: valid while their owner keeps them."""
    size = np.dtype(dtype).itemsize * n
    memory: Any = (ctypes.c_char * size).from_address(where) if size else b""
    return np.frombuffer(memory, dtype)
