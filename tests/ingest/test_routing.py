"""Routing by columns and by single events agree, and records are dealt out whole."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from railgun.catalog.definitions import parse_definitions
from railgun.ingest.routing import Router
from railgun.ingest.taken_records import take_records
from railgun.wire.encode import encode_columns
from railgun.wire.partition import NOT_SENT
from railgun.wire.table_validator import TableValidator
from railgun.wire.validator import EventValidator, Roles

DEFINITIONS = """
[streams.s]
time = "ts"
id = "id"
partitioners = ["card", "*", "shop"]
partitions = {partitions}
[streams.s.fields]
ts = "timestamp"
id = "string"
card = "string"
shop = "long"
"""

ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "ts": st.integers(0, 10),
            "id": st.text(max_size=5),
            "card": st.none() | st.text(max_size=5),
            "shop": st.none() | st.integers(-(2**63), 2**63 - 1),
        }
    ),
    max_size=20,
)


@pytest.mark.parametrize("partitions", [1, 3])
@given(rows=ROWS)
def test_columns_go_where_single_events_go(partitions: int, rows: list[dict[str, object]]) -> None:
    stream = parse_definitions(DEFINITIONS.format(partitions=partitions)).streams["s"]
    router = Router(stream)
    roles = Roles(stream.schema(1), "ts", "id", ("card", "shop"))
    schema = pa.schema([("ts", pa.int64()), ("id", pa.string()), ("card", pa.string()), ("shop", pa.int64())])
    events = TableValidator(roles).admit(pa.RecordBatch.from_pylist(rows, schema)).events
    records = encode_columns(1, events).to_list()
    dealt: dict[tuple[str, int], list[bytes]] = {}
    for shares in router.shares(events):
        for share in shares:
            taken = take_records(encode_columns(1, events), share.rows).to_list()
            assert taken
            dealt[share.partitioner, share.partition] = taken
    expected: dict[tuple[str, int], list[bytes]] = {}
    for row, record in zip(rows, records):
        partitions_of = router.partitions(router.routed(EventValidator(roles).admit(row).values))
        for partitioner, partition in zip(stream.partitioners, partitions_of):
            if partition != NOT_SENT:
                expected.setdefault((partitioner, partition), []).append(record)
    assert dealt == expected


def test_all_rows_need_no_copy() -> None:
    stream = parse_definitions(DEFINITIONS.format(partitions=1)).streams["s"]
    schema = pa.schema([("ts", pa.int64()), ("id", pa.string()), ("card", pa.string()), ("shop", pa.int64())])
    rows = [{"ts": 1, "id": "a", "card": "x", "shop": None}]
    batch = pa.RecordBatch.from_pylist(rows, schema)
    events = TableValidator(Roles(stream.schema(1), "ts", "id", ("card", "shop"))).admit(batch).events
    card, everything, shop = Router(stream).shares(events)
    assert card[0].rows is None
    assert everything[0].rows is None
    assert shop == []
    records = encode_columns(1, events)
    assert take_records(records, None) is records
    assert np.array_equal(
        take_records(records, np.zeros(2, np.int64)).offsets, [0, *np.cumsum([len(records.record(0))] * 2)]
    )
