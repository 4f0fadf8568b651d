"""Words in memory for kernels under test, and Python integers in and out of them."""

import struct
from collections import deque
from typing import Any

import numpy as np
import numpy.typing as npt

from reservoir.native.jit import address

Words = npt.NDArray[np.uint64]

WORD = 2**64
_held: deque[npt.NDArray[Any]] = deque(maxlen=100)


def words(count: int) -> Words:
    """That many zeros."""
    return np.zeros(count, np.uint64)


def to_words(value: int, count: int) -> Words:
    """An integer of either sign as words, least first, in two's complement."""
    return np.array([(value >> (64 * i)) % WORD for i in range(count)], np.uint64)


def unsigned(array: Words) -> int:
    """The integer that words hold."""
    return sum(int(word) << (64 * i) for i, word in enumerate(array))


def signed(array: Words) -> int:
    """The integer that words hold in two's complement."""
    value = unsigned(array)
    return value - WORD ** len(array) if array[-1] >> np.uint64(63) else value


def at(array: npt.NDArray[Any], word: int = 0) -> int:
    """The address of a word of an array, which lives on for a while even where nobody else has it."""
    _held.append(array)
    return address(array) + 8 * word


def bits(value: float) -> np.uint64:
    """The IEEE bits of a double."""
    return np.uint64(struct.unpack("<Q", struct.pack("<d", value))[0])


def double(word: int) -> float:
    """The double of these bits."""
    return float(struct.unpack("<d", struct.pack("<Q", int(word)))[0])
