"""Long integers as arrays of 64-bit words (limbs), least word first, from a byte address on. `limbs`: how many words.

The kernels for exact sums, sums of squares and variances add to such integers and divide them; other aggregators only
clear their cells by `clear`. Signed ones are in two's complement. Kernels return nothing unless they say so, and never
allocate. Compiled code has no instruction here that divides 128 bits by 64, so `divide_wide` does it in steps.
"""

from typing import Any

import numpy as np

from reservoir.native.jit import clz64, jit, ld64, mulhi64, st64

u = np.uint64


@jit
def divide_wide(high: Any, low: Any, divisor: Any) -> Any:
    """Quotient and remainder of the 128-bit (high, low) by a word, which must be greater than `high`."""
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
    """`divide_wide` for a divisor whose top bit must be set: Knuth's algorithm D (TAOCP 4.3.1) in 32-bit digits."""
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
    """Divide an unsigned integer by a word in place, rounding down. Returns the remainder."""
    rest = u(0)
    for i in range(limbs - 1, -1, -1):
        quotient, rest = divide_wide(rest, ld64(where + 8 * i), divisor)
        st64(where + 8 * i, quotient)
    return rest


@jit
def clear(where: int, limbs: int) -> None:
    """Set to zero."""
    for i in range(limbs):
        st64(where + 8 * i, u(0))


@jit
def used(where: int, limbs: int) -> Any:
    """How many words an unsigned integer needs: `limbs` without the zero words at its top."""
    while limbs > 0 and ld64(where + 8 * (limbs - 1)) == u(0):
        limbs -= 1
    return limbs


@jit
def add_shifted(where: int, limbs: int, low: Any, high: Any, shift: int, negative: bool) -> None:
    """Add (or, if `negative`, subtract) the 128-bit (high, low) · 2^shift.

    The caller must see to it that the three words from shift / 64 on lie inside the integer.
    """
    bits = u(shift & 63)
    first = low << bits
    second = high << bits
    third = u(0)
    if bits != u(0):
        second |= low >> (u(64) - bits)
        third = high >> (u(64) - bits)
    mask = u(0) - u(negative)
    at = where + 8 * (shift >> 6)
    end = where + 8 * limbs
    # Subtracting is adding the complement of every word, and one.
    old = ld64(at)
    word = old + (first ^ mask)
    carry = u(word < old)
    first = word + u(negative)
    carry |= u(first < word)
    st64(at, first)
    old = ld64(at + 8)
    word = old + (second ^ mask)
    over = u(word < old)
    second = word + carry
    carry = over | u(second < word)
    st64(at + 8, second)
    old = ld64(at + 16)
    word = old + (third ^ mask)
    over = u(word < old)
    third = word + carry
    carry = over | u(third < word)
    st64(at + 16, third)
    propagate(at + 24, end, carry, negative)


@jit
def propagate(at: int, end: int, carry: Any, negative: bool) -> None:
    """Carry an addition (or a subtraction by complement) through the words from `at` up to `end`."""
    if negative:
        while carry == u(0) and at < end:
            old = ld64(at)
            st64(at, old - u(1))
            carry = u(old != u(0))
            at += 8
    else:
        while carry != u(0) and at < end:
            word = ld64(at) + u(1)
            st64(at, word)
            carry = u(word == u(0))
            at += 8


@jit
def add_limbs(where: int, limbs: int, other: int, other_limbs: int, shift: int) -> None:
    """Add the signed integer `other` · 2^shift, sign-extended to the length of the sum."""
    bits = u(shift & 63)
    offset = shift >> 6
    sign = u(0) - (ld64(other + 8 * (other_limbs - 1)) >> u(63))
    carry = u(0)
    under = u(0)
    for i in range(offset, limbs):
        here = sign
        if i - offset < other_limbs:
            here = ld64(other + 8 * (i - offset))
        word = here << bits
        if bits != u(0):
            word |= under >> (u(64) - bits)
        under = here
        old = ld64(where + 8 * i)
        total = old + word
        over = u(total < old)
        word = total + carry
        carry = over | u(word < total)
        st64(where + 8 * i, word)


@jit
def magnitude(target: int, where: int, limbs: int) -> Any:
    """Write the absolute value of a signed integer to `target` (may be `where`). Returns whether it was negative."""
    negative = (ld64(where + 8 * (limbs - 1)) >> u(63)) != u(0)
    if not negative:
        for i in range(limbs):
            st64(target + 8 * i, ld64(where + 8 * i))
        return negative
    carry = u(1)
    for i in range(limbs):
        word = ~ld64(where + 8 * i) + carry
        carry = u(carry != u(0) and word == u(0))
        st64(target + 8 * i, word)
    return negative


@jit
def multiply_word(target: int, where: int, limbs: int, factor: Any) -> None:
    """Write an unsigned integer times a word to `target`: limbs + 1 words."""
    carry = u(0)
    for i in range(limbs):
        word = ld64(where + 8 * i)
        low = word * factor
        total = low + carry
        carry = mulhi64(word, factor) + u(total < low)
        st64(target + 8 * i, total)
    st64(target + 8 * limbs, carry)


@jit
def subtract_square(where: int, limbs: int, root: int, root_limbs: int) -> None:
    """Subtract the square of an unsigned integer. `limbs` must be at least 2 · `root_limbs`."""
    for i in range(root_limbs):
        factor = ld64(root + 8 * i)
        if factor == u(0):
            continue
        carry = u(0)
        for j in range(root_limbs):
            word = ld64(root + 8 * j)
            low = word * factor
            product = low + carry
            carry = mulhi64(word, factor) + u(product < low)
            old = ld64(where + 8 * (i + j))
            st64(where + 8 * (i + j), old - product)
            carry += u(old < product)
        at = where + 8 * (i + root_limbs)
        end = where + 8 * limbs
        while carry != u(0) and at < end:
            old = ld64(at)
            st64(at, old - carry)
            carry = u(old < carry)
            at += 8
