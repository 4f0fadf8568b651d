"""Addresses of bytes objects point at their bytes."""

import ctypes

from hypothesis import given
from hypothesis import strategies as st

from reservoir.native.jit import bytes_address


@given(st.binary(max_size=200))
def test_the_bytes_are_there(data: bytes) -> None:
    assert ctypes.string_at(bytes_address(data), len(data) + 1) == data + b"\0"
