"""The check that checked kernels call at each access (`checked`), and the code that compiles it into them."""

import ctypes
from typing import Any

import llvmlite.binding as llvm
import numba
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from reservoir.native.checked import CHECK_SYMBOL, check, ranges

# A kernel's own stack is allowed, from the frame of the check on: the most that a thread has.
_STACK_BYTES = 8 << 20


@intrinsic  # type: ignore[untyped-decorator]
def _load(typingctx: Any, where: Any) -> Any:
    signature = types.int64(types.int64)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        pointer = builder.inttoptr(args[0], ir.IntType(64).as_pointer())
        return builder.load(pointer)

    return signature, codegen


@intrinsic  # type: ignore[untyped-decorator]
def _stack(typingctx: Any) -> Any:
    """An address in the frame of this function."""
    signature = types.int64()

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.ptrtoint(cgutils.alloca_once(builder, ir.IntType(64)), ir.IntType(64))

    return signature, codegen


_slow = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64)(check)
_table = int(ranges.table.__array_interface__["data"][0])


@numba.cfunc("void(int64, int64)", nopython=True)
def _check(where, size_bytes):  # type: ignore[no-untyped-def]
    """Return if an access is allowed. If its range is not found here, Python looks it up again, because ranges change
    meanwhile.
    """
    if size_bytes == 0 or 0 <= where - _stack() < _STACK_BYTES:
        return
    if size_bytes > 0:
        low, high = 0, _load(_table)
        while low < high:
            middle = (low + high) >> 1
            if _load(_load(_table + 8) + 8 * middle) <= where:
                low = middle + 1
            else:
                high = middle
        if low and where + size_bytes <= _load(_load(_table + 16) + 8 * (low - 1)):
            return
    _slow(where, size_bytes)


llvm.add_symbol(CHECK_SYMBOL, _check.address)


def emit(builder: Any, where: Any, size_bytes: Any) -> None:
    """Have a kernel check an access. size_bytes: int64, or a constant."""
    word = ir.IntType(64)
    size = ir.Constant(word, size_bytes) if isinstance(size_bytes, int) else size_bytes
    kind = ir.FunctionType(ir.VoidType(), [word, word])
    builder.call(cgutils.get_or_insert_function(builder.module, kind, CHECK_SYMBOL), [where, size])
