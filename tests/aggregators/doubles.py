"""Doubles of every kind that meets an accumulator: money, noise, bounds of the accumulators, extremes."""

import math

from hypothesis import strategies as st

MONEY = st.integers(-10_000_000, 10_000_000).map(lambda cents: cents / 100)
# Where a value stops fitting the narrow accumulators, on both sides.
AT_THE_BOUNDS = st.builds(
    lambda mantissa, exponent: math.ldexp(mantissa, exponent),
    st.sampled_from([1, 3, 2**52, 2**53 - 1, -1, -(2**53) + 1]),
    st.sampled_from([-150, -149, -148, -97, -96, -95, -44, -43, 65, 66, 67, 117, 118, 119, 120]),
)
EXTREME = st.sampled_from(
    [
        5e-324,
        -5e-324,
        2.0**-1074,
        2.0**-1022,
        1e-300,
        1e308,
        -1e308,
        1.7976931348623157e308,
        -1.7e308,
        2.0**970,
    ]
)
ANY = st.floats(allow_nan=False, allow_infinity=False)

ORDINARY = MONEY | st.floats(-1e6, 1e6) | AT_THE_BOUNDS
DOUBLES = (MONEY | AT_THE_BOUNDS | EXTREME | ANY).map(lambda value: value + 0.0)
