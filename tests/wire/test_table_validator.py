"""The validator of tables: row by row the same as that of single events, whatever types columns have."""

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from railgun.wire.arrow_types import holds
from railgun.wire.arrow_values import read_array
from railgun.wire.encode import encode_columns, encode_event
from railgun.wire.schema import (
    BOOLEAN,
    DOUBLE,
    LONG,
    STRING,
    TIMESTAMP,
    Field,
    FieldType,
    Schema,
    WireKind,
    decimal_type,
)
from railgun.wire.table_validator import TableError, TableValidator, row_number_ids
from railgun.wire.text_values import read_text_array, text_reader
from railgun.wire.validator import Roles
from railgun.wire.values import MisfitError, reader
from tests.counts import examples

PRICE = decimal_type(6, 2)
ANY = st.integers(-(2**63), 2**63 - 1)
NEAR_2_53 = st.integers(-(2**54), 2**54) | st.builds(
    lambda n, k: n << k, st.integers(1, 2**53), st.integers(0, 9)
)
TEXTS = st.text(max_size=8) | st.integers(65534, 65536).map(lambda n: "x" * n)
WIDE = st.integers(-(10**38) + 1, 10**38 - 1).map(Decimal)
SMALL = st.integers(-9, 9).map(Decimal)
TIMES = st.sampled_from(["2023-11-14T22:13:20.9999Z", "1969-12-31T23:59:59.9+01:00", "soon", "5", ""])
PLAIN = st.sampled_from(
    ["1.5", "-0", "0012.50", "9999.99", "10000", "1.234", "1.230", "1e2", "", "x", "9" * 50]
)

# By type values of which one is a good one of each field that takes the type at all.
ARROW_TYPES: dict[pa.DataType, list[Any]] = {
    pa.string(): ["2023-11-14T22:13:20Z", "1.5"],
    pa.int8(): [1],
    pa.uint64(): [1],
    pa.float32(): [1.0],
    pa.bool_(): [True],
    pa.decimal128(9, 1): [Decimal("1.5")],
    pa.decimal256(40, 1): [Decimal("1.5")],
    pa.timestamp("ns", "UTC"): [1],
    pa.date32(): [1],
    pa.duration("ms"): [1],
    pa.binary(): [b"1"],
    pa.list_(pa.int64()): [[1]],
    pa.struct([("a", pa.int64())]): [{"a": 1}],
}

COLUMNS: list[tuple[FieldType, pa.DataType, st.SearchStrategy[Any]]] = [
    (STRING, pa.string(), TEXTS),
    (STRING, pa.large_string(), TEXTS),
    (STRING, pa.string_view(), TEXTS),
    (STRING, pa.dictionary(pa.int32(), pa.string()), st.sampled_from(["a", "b", "é"])),
    (STRING, pa.int64(), ANY),
    (STRING, pa.bool_(), st.booleans()),
    (LONG, pa.int8(), st.integers(-128, 127)),
    (LONG, pa.uint32(), st.integers(0, 2**32 - 1)),
    (LONG, pa.int64(), ANY),
    (LONG, pa.uint64(), st.integers(2**63 - 3, 2**63 + 3)),
    (LONG, pa.float64(), st.just(1.0)),
    (LONG, pa.string(), st.just("1")),
    (DOUBLE, pa.float64(), st.floats() | st.just(-0.0)),
    (DOUBLE, pa.float32(), st.floats(width=32)),
    (DOUBLE, pa.int64(), NEAR_2_53 | ANY),
    (DOUBLE, pa.uint64(), st.integers(0, 2**64 - 1) | st.builds(lambda k: 1 << k, st.integers(0, 63))),
    (DOUBLE, pa.decimal128(5, 1), st.just(Decimal("1.5"))),
    (DOUBLE, pa.string(), st.just("1.5")),
    (BOOLEAN, pa.bool_(), st.booleans()),
    (BOOLEAN, pa.int8(), st.just(1)),
    (PRICE, pa.decimal128(10, 4), st.decimals(-20000, 20000, places=4) | st.decimals(-2, 2, places=1)),
    (
        PRICE,
        pa.decimal128(38, 0),
        WIDE | SMALL,
    ),
    (PRICE, pa.decimal256(60, 1), st.integers(-(10**50), 10**50).map(Decimal) | st.just(Decimal("2.5"))),
    (PRICE, pa.int16(), st.integers(-32768, 32767)),
    (PRICE, pa.uint64(), st.integers(0, 20_000) | st.integers(2**63, 2**64 - 1)),
    (PRICE, pa.string(), PLAIN),
    (PRICE, pa.float64(), st.just(1.5)),
    (decimal_type(18, 0), pa.decimal128(18, 0), st.integers(-(10**18) + 1, 10**18 - 1).map(Decimal)),
    (TIMESTAMP, pa.int64(), ANY),
    (TIMESTAMP, pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    (TIMESTAMP, pa.string(), TIMES),
    (TIMESTAMP, pa.large_string(), TIMES),
    (TIMESTAMP, pa.date32(), st.just(5)),
    (TIMESTAMP, pa.float64(), st.just(5.0)),
]


def value_of(typed: Any, row: int) -> Any:
    word, kind = int(typed.words[row]), typed.type.kind
    if kind is WireKind.STRING:
        return typed.column().string(row)
    if kind is WireKind.DOUBLE:
        return float(np.uint64(word).view(np.float64))
    return bool(word) if kind is WireKind.BOOLEAN else int(np.uint64(word).view(np.int64))


def sliced(values: list[Any], type_: pa.DataType) -> pa.Array:
    """An array that does not begin at its buffers' begin."""
    if pa.types.is_dictionary(type_):
        return pa.array([None, *values, None], pa.string()).dictionary_encode().slice(1, len(values))
    return pa.array([None, *values, None], type_).slice(1, len(values))


def outcome(value: Any, read: Any) -> tuple[Any, str | None]:
    """(what the reader of single values makes of a value, why it does not)."""
    try:
        return (None if value is None else read(value)), None
    except MisfitError as error:
        return None, str(error)


def check(typed: Any, values: list[Any], read: Any) -> None:
    """A column against what the reader of single values makes of each."""
    for row, value in enumerate(values):
        expected, reason = outcome(value, read)
        assert bool(typed.nulls[row]) == (value is None)
        assert bool(typed.bad[row]) == (reason is not None)
        if reason is not None:
            assert typed.explain(row) == reason
        if expected is None:
            assert typed.words[row] == 0
        else:
            got = value_of(typed, row)
            assert (type(got), got) == (type(expected), expected)
            assert not isinstance(got, float) or math.copysign(1, got) == math.copysign(1, expected)


@pytest.mark.parametrize(("type_", "arrow", "strategy"), COLUMNS)
@settings(max_examples=examples(15, 40))
@given(data=st.data())
def test_columns_equal_single_values(
    type_: FieldType, arrow: pa.DataType, strategy: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    values = data.draw(st.lists(st.none() | strategy, max_size=8))
    array = sliced(values, arrow)
    # What Arrow gives back: a float of 32 bits and a decimal of its scale are what the column says.
    check(read_array(array, type_), array.to_pylist(), reader(type_))


TEXT_COLUMNS: list[tuple[FieldType, list[str]]] = [
    (STRING, ["", "a", "é", "x" * 65537]),
    (
        LONG,
        [
            "1",
            "-1",
            "007",
            "-0",
            "9223372036854775807",
            "9223372036854775808",
            "+1",
            "1.0",
            "",
            " 1",
            "1\n",
            "٣",
        ],
    ),
    (
        DOUBLE,
        [
            "1",
            "-0.0",
            ".5",
            "1.",
            "1e-3",
            "1e400",
            "nan",
            "inf",
            "0x1",
            "",
            ".",
            "1,5",
            "1\n",
            "0.1",
            "1e-400",
        ],
    ),
    (BOOLEAN, ["true", "False", "TRUE", "1", "", "yes", "true "]),
    (PRICE, ["1.5", "-0012.50", "9999.99", "10000", "1.234", "1.230", "1e2", "", "+1", "9" * 60]),
    (TIMESTAMP, ["5", "-5", "2023-11-14T22:13:20.9999Z", "now", "", "9223372036854775808", "5.0"]),
]


@pytest.mark.parametrize(("type_", "texts"), TEXT_COLUMNS)
@settings(max_examples=examples(15, 40))
@given(data=st.data())
def test_columns_of_text_equal_single_texts(type_: FieldType, texts: list[str], data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.sampled_from(texts), min_size=1, max_size=4, unique=True))
    values = data.draw(st.lists(st.none() | st.sampled_from(chosen), max_size=6))
    check(read_text_array(sliced(values, pa.string()), type_), values, text_reader(type_))


def test_texts_that_csv_has() -> None:
    cases = [
        (LONG, "-0", 0),
        (DOUBLE, ".5", 0.5),
        (DOUBLE, "-0.0", 0.0),
        (BOOLEAN, "TRUE", True),
        (PRICE, "1.5", 150),
    ]
    for type_, text, value in cases:
        assert text_reader(type_)(text) == value
    with pytest.raises(TypeError):
        read_text_array(pa.array([1]), LONG)


@pytest.mark.parametrize(
    ("unit", "ticks", "time_ms"),
    [
        ("s", -1, -1000),
        ("s", (2**63 - 1) // 1000, (2**63 - 1) // 1000 * 1000),
        ("s", -((2**63 - 1) // 1000), -((2**63 - 1) // 1000) * 1000),
        ("s", (2**63 - 1) // 1000 + 1, None),
        ("s", -(2**63), None),
        ("ms", 2**63 - 1, 2**63 - 1),
        ("ms", -(2**63), -(2**63)),
        ("us", -1, -1),
        ("us", 1999, 1),
        ("us", -(2**63), -9223372036854776),
        ("ns", -1, -1),
        ("ns", 1_999_999, 1),
    ],
)
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Lisbon"])
def test_arrow_timestamps_are_floored(unit: str, ticks: int, time_ms: int | None, zone: str | None) -> None:
    array = pa.array([7, ticks, None], pa.int64()).view(pa.timestamp(unit, zone)).slice(1)
    typed = read_array(array, TIMESTAMP)
    if time_ms is None:
        assert typed.bad.tolist() == [1, 0]
        assert typed.explain(0) == "milliseconds beyond 64 bits"
    else:
        assert typed.bad.tolist() == [0, 0]
        assert typed.words.view(np.int64).tolist() == [time_ms, 0]
    assert typed.nulls.tolist() == [0, 1]


def test_strings_that_are_not_utf8() -> None:
    data = b"ok" + b"\xff\xfe" + b"\xc3\xa9"
    buffers = [None, pa.py_buffer(np.array([0, 2, 4, 6], np.int32)), pa.py_buffer(data)]
    array = pa.Array.from_buffers(pa.string(), 3, buffers)
    for type_ in (STRING, PRICE, TIMESTAMP):
        typed = read_array(array, type_)
        assert typed.bad.tolist() == ([0, 1, 0] if type_ is STRING else [1, 1, 1])
        assert typed.explain(1) == "a string that is not UTF-8"
    for type_ in (LONG, DOUBLE, BOOLEAN, TIMESTAMP, PRICE):
        assert read_text_array(array, type_).bad.tolist() == [1, 1, 1]


def test_columns_of_nothing() -> None:
    for type_ in (STRING, LONG, DOUBLE, BOOLEAN, PRICE, TIMESTAMP):
        for array in (pa.nulls(3), pa.array([None, None, None], pa.string())):
            assert read_array(array, type_).nulls.tolist() == [1, 1, 1]
            assert not read_array(array, type_).bad.any()
        assert len(read_array(pa.array([], pa.string()), type_).words) == 0


SCHEMA = Schema(
    2,
    (
        Field("id", STRING),
        Field("ts", TIMESTAMP),
        Field("card", STRING),
        Field("n", LONG),
        Field("x", DOUBLE),
    ),
)
ROLES = Roles(SCHEMA, time="ts", id="id", partitioners=("card",))
ROW = {"id": "a", "ts": 5, "card": "c", "n": 1, "x": 2.5}


def batch_of(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    types = {"id": pa.string(), "ts": pa.int64(), "card": pa.string(), "n": pa.int64(), "x": pa.float64()}
    return pa.record_batch(
        {name: pa.array([row.get(name) for row in rows], type_) for name, type_ in types.items()}
    )


def test_a_good_table_is_recorded_as_its_events() -> None:
    rows = [{**ROW, "id": f"é{i}", "n": None if i == 2 else i} for i in range(5)]
    admitted = TableValidator(ROLES).admit(batch_of(rows).append_column("extra", pa.nulls(5)))
    assert admitted.first_bad is None
    expected = [
        encode_event(2, row["id"], 5, [row["id"], 5, "c", row["n"], 2.5], sequence=i)
        for i, row in enumerate(rows)
    ]
    assert encode_columns(2, admitted.events).to_list() == expected


def test_the_first_bad_row_is_named_and_the_others_are_told_apart() -> None:
    rows = [
        ROW,
        ROW,
        {**ROW, "x": math.nan},
        {**ROW, "id": None},
        ROW,
        {**ROW, "ts": None},
        {**ROW, "ts": 99},
    ]
    admitted = TableValidator(ROLES).admit(batch_of(rows), latest_ms=50)
    assert admitted.bad.tolist() == [0, 0, 1, 1, 0, 1, 1]
    assert str(admitted.first_bad) == "row 2: x: NaN is no double"
    for rows, said in (
        ([{**ROW, "id": None}], "row 0: id: the id of an event is needed"),
        ([ROW, {**ROW, "ts": None}], "row 1: ts: the time of an event is needed"),
        ([ROW, {**ROW, "ts": 51}], "row 1: ts: 51 is 1 ms further ahead"),
    ):
        assert said in str(TableValidator(ROLES).admit(batch_of(rows), latest_ms=50).first_bad)


def test_columns_that_are_missing_or_there_twice() -> None:
    batch = batch_of([ROW])
    with pytest.raises(TableError, match="column card is missing; did you mean its crd"):
        TableValidator(ROLES).admit(batch.rename_columns(["id", "ts", "crd", "n", "x"]))
    with pytest.raises(TableError, match="column n is there 2 times"):
        TableValidator(ROLES).admit(
            batch.rename_columns(["id", "ts", "card", "n", "x"]).append_column("n", pa.nulls(1))
        )


def test_columns_of_types_that_their_fields_cannot_be_are_told_at_once() -> None:
    validator, good = TableValidator(ROLES), batch_of([ROW]).schema
    validator.check_types(good)
    codes = pa.dictionary(pa.int8(), pa.string())
    validator.check_types(pa.schema([("n", pa.null()), ("x", pa.uint8()), ("card", codes), *list(good)[:2]]))
    with pytest.raises(TableError) as caught:
        validator.check_types(
            pa.schema([("x", pa.string()), ("n", pa.float64()), ("other", pa.binary()), *list(good)[:3]])
        )
    assert str(caught.value) == (
        "column n is double and cannot be long, which takes whole numbers; column x is string and cannot be double, "
        "which takes numbers: convert before"
    )
    with pytest.raises(TableError, match="column x is missing"):
        validator.check_types(good.remove(4))


@pytest.mark.parametrize("found", ARROW_TYPES, ids=str)
@pytest.mark.parametrize("type_", [STRING, LONG, DOUBLE, BOOLEAN, PRICE, TIMESTAMP], ids=str)
def test_what_a_type_cannot_hold_is_refused_value_by_value_too(type_: FieldType, found: pa.DataType) -> None:
    bad = read_array(pa.array([*ARROW_TYPES[found], None], found), type_).bad
    assert not bad[-1]
    assert bool(bad[:-1].all()) is not holds(found, type_)


def test_streams_without_id_or_time() -> None:
    roles = Roles(Schema(1, (Field("x", DOUBLE),)))
    batch = pa.record_batch({"x": [1.0, 2.0]})
    with pytest.raises(TypeError):
        TableValidator(roles).admit(batch)
    ids, times = row_number_ids(9, 2), np.array([3, 4], np.int64)
    events = TableValidator(roles).admit(batch, ids=ids, times=times).events
    assert encode_columns(1, events).to_list() == [
        encode_event(1, "9", 3, [1.0]),
        encode_event(1, "10", 4, [2.0], sequence=1),
    ]


def test_long_ids_are_their_decimals() -> None:
    roles = Roles(SCHEMA, id="n", time="ts")
    events = TableValidator(roles).admit(batch_of([{**ROW, "n": -12}, {**ROW, "n": 2**63 - 1}])).events
    assert [events.ids.string(i) for i in range(2)] == ["-12", str(2**63 - 1)]
