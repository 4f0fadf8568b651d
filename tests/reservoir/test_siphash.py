"""SipHash: the authors' vectors for rounds 2-4, and an implementation over Python's integers for 1-3."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reservoir.native.jit import address
from reservoir.siphash import siphash128_bytes, siphash128_many, siphash128_rounds

# SipHash-2-4-128 of bytes 0, 1, 2, ... n-1 under the key 00 01 ... 0f, by n: from the authors' vectors.h.
PUBLISHED = {
    0: "a3817f04ba25a8e66df67214c7550293",
    1: "da87c1d86b99af44347659119b22fc45",
    2: "8177228da4a45dc7fca38bdef60affe4",
    3: "9c70b60c5267a94e5f33b6b02985ed51",
    4: "f88164c12d9c8faf7d0f6e7c7bcd5579",
    5: "1368875980776f8854527a07690e9627",
    6: "14eeca338b208613485ea0308fd7a15e",
    7: "a1f1ebbed8dbc153c0b84aa61ff08239",
    8: "3b62a9ba6258f5610f83e264f31497b4",
    9: "264499060ad9baabc47f8b02bb6d71ed",
    15: "5493e99933b0a8117e08ec0f97cfc3d9",
    16: "6ee2a4ca67b054bbfd3315bf85230577",
    17: "473d06e8738db89854c066c47ae47740",
    31: "2939b0183223fafc1723de4f52c43d35",
    63: "5150d1772f50834a503e069a973fbd7c",
}
MASK = (1 << 64) - 1


def plain_siphash128(data: bytes, key: bytes, word_rounds: int, final_rounds: int) -> bytes:
    """The definition, on Python's integers."""
    k0, k1 = int.from_bytes(key[:8], "little"), int.from_bytes(key[8:], "little")
    state = [
        int.from_bytes(b"somepseu", "big") ^ k0,
        int.from_bytes(b"dorandom", "big") ^ k1 ^ 0xEE,
        int.from_bytes(b"lygenera", "big") ^ k0,
        int.from_bytes(b"tedbytes", "big") ^ k1,
    ]

    def rounds(count: int) -> None:
        a, b, c, d = state
        for _ in range(count):
            a, c = (a + b) & MASK, (c + d) & MASK
            b, d = (b << 13 | b >> 51) & MASK, (d << 16 | d >> 48) & MASK
            b, d, a = b ^ a, d ^ c, (a << 32 | a >> 32) & MASK
            c, a = (c + b) & MASK, (a + d) & MASK
            b, d = (b << 17 | b >> 47) & MASK, (d << 21 | d >> 43) & MASK
            b, d, c = b ^ c, d ^ a, (c << 32 | c >> 32) & MASK
        state[:] = a, b, c, d

    padded = data + b"\0" * (7 - len(data) % 8) + bytes([len(data) % 256])
    for i in range(0, len(padded), 8):
        word = int.from_bytes(padded[i : i + 8], "little")
        state[3] ^= word
        rounds(word_rounds)
        state[0] ^= word
    state[2] ^= 0xEE
    rounds(final_rounds)
    first = state[0] ^ state[1] ^ state[2] ^ state[3]
    state[1] ^= 0xDD
    rounds(final_rounds)
    return first.to_bytes(8, "little") + (state[0] ^ state[1] ^ state[2] ^ state[3]).to_bytes(8, "little")


def compiled_siphash128(data: bytes, key: bytes, word_rounds: int, final_rounds: int) -> bytes:
    buffer = np.frombuffer(data or b"\0", np.uint8)
    k0, k1 = np.frombuffer(key, "<u8")
    hi, lo = siphash128_rounds(address(buffer), len(data), k0, k1, word_rounds, final_rounds)
    return int(hi).to_bytes(8, "little") + int(lo).to_bytes(8, "little")


@pytest.mark.parametrize(("n", "digest"), PUBLISHED.items())
def test_rounds_2_4_give_the_published_vectors(n: int, digest: str) -> None:
    data, key = bytes(range(n)), bytes(range(16))
    assert compiled_siphash128(data, key, 2, 4).hex() == digest
    assert plain_siphash128(data, key, 2, 4).hex() == digest


@given(st.binary(max_size=300), st.binary(min_size=16, max_size=16))
def test_rounds_1_3_equal_the_definition(data: bytes, key: bytes) -> None:
    expected = plain_siphash128(data, key, 1, 3)
    assert compiled_siphash128(data, key, 1, 3) == expected
    hi, lo = siphash128_bytes(data, *(int(word) for word in np.frombuffer(key, "<u8")))
    assert hi.to_bytes(8, "little") + lo.to_bytes(8, "little") == expected


@given(st.lists(st.binary(max_size=40), max_size=20))
def test_many_strings_of_one_heap(strings: list[bytes]) -> None:
    heap = np.frombuffer(b"".join(strings) + b"\0", np.uint8)
    offsets = np.cumsum([0, *map(len, strings)], dtype=np.int64)
    words = np.zeros((2, len(strings) + 1), np.uint64)
    siphash128_many(
        address(heap), address(offsets), len(strings), np.uint64(7), np.uint64(8), *map(address, words)
    )
    got = [(int(hi), int(lo)) for hi, lo in words.T[: len(strings)]]
    assert got == [siphash128_bytes(string, 7, 8) for string in strings]
