"""Records written from columns are the bytes of records written one at a time, and decode to the same."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from railgun.wire.columns import Column, EventColumns
from railgun.wire.decode import Decoder
from railgun.wire.encode import encode_columns, encode_event, encode_values, join_event
from railgun.wire.schema import (
    BOOLEAN,
    DOUBLE,
    EVENT_TIME_MIN_MS,
    LONG,
    STRING,
    TIMESTAMP,
    Field,
    FieldType,
    Schema,
    WireKind,
    decimal_type,
)

TYPES = (STRING, LONG, DOUBLE, BOOLEAN, decimal_type(18, 4), TIMESTAMP)
EDGES = [0, 31, 32, 127, 128, 255, 256, 65535, 65536, 2**32 - 1, 2**32, 2**63 - 1]
LONGS = st.integers(-(2**63), 2**63 - 1) | st.sampled_from(EDGES + [-edge - 1 for edge in EDGES])
TEXTS = (
    st.text(max_size=40) | st.integers(0, 300).map(lambda n: "é" * n) | st.just("x").map(lambda x: x * 65_535)
)
VALUES = {
    WireKind.STRING: TEXTS,
    WireKind.LONG: LONGS,
    WireKind.DOUBLE: st.floats(allow_nan=False, allow_infinity=False),
    WireKind.BOOLEAN: st.booleans(),
    WireKind.DECIMAL: st.integers(-(10**18) + 1, 10**18 - 1),
    WireKind.TIMESTAMP: LONGS,
}


def column_of(type_: FieldType, values: list[Any]) -> Column:
    nulls = np.array([value is None for value in values], np.uint8)
    heap = None
    if type_.kind is WireKind.STRING:
        texts = [(value or "").encode() for value in values]
        starts = np.cumsum([0, *map(len, texts)])
        words = [int(start) << 24 | len(text) for start, text in zip(starts, texts)]
        heap = np.frombuffer(b"".join(texts) + b"\0", np.uint8)
        return Column(type_, np.array(words, np.uint64), nulls, heap)
    dtype = np.float64 if type_.kind is WireKind.DOUBLE else np.int64
    numbers: NDArray[Any] = np.array([0 if value is None else value for value in values], dtype)
    return Column(type_, numbers.view(np.uint64), nulls if nulls.any() else None)


@st.composite
def batches(draw: st.DrawFn) -> tuple[tuple[FieldType, ...], list[str], list[int], list[list[Any]]]:
    types = tuple(draw(st.lists(st.sampled_from(TYPES), max_size=20)))
    n = draw(st.integers(0, 5))
    ids = [draw(TEXTS) for _ in range(n)]
    times = [max(draw(LONGS), EVENT_TIME_MIN_MS) for _ in range(n)]
    rows = [[draw(st.none() | VALUES[type_.kind]) for type_ in types] for _ in range(n)]
    return types, ids, times, rows


@given(batches(), LONGS, st.integers(-1, 2**31 - 1), st.none() | st.integers(0, 2**31 - 1))
def test_columns_give_the_bytes_of_single_events(
    batch: tuple[tuple[FieldType, ...], list[str], list[int], list[list[Any]]],
    incarnation: int,
    reply_to: int,
    partition: int | None,
) -> None:
    types, ids, times, rows = batch
    fields = tuple(column_of(type_, [row[j] for row in rows]) for j, type_ in enumerate(types))
    events = EventColumns(column_of(STRING, list(ids)), np.array(times, np.int64), fields)
    offsets = np.arange(len(rows), dtype=np.int64) * 100_000
    source = None if partition is None else (partition, offsets, 77)
    records = encode_columns(300, events, reply_to, incarnation, 120, source)
    single = [
        encode_event(
            300,
            ids[i],
            times[i],
            rows[i],
            reply_to,
            incarnation,
            120 + i,
            None if partition is None else (partition, int(offsets[i]), 77),
        )
        for i in range(len(rows))
    ]
    assert records.to_list() == single
    schema = Schema(300, tuple(Field(f"f{j}", type_) for j, type_ in enumerate(types)))
    decoded = Decoder([schema], [field.name for field in schema.fields]).decode(records)
    assert (decoded.n, decoded.exceptions) == (len(rows), 0)
    assert [decoded.id(i) for i in range(len(rows))] == ids


@pytest.mark.parametrize("fields", [0, 1, 8, 9, 15, 16, 103, 65_528, 65_529, 65_536])
@pytest.mark.parametrize("source", [None, (3, 2**40, 7)])
def test_a_record_joined_of_parts_is_the_same(fields: int, source: tuple[int, int, int] | None) -> None:
    values = [(n, "é", None, -1.5, True)[n % 5] for n in range(fields)]
    joined = join_event(300, "an id", -7, fields, encode_values(values), 5, 2**41, 2**33, source)
    assert joined == encode_event(300, "an id", -7, values, 5, 2**41, 2**33, source)


def test_taken_rows_are_the_chosen_ones() -> None:
    fields = (column_of(STRING, ["a", "b", None]), column_of(LONG, [1, None, 3]))
    events = EventColumns(column_of(STRING, ["x", "y", "z"]), np.array([7, 8, 9], np.int64), fields)
    taken = encode_columns(1, events.take(np.array([2, 0]))).to_list()
    expected = [encode_event(1, "z", 9, [None, 3]), encode_event(1, "x", 7, ["a", 1], sequence=1)]
    assert taken == expected
    assert events.fields[0].string(1) == "b"
