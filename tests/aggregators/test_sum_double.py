"""Sums of doubles where they are hard: against math.fsum, at the range's ends, out of it and back."""

import math
import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from railgun.aggregators.exact.variance import short_variance
from railgun.language.ast import Aggregator, WindowKind
from railgun.language.types import DOUBLE
from tests.aggregators.doubles import AT_THE_BOUNDS, MONEY
from tests.aggregators.memory import at, double, to_words
from tests.aggregators.window_model import Group
from tests.oracle.exact import fraction_to_double

LARGEST = 1.7976931348623157e308


def group_of(values: list[float]) -> Group:
    """A sliding window of these values, in order."""
    group = Group(DOUBLE, WindowKind.SLIDING)
    for i, value in enumerate(values):
        group.add((1_000 + i, i, value))
    return group


def wide_pages(group: Group) -> list[int]:
    """The ids of the wide pages of the sum and of the sum of squares; 0 for none."""
    return [int(group.row[offset]) for offset, cell in group.cells.values() if cell.wide_words]


@given(st.lists(st.one_of(MONEY, AT_THE_BOUNDS, st.floats(-1e300, 1e300)).map(lambda value: value + 0.0)))
def test_sum_is_fsum(values: list[float]) -> None:
    found = group_of(values).result(Aggregator.SUM)
    assert found == (math.fsum(values) if values else None)


def test_a_window_that_moves_for_long_does_not_drift() -> None:
    chance = random.Random(7)
    kinds = (
        lambda: round(chance.lognormvariate(3, 1), 2),
        lambda: chance.uniform(-1e6, 1e6),
        lambda: 1e18 * chance.random(),
        lambda: chance.gauss(0, 1),
    )
    values = [chance.choice(kinds)() for _ in range(20_000)]
    group = group_of(values[:100])
    for i in range(100, len(values)):
        group.add((1_000 + i, i, values[i]))
        group.remove_oldest()
        if i % 1_000 == 0:
            assert group.result(Aggregator.SUM) == math.fsum(values[i - 99 : i + 1])
            group.check((Aggregator.VAR_SAMP, Aggregator.STDDEV_POP))


@pytest.mark.parametrize("value", [LARGEST, 2.0**1023, -LARGEST])
def test_beyond_the_range_is_null_and_comes_back(value: float) -> None:
    group = group_of([1.5, value, value, 2.5])
    group.check()
    assert group.result(Aggregator.SUM) is None
    assert group.result(Aggregator.AVG) is None
    group.remove_oldest()
    group.remove_oldest()
    group.check()
    assert group.result(Aggregator.SUM) == math.fsum([value, 2.5])
    group.remove_oldest()
    assert group.result(Aggregator.SUM) == 2.5


def test_opposites_beyond_the_range_cancel() -> None:
    group = group_of([LARGEST, LARGEST, 2.0**-1074, -LARGEST, -LARGEST])
    assert group.result(Aggregator.SUM) == 2.0**-1074
    group.check()


def test_a_wide_page_goes_with_its_last_value() -> None:
    group = group_of([1.0, 2.0**-1074, 1e200, 3.0])
    assert all(wide_pages(group))
    group.remove_oldest()
    group.remove_oldest()
    assert all(wide_pages(group))
    group.remove_oldest()
    assert not any(wide_pages(group))
    group.check()
    assert group.result(Aggregator.SUM) == 3.0


def test_ordinary_values_need_no_page() -> None:
    group = group_of([0.0, 0.01, 2.0**118, -1e35, 2.0**-96, 1e-12, 123456.78])
    assert not any(wide_pages(group))
    group.check()


def test_state_is_a_function_of_the_values_alone() -> None:
    """What has been in the window before, wide values too, shows in no word of the row."""
    before = group_of([1e300, 5e-324, -7.25, 2.5, 0.1])
    for _ in range(3):
        before.remove_oldest()
    fresh = group_of([2.5, 0.1])
    sums = [
        offset + word
        for offset, cell in fresh.cells.values()
        if cell.wide_words
        for word in range(cell.words)
    ]
    assert before.row[sums].tolist() == fresh.row[sums].tolist()


def test_minus_zero_is_no_result() -> None:
    """The mean of −2^-1074 and 0 is rounded to zero, which has no sign."""
    assert math.copysign(1.0, group_of([-(2.0**-1074), 0.0]).result(Aggregator.AVG)) == 1.0


@given(
    st.integers(1, 2**32 - 1),
    st.integers(0, 2**128 - 1) | st.integers(0, 2**40),
    st.integers(0, 2**70) | st.integers(0, 3),
    st.sampled_from([3, 4]),
    st.integers(1, 2**64 - 1) | st.integers(1, 100),
)
@example(2, 2**127, 0, 4, 2)
@example(3, 5, 0, 3, 2**63)
def test_short_variance(n: int, total: int, more: int, limbs: int, divisor: int) -> None:
    squares = -(-total * total // n) + more
    if squares >= 2 ** (64 * limbs):
        return
    words_of_squares = to_words(squares, limbs)
    low, high = (np.uint64(word) for word in to_words(total, 2))
    bits, done = short_variance(
        low, high, at(words_of_squares), limbs, -192, np.uint64(n), np.uint64(divisor)
    )
    assert done == (n * squares < 2**256)
    if done:
        exact = Fraction(n * squares - total * total, divisor) / 2**192
        assert double(bits) == fraction_to_double(exact)
