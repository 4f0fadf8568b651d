"""Control records come back as they were; what is none says so."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from railgun.wire.control_records import ControlRecordError, decode_control, encode_control

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


@given(st.dictionaries(st.text(), JSON, max_size=5))
def test_control_records_come_back(definition: dict[str, Any]) -> None:
    definition["kind"] = "add"
    assert decode_control(encode_control(definition)) == definition


@pytest.mark.parametrize(
    "record",
    [
        b"",
        b"\x01\x80",
        b"\x02",
        b"\x02\x80",
        b"\x02\x90",
        b"\x02\x81\xa4kind\x05",
        b"\x02\x80\x80",
        b"\x02" + b"\x81\xa1a" * 5000,
        b"\x02" + msgspec.msgpack.encode({1: 2}),
    ],
)
def test_what_is_no_control_record_says_so(record: bytes) -> None:
    with pytest.raises(ControlRecordError):
        decode_control(record)
