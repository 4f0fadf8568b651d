"""Division of long integers by 64-bit words, which compiled code has no instruction for here."""

from typing import Any

import numpy as np

from reservoir.compiled import jit, ld64, st64

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
    return _divide_long(high, low, divisor)


@jit
def _divide_long(high: Any, low: Any, divisor: Any) -> Any:
    """Knuth's algorithm D (TAOCP 4.3.1) with two digits of 32 bits, divisor of 33 to 64 bits."""
    shift = u(0)
    while (divisor >> u(63)) == u(0):
        divisor <<= u(1)
        shift += u(1)
    if shift != u(0):
        high = (high << shift) | (low >> (u(64) - shift))
        low <<= shift
    divisor_high = divisor >> u(32)
    divisor_low = divisor & u(0xFFFFFFFF)
    upper, high = _quotient_digit(high, low >> u(32), divisor, divisor_high, divisor_low)
    lower, high = _quotient_digit(high, low & u(0xFFFFFFFF), divisor, divisor_high, divisor_low)
    return (upper << u(32)) | lower, high >> shift


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
