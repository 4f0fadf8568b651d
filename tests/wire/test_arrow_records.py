"""Records become binary values of Arrow, and the same records again."""

import pyarrow as pa
import pytest

from railgun.wire.arrow_records import array_of, records_of

TEXTS = [b"a", b"", b"bcd", b"\x00e"]


@pytest.mark.parametrize("type_", [pa.binary(), pa.large_binary()])
def test_there_and_back(type_: pa.DataType) -> None:
    records = records_of(pa.array([b"before", *TEXTS, b"behind"], type_)[1:-1])
    assert [records.record(row) for row in range(len(records))] == TEXTS
    assert array_of(records).to_pylist() == TEXTS
    assert array_of(records.part(1, 3)).to_pylist() == TEXTS[1:3]


def test_none() -> None:
    assert array_of(records_of(pa.array([], pa.binary()))).to_pylist() == []
