"""Division of long integers by 64-bit words, which compiled code has no instruction for here."""

from typing import Any

import numpy as np

from reservoir.native.jit import clz64, jit, ld64, st64

u = np.uint64


@jit
def divide_wide(high: Any, low: Any, divisor: Any) -> Any:
    """Quotient and remainder of the 128-bit (high, low) by a word greater than `high`."""
    if divisor <= u(0xFFFFFFFF):
        part = (high << u(32)) | (low >> u(32))
        upper = part // divisor
        part = ((part - upper * divisor) << u(32)) | (low & u(0xFFFFFFFF))
        lower = part // divisor
        return (upper << u(32)) | lower, part - lower * divisor
    shift = u(clz64(divisor))
    high = (high << shift) | ((low >> u(1)) >> (u(63) - shift))
    quotient, rest = divide_normalized(high, low << shift, divisor << shift)
    return quotient, rest >> shift


@jit
def divide_normalized(high: Any, low: Any, divisor: Any) -> Any:
    """The same for a divisor with its top bit set: Knuth's algorithm D (TAOCP 4.3.1) in digits of 32 bits."""
    divisor_high = divisor >> u(32)
    divisor_low = divisor & u(0xFFFFFFFF)
    upper, high = _quotient_digit(high, low >> u(32), divisor, divisor_high, divisor_low)
    lower, high = _quotient_digit(high, low & u(0xFFFFFFFF), divisor, divisor_high, divisor_low)
    return (upper << u(32)) | lower, high


@jit
def _quotient_digit(high: Any, digit: Any, divisor: Any, divisor_high: Any, divisor_low: Any) -> Any:
    """One 32-bit digit of (high, digit) by a normalized divisor, and what remains."""
    guess = high // divisor_high
    rest = high - guess * divisor_high
    while guess > u(0xFFFFFFFF) or guess * divisor_low > ((rest << u(32)) | digit):
        guess -= u(1)
        rest += divisor_high
        if rest > u(0xFFFFFFFF):
            break
    return guess, ((high << u(32)) | digit) - guess * divisor


@jit
def divide_word(where: int, limbs: int, divisor: Any) -> Any:
    """Divide an unsigned integer by a word in place, rounding down; the remainder."""
    rest = u(0)
    for i in range(limbs - 1, -1, -1):
        quotient, rest = divide_wide(rest, ld64(where + 8 * i), divisor)
        st64(where + 8 * i, quotient)
    return rest
