"""The functions that kernels use beside plain arithmetic: memory by address, bits of doubles, words on the stack.

Only `reservoir.native.jit` imports this, and only if Numba is used.
"""

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from reservoir.native.kernel_mode import IS_CHECKED
from reservoir.native.numba import jit

if IS_CHECKED:
    from reservoir.native.checks import emit as _check
else:

    def _check(builder: Any, where: Any, size_bytes: Any) -> None:
        """Do nothing, because kernels are not checked."""


def _pointer(llvm_type: Any) -> Any:
    return llvm_type.as_pointer()


def _loader(numba_type: Any) -> Any:
    @intrinsic  # type: ignore[untyped-decorator]
    def load(typingctx: Any, where: Any) -> Any:
        signature = numba_type(types.int64)

        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            _check(builder, args[0], numba_type.bitwidth // 8)
            pointer = builder.inttoptr(args[0], _pointer(context.get_value_type(numba_type)))
            return builder.load(pointer, align=1)

        return signature, codegen

    return load


def _storer(numba_type: Any) -> Any:
    @intrinsic  # type: ignore[untyped-decorator]
    def store(typingctx: Any, where: Any, value: Any) -> Any:
        signature = types.void(types.int64, numba_type)

        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            _check(builder, args[0], numba_type.bitwidth // 8)
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
def _as_pointer(typingctx: Any, where: Any, size_bytes: Any) -> Any:
    signature = types.voidptr(types.int64, types.int64)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        _check(builder, args[0], args[1])
        return builder.inttoptr(args[0], cgutils.voidptr_t)

    return signature, codegen


@jit
def view_u64(where, n):  # type: ignore[no-untyped-def]
    """The n uint64 at a byte address, as an array that owns nothing."""
    return numba.carray(_as_pointer(np.int64(where), np.int64(8 * n)), (n,), np.uint64)


@jit
def view_u8(where, n):  # type: ignore[no-untyped-def]
    """The n uint8 at a byte address."""
    return numba.carray(_as_pointer(np.int64(where), np.int64(n)), (n,), np.uint8)


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
        wide = ir.IntType(128)
        product = builder.mul(builder.zext(args[0], wide), builder.zext(args[1], wide))
        return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), ir.IntType(64))

    return signature, codegen


@intrinsic  # type: ignore[untyped-decorator]
def prefetch(typingctx: Any, where: Any) -> Any:
    """Ask for the cache line at a byte address, to be written soon; any address will do."""
    signature = types.void(types.int64)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
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
        for where in args[:2]:
            _check(builder, where, args[2])
        pointers = [builder.inttoptr(arg, cgutils.voidptr_t) for arg in args[:2]]
        cgutils.raw_memcpy(builder, pointers[0], pointers[1], args[2], 1)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic  # type: ignore[untyped-decorator]
def move_bytes(typingctx: Any, target: Any, source: Any, n: Any) -> Any:
    """Copy n bytes from one address to another; the two may overlap."""
    signature = types.void(types.int64, types.int64, types.int64)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        for where in args[:2]:
            _check(builder, where, args[2])
        pointers = [builder.inttoptr(arg, cgutils.voidptr_t) for arg in args[:2]]
        cgutils.raw_memmove(builder, pointers[0], pointers[1], args[2], 1)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic  # type: ignore[untyped-decorator]
def load_be64(typingctx: Any, where: Any) -> Any:
    """The uint64 in the eight big-endian bytes at an address of any alignment."""
    signature = types.uint64(types.int64)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        _check(builder, args[0], 8)
        pointer = builder.inttoptr(args[0], context.get_value_type(types.uint64).as_pointer())
        return builder.bswap(builder.load(pointer, align=1))

    return signature, codegen


@intrinsic  # type: ignore[untyped-decorator]
def store_be64(typingctx: Any, where: Any, word: Any) -> Any:
    """Store a uint64 as eight big-endian bytes at an address of any alignment."""
    signature = types.void(types.int64, types.uint64)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        _check(builder, args[0], 8)
        pointer = builder.inttoptr(args[0], context.get_value_type(types.uint64).as_pointer())
        builder.store(builder.bswap(args[1]), pointer, align=1)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def stack_words(typingctx: Any, count: Any) -> Any:
    """Byte address of `count` (a constant) uint64 words, not zeroed, that live until the kernel returns."""
    if not isinstance(count, types.IntegerLiteral):
        return None
    size = count.literal_value
    # The signature names the literal: Numba keeps one implementation per signature.
    signature = types.int64(count)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        pointer = cgutils.alloca_once(builder, ir.IntType(64), size=size)
        return builder.ptrtoint(pointer, ir.IntType(64))

    return signature, codegen


@intrinsic  # type: ignore[untyped-decorator]
def call_entry(typingctx: Any, where: Any, argument: Any) -> Any:
    """Call the entry point at an address with one int64; its int64."""
    signature = types.int64(types.int64, types.int64)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        word = ir.IntType(64)
        pointer = builder.inttoptr(args[0], ir.FunctionType(word, [word]).as_pointer())
        return builder.call(pointer, [args[1]])

    return signature, codegen
