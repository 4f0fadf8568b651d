"""Working memory of a kernel: words on its own stack, reached by address like any other."""

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic


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
