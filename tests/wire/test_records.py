"""Records: many in one buffer, and the runs of one kind among them."""

from itertools import groupby

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from railgun.wire.records import CONTROL, EVENT, Records, kind_of, runs_of

# Some are empty, and some have a first byte that names no kind.
RECORDS = st.lists(st.builds(bytes, st.lists(st.sampled_from((0, EVENT, CONTROL, 3, 255)), max_size=3)))


def inside(records: list[bytes]) -> Records:
    """In a buffer with bytes before and after that belong to nobody."""
    offsets = np.cumsum([3, *map(len, records)], dtype=np.int64)
    return Records(np.frombuffer(b"\x02\x02\x02" + b"".join(records) + b"\x02", np.uint8), offsets)


@given(RECORDS)
def test_they_are_what_they_were_made_of(records: list[bytes]) -> None:
    for made in (Records.of(records), inside(records)):
        assert made.to_list() == [made.record(row) for row in range(len(made))] == records
        assert made.joined() == b"".join(records)
        assert (len(made), made.size_bytes) == (len(records), len(b"".join(records)))
        half = len(records) // 2
        assert made.part(half, len(records)).to_list() == records[half:]


@given(RECORDS)
def test_runs_are_of_one_kind_and_as_long_as_can_be(records: list[bytes]) -> None:
    def kind(record: bytes) -> int:
        return CONTROL if record[:1] == b"\x02" else EVENT

    assert list(map(kind_of, records)) == list(map(kind, records))
    expected = [(each, list(run)) for each, run in groupby(records, kind)]
    for made in (Records.of(records), inside(records)):
        assert [(each, run.to_list()) for each, run in runs_of(made)] == expected
