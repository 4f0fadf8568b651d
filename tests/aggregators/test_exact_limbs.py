"""Long integers in words, against Python's own."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from railgun.aggregators.exact import limbs
from railgun.aggregators.exact.limbs import divide_wide, divide_word
from tests.aggregators.memory import WORD, at, signed, to_words, unsigned, words

LIMBS = st.integers(3, 9)
# Words with long runs of equal bits, where carries go far.
EDGE_WORDS = st.sampled_from([0, 1, 2, WORD // 2 - 1, WORD // 2, WORD // 2 + 1, WORD - 2, WORD - 1])
ONE_WORD = EDGE_WORDS | st.integers(0, WORD - 1)


def integers_of(count: int) -> st.SearchStrategy[int]:
    """Unsigned integers of so many words, edges included."""
    return st.lists(ONE_WORD, min_size=count, max_size=count).map(
        lambda parts: sum(part << (64 * i) for i, part in enumerate(parts))
    )


def wrapped(value: int, count: int) -> int:
    """Two's complement of that many words."""
    half = WORD**count // 2
    return (value + half) % WORD**count - half


@given(st.data(), LIMBS, st.booleans())
def test_add_shifted(data: st.DataObject, count: int, negative: bool) -> None:
    start = data.draw(integers_of(count))
    low, high = data.draw(ONE_WORD), data.draw(ONE_WORD)
    shift = data.draw(st.integers(0, 64 * (count - 3) + 63))
    array = to_words(start, count)
    limbs.add_shifted(at(array), count, np.uint64(low), np.uint64(high), shift, negative)
    term = (high << 64 | low) << shift
    assert signed(array) == wrapped(start - term if negative else start + term, count)


@given(st.data(), LIMBS)
def test_add_limbs(data: st.DataObject, count: int) -> None:
    start = data.draw(integers_of(count))
    other_count = data.draw(st.integers(1, count))
    other = to_words(data.draw(integers_of(other_count)), other_count)
    shift = data.draw(st.integers(0, 64 * (count - other_count) + 63))
    array = to_words(start, count)
    limbs.add_limbs(at(array), count, at(other), other_count, shift)
    assert signed(array) == wrapped(start + (signed(other) << shift), count)


@given(st.data(), LIMBS, st.booleans())
def test_magnitude(data: st.DataObject, count: int, in_place: bool) -> None:
    array = to_words(data.draw(integers_of(count)), count)
    value = signed(array)
    target = array if in_place else words(count)
    assert limbs.magnitude(at(target), at(array), count) == (value < 0)
    assert unsigned(target) == abs(value)


@given(st.data(), LIMBS, ONE_WORD)
def test_multiply_word(data: st.DataObject, count: int, factor: int) -> None:
    value = data.draw(integers_of(count))
    target = words(count + 1)
    limbs.multiply_word(at(target), at(to_words(value, count)), count, np.uint64(factor))
    assert unsigned(target) == value * factor


@given(st.data(), st.integers(1, 5))
def test_subtract_square(data: st.DataObject, count: int) -> None:
    root = data.draw(integers_of(count))
    rest = data.draw(integers_of(2 * count))
    array = to_words(root * root + rest, 2 * count + 1)
    limbs.subtract_square(at(array), 2 * count + 1, at(to_words(root, count)), count)
    assert unsigned(array) == rest


@given(st.data(), st.integers(1, 6))
def test_used_counts_the_words_below_the_zeros(data: st.DataObject, count: int) -> None:
    value = data.draw(integers_of(count))
    assert limbs.used(at(to_words(value, count + 2)), count + 2) == -(-value.bit_length() // 64)


@given(st.data(), LIMBS, ONE_WORD.filter(bool))
@example(None, 3, 1)
@example(None, 3, WORD - 1)
def test_divide_word(data: st.DataObject | None, count: int, divisor: int) -> None:
    value = WORD**count - 1 if data is None else data.draw(integers_of(count))
    array = to_words(value, count)
    rest = divide_word(at(array), count, np.uint64(divisor))
    assert (unsigned(array), int(rest)) == divmod(value, divisor)


@pytest.mark.parametrize("divisor", [2**32 - 1, 2**32, 2**32 + 1, 2**63, 2**64 - 1, 3, 0x8000_0000_FFFF_FFFF])
@given(st.data())
def test_divide_wide(divisor: int, data: st.DataObject) -> None:
    high = data.draw(st.integers(0, divisor - 1) | st.just(divisor - 1))
    low = data.draw(ONE_WORD)
    quotient, rest = divide_wide(np.uint64(high), np.uint64(low), np.uint64(divisor))
    assert (int(quotient), int(rest)) == divmod(high << 64 | low, divisor)
