"""SipHash with 128 bits of output: the keyed hash of ids, entities and strings, in kernels and from Python.

We use rounds 1-3 (one per word, three at the end), as hash tables that face clients do. Rounds 2-4 are the original
ones, and are here to test against the published vectors. Source: Aumasson, Bernstein, "SipHash: a fast short-input PRF"
(2012), and the authors' reference code for the 128-bit output.
"""

from typing import Any

import numpy as np

from reservoir.native.jit import address, jit, ld8, ld64, ldi64, st64

_INIT0 = np.uint64(0x736F6D6570736575)
_INIT1 = np.uint64(0x646F72616E646F6D)
_INIT2 = np.uint64(0x6C7967656E657261)
_INIT3 = np.uint64(0x7465646279746573)
_OUT128 = np.uint64(0xEE)
_SECOND = np.uint64(0xDD)


@jit
def _rotl(x: Any, bits: Any) -> Any:
    return (x << np.uint64(bits)) | (x >> np.uint64(64 - bits))


@jit
def _round(v0: Any, v1: Any, v2: Any, v3: Any) -> Any:
    v0 += v1
    v2 += v3
    v1 = _rotl(v1, 13) ^ v0
    v3 = _rotl(v3, 16) ^ v2
    v0 = _rotl(v0, 32)
    v2 += v1
    v0 += v3
    v1 = _rotl(v1, 17) ^ v2
    v3 = _rotl(v3, 21) ^ v0
    v2 = _rotl(v2, 32)
    return v0, v1, v2, v3


@jit
def _last_word(addr: Any, n: Any) -> Any:
    """The last word: the bytes after the last whole one, and n in the top byte. Reads only in [addr, addr + n)."""
    left = n & 7
    word = np.uint64(n) << np.uint64(56)
    if left and n >= 8:
        return word | (ld64(addr + n - 8) >> np.uint64(8 * (8 - left)))
    for i in range(left):
        word |= np.uint64(ld8(addr + i)) << np.uint64(8 * i)
    return word


@jit
def siphash128_rounds(addr: Any, n: Any, k0: Any, k1: Any, word_rounds: Any, final_rounds: Any) -> Any:
    """(hi, lo) uint64: SipHash-c-d-128 of the n bytes at addr, key words k0, k1 (little-endian halves).

    hi holds output bytes 0 to 7 and lo bytes 8 to 15, each read as a little-endian word.
    """
    v0 = k0 ^ _INIT0
    v1 = k1 ^ _INIT1 ^ _OUT128
    v2 = k0 ^ _INIT2
    v3 = k1 ^ _INIT3
    for i in range((n >> 3) + 1):
        word = _last_word(addr, n) if i == n >> 3 else ld64(addr + 8 * i)
        v3 ^= word
        for _ in range(word_rounds):
            v0, v1, v2, v3 = _round(v0, v1, v2, v3)
        v0 ^= word
    v2 ^= _OUT128
    for _ in range(final_rounds):
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    hi = v0 ^ v1 ^ v2 ^ v3
    v1 ^= _SECOND
    for _ in range(final_rounds):
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    return hi, v0 ^ v1 ^ v2 ^ v3


@jit
def siphash128(addr: Any, n: Any, k0: Any, k1: Any) -> Any:
    """(hi, lo) uint64: SipHash-1-3-128 of the n bytes at addr, key words k0, k1 (uint64)."""
    return siphash128_rounds(addr, n, k0, k1, 1, 3)


@jit
def siphash128_many(
    heap_addr: Any, offsets_addr: Any, n: Any, k0: Any, k1: Any, hi_addr: Any, lo_addr: Any
) -> None:
    """SipHash-1-3-128 of n byte strings: string i is heap[offsets[i]:offsets[i + 1]] (int64 offsets).

    Writes uint64 words at hi_addr and lo_addr.
    """
    for i in range(n):
        start = ldi64(offsets_addr + 8 * i)
        hi, lo = siphash128(heap_addr + start, ldi64(offsets_addr + 8 * i + 8) - start, k0, k1)
        st64(hi_addr + 8 * i, hi)
        st64(lo_addr + 8 * i, lo)


def siphash128_bytes(data: bytes, k0: int, k1: int) -> tuple[int, int]:
    """(hi, lo) of SipHash-1-3-128 of some bytes, from Python."""
    buffer = np.frombuffer(data or b"\0", np.uint8)
    hi, lo = siphash128(address(buffer), len(data), np.uint64(k0), np.uint64(k1))
    return int(hi), int(lo)
