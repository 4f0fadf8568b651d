"""Event records to columns: against MessagePack's own library, on sound, damaged and hostile bytes."""

import math
import struct
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from railgun.wire.decode import Decoded, Decoder
from railgun.wire.msgpack import Status
from railgun.wire.records import Records
from railgun.wire.schema import (
    BOOLEAN,
    DOUBLE,
    EVENT_TIME_MIN_MS,
    LONG,
    STRING,
    TIMESTAMP,
    Field,
    Schema,
    WireKind,
    decimal_type,
)
from reservoir.siphash import siphash128_bytes

FIRST = Schema(
    1,
    (
        Field("card", STRING),
        Field("n", LONG),
        Field("amount", DOUBLE),
        Field("ok", BOOLEAN),
        Field("price", decimal_type(9, 2)),
        Field("at", TIMESTAMP),
    ),
)
SECOND = Schema(3, (*FIRST.fields, Field("note", STRING)))
SCHEMAS = {1: FIRST, 3: SECOND}
NAMES = [field.name for field in SECOND.fields]
KEY = (11, 22)

LONGS = st.integers(-(2**63), 2**63 - 1)
VALUES = {
    WireKind.STRING: st.text(max_size=50),
    WireKind.LONG: LONGS,
    WireKind.DOUBLE: st.floats(allow_nan=False, allow_infinity=False),
    WireKind.BOOLEAN: st.booleans(),
    WireKind.DECIMAL: st.integers(-(10**9) + 1, 10**9 - 1),
    WireKind.TIMESTAMP: LONGS,
}


@st.composite
def events(draw: st.DrawFn) -> list[Any]:
    schema = draw(st.sampled_from([FIRST, SECOND]))
    source = draw(
        st.none() | st.tuples(st.integers(0, 2**31 - 1), *(st.integers(0, 2**63 - 1) for _ in range(2)))
    )
    head = [
        schema.version,
        draw(st.text(max_size=20)),
        max(draw(LONGS), EVENT_TIME_MIN_MS),
        *(draw(LONGS) for _ in range(3)),
        source,
    ]
    values = [draw(st.none() | VALUES[field.type.kind]) for field in schema.fields]
    return head + values[: draw(st.integers(0, len(values)))]


def record(items: list[Any]) -> bytes:
    return b"\x01" + msgspec.msgpack.encode(items)


def value_of(decoded: Decoded, name: str, kind: WireKind, row: int) -> Any:
    slot = NAMES.index(name)
    if decoded.nulls[slot, row]:
        assert decoded.words[slot, row] == 0
        return None
    word = int(decoded.words[slot, row])
    if kind is WireKind.STRING:
        start = word >> 24
        return decoded.buffer[start : start + (word & 0xFFFFFF)].tobytes().decode()
    if kind is WireKind.DOUBLE:
        return struct.unpack("<d", struct.pack("<Q", word))[0]
    return bool(word) if kind is WireKind.BOOLEAN else struct.unpack("<q", struct.pack("<Q", word))[0]


def row_of(decoded: Decoded, row: int) -> list[Any]:
    columns = ("time", "reply_to", "incarnation", "sequence")
    position = [int(getattr(decoded, f"source_{each}")[row]) for each in ("partition", "offset", "committed")]
    head = [
        int(decoded.schema[row]),
        decoded.id(row),
        *(int(getattr(decoded, each)[row]) for each in columns),
    ]
    source = None if position == [-1, -1, -1] else position
    return [*head, source, *(value_of(decoded, field.name, field.type.kind, row) for field in SECOND.fields)]


def expected_row(items: list[Any]) -> list[Any]:
    items = [list(item) if isinstance(item, tuple) else item for item in items]
    return items + [None] * (7 + len(SECOND.fields) - len(items))


@given(st.lists(events(), max_size=20))
def test_decodes_what_was_encoded(batch: list[list[Any]]) -> None:
    decoded = Decoder(SCHEMAS.values(), NAMES, KEY).decode(Records.of([record(items) for items in batch]))
    assert (decoded.n, decoded.exceptions) == (len(batch), 0)
    for row, items in enumerate(batch):
        got = row_of(decoded, row)
        assert got == expected_row(items)
        assert not any(isinstance(each, float) and each == 0 and math.copysign(1, each) < 0 for each in got)
        assert (decoded.id_hi[row], decoded.id_lo[row]) == siphash128_bytes(items[1].encode(), *KEY)
        assert decoded.record(row) == record(items)


@given(events(), st.data())
def test_damage_is_found_or_harmless(items: list[Any], data: st.DataObject) -> None:
    """Whatever the decoder accepts is what MessagePack's library reads, and fits the schema."""
    raw = bytearray(record(items))
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(raw) - 1))
        raw[place : place + 1] = data.draw(st.binary(max_size=2))
        if not raw:
            return
    decoded = Decoder(SCHEMAS.values(), NAMES, KEY).decode(Records.of([bytes(raw)]))
    if decoded.status[0] == Status.OK:
        assert raw[0] == 1
        assert row_of(decoded, 0) == expected_row(msgspec.msgpack.decode(raw[1:]))
        again = record(msgspec.msgpack.decode(raw[1:]))
        assert row_of(Decoder(SCHEMAS.values(), NAMES, KEY).decode(Records.of([again])), 0) == expected_row(
            msgspec.msgpack.decode(raw[1:])
        )
    else:
        assert decoded.exceptions == 1
        assert decoded.nulls[:, 0].all()
        assert 0 <= decoded.fault_at[0] <= len(raw)
        assert decoded.describe(0)


@given(events())
def test_every_cut_is_an_error(items: list[Any]) -> None:
    raw = record(items)
    decoded = Decoder(SCHEMAS.values(), NAMES, KEY).decode(Records.of([raw[:end] for end in range(len(raw))]))
    assert decoded.exceptions == len(raw)
    assert set(decoded.status[: len(raw)]) <= {Status.TRUNCATED, Status.WRONG_COUNT}


HEAD = [1, "id", 5, -1, 0, 0, None]
STR32 = b"\xdb\x00\x00\x00\x02ab"


def raw_value(name: str, packed: bytes) -> bytes:
    """A record whose only values are nil up to the named field, which has the given bytes."""
    place = FIRST.index(name)
    head = record(HEAD + [None] * (place + 1))
    return head[:-1] + packed


BAD_VALUES = [
    ("card", b"\xc4\x01a", Status.WRONG_TYPE),
    ("card", b"\x01", Status.WRONG_TYPE),
    ("card", b"\xa1\xff", Status.BAD_UTF8),
    ("card", b"\xa2\xc0\x80", Status.BAD_UTF8),
    ("card", b"\xa2\xc3\x28", Status.BAD_UTF8),
    ("card", b"\xa3\xed\xa0\x80", Status.BAD_UTF8),
    ("card", b"\xa3\xe0\x80\x80", Status.BAD_UTF8),
    ("card", b"\xa4\xf4\x90\x80\x80", Status.BAD_UTF8),
    ("card", b"\xa4\xf0\x80\x80\x80", Status.BAD_UTF8),
    ("card", b"\xa1\xc3", Status.BAD_UTF8),
    ("card", b"\xdb\x00\x01\x00\x00" + b"a" * 65536, Status.TOO_LONG),
    ("card", b"\xdb\xff\xff\xff\xff", Status.TOO_LONG),
    ("n", b"\xcf\x80\x00\x00\x00\x00\x00\x00\x00", Status.OUT_OF_RANGE),
    ("n", b"\xcb" + struct.pack(">d", 1.0), Status.WRONG_TYPE),
    ("n", b"\xc3", Status.WRONG_TYPE),
    ("n", b"\xa11", Status.WRONG_TYPE),
    ("amount", b"\x01", Status.WRONG_TYPE),
    ("amount", b"\xca" + struct.pack(">f", 1.0), Status.WRONG_TYPE),
    ("amount", b"\xcb" + struct.pack(">d", math.nan), Status.OUT_OF_RANGE),
    ("amount", b"\xcb" + struct.pack(">d", -math.inf), Status.OUT_OF_RANGE),
    ("ok", b"\x00", Status.WRONG_TYPE),
    ("ok", b"\xc1", Status.WRONG_TYPE),
    ("price", msgspec.msgpack.encode(10**9), Status.OUT_OF_RANGE),
    ("price", msgspec.msgpack.encode(-(10**9)), Status.OUT_OF_RANGE),
    ("price", msgspec.msgpack.encode(-(2**63)), Status.OUT_OF_RANGE),
    ("at", b"\x91\x01", Status.WRONG_TYPE),
    ("at", b"\x90" * 1000, Status.WRONG_TYPE),
    ("at", b"\x01\x01", Status.TRAILING_BYTES),
]


@pytest.mark.parametrize(("name", "packed", "status"), BAD_VALUES)
@pytest.mark.parametrize("wanted", [NAMES, []])
def test_bad_values_have_their_status(name: str, packed: bytes, status: Status, wanted: list[str]) -> None:
    """The same for fields that nothing asks for: a record is sound as a whole or not at all."""
    good = record([*HEAD, "x", 1])
    decoded = Decoder([FIRST], wanted).decode(Records.of([good, raw_value(name, packed), good]))
    assert [Status(each) for each in decoded.status[:3]] == [Status.OK, status, Status.OK]
    assert decoded.exceptions == 1
    assert status.name in decoded.describe(1)


def test_minus_infinity_is_no_time_of_an_event() -> None:
    head = [FIRST.version, "id", EVENT_TIME_MIN_MS, -1, 0, 0, None]
    before = [*head[:2], EVENT_TIME_MIN_MS - 1, *head[3:]]
    decoded = Decoder([FIRST], []).decode(Records.of([record(head), record(before)]))
    assert [Status(each) for each in decoded.status[:2]] == [Status.OK, Status.OUT_OF_RANGE]


GOOD_VALUES = [
    ("card", STR32, "ab"),
    ("card", b"\xda\xff\xff" + b"a" * 65535, "a" * 65535),
    ("card", b"\xdb\x00\x00\xff\xff" + b"a" * 65535, "a" * 65535),
    ("card", "\xa4\U0010ffff".encode("latin-1", "ignore") + "\U0010ffff".encode(), "\U0010ffff"),
    ("n", b"\xd3\xff\xff\xff\xff\xff\xff\xff\xfe", -2),
    ("n", b"\xd0\x80", -128),
    ("n", b"\xcf\x00\x00\x00\x00\x00\x00\x00\x05", 5),
    ("n", b"\xd3\x80\x00\x00\x00\x00\x00\x00\x00", -(2**63)),
    ("price", msgspec.msgpack.encode(1 - 10**9), 1 - 10**9),
    ("amount", b"\xcb" + struct.pack(">d", 5e-324), 5e-324),
]


@pytest.mark.parametrize(("name", "packed", "value"), GOOD_VALUES)
def test_unusual_forms_are_read(name: str, packed: bytes, value: Any) -> None:
    decoded = Decoder([SECOND, FIRST], NAMES).decode(Records.of([raw_value(name, packed)]))
    assert value_of(decoded, name, FIRST.fields[FIRST.index(name)].type.kind, 0) == value


BAD_HEADS = [
    ([9, *HEAD[1:]], Status.UNKNOWN_SCHEMA),
    ([2, *HEAD[1:]], Status.UNKNOWN_SCHEMA),
    ([-1, *HEAD[1:]], Status.UNKNOWN_SCHEMA),
    ([2**40, *HEAD[1:]], Status.UNKNOWN_SCHEMA),
    (["1", *HEAD[1:]], Status.WRONG_TYPE),
    ([1, 7, *HEAD[2:]], Status.WRONG_TYPE),
    ([1, None, *HEAD[2:]], Status.WRONG_TYPE),
    ([1, "id", None, *HEAD[3:]], Status.WRONG_TYPE),
    (HEAD[:6], Status.WRONG_COUNT),
    ([*HEAD[:6], 5], Status.WRONG_TYPE),
    ([*HEAD[:6], [1]], Status.WRONG_COUNT),
    ([*HEAD[:6], [-1, 5, 0]], Status.OUT_OF_RANGE),
    ([*HEAD[:6], [2**31, 5, 0]], Status.OUT_OF_RANGE),
    ([*HEAD[:6], [1, 5, -1]], Status.OUT_OF_RANGE),
    ([*HEAD[:6], [1, 5]], Status.WRONG_COUNT),
    (HEAD + [None] * 7, Status.WRONG_COUNT),
]


@pytest.mark.parametrize(("head", "status"), BAD_HEADS)
def test_bad_headers_have_their_status(head: list[Any], status: Status) -> None:
    assert Decoder(SCHEMAS.values(), NAMES).decode(Records.of([record(head)])).status[0] == status


def test_other_first_bytes() -> None:
    body = msgspec.msgpack.encode(HEAD)
    raw = [
        b"",
        b"\x00" + body,
        b"\x02" + body,
        b"\x03" + body,
        b"\x01",
        b"\x01\x80",
        b"\x01" + b"\x91" * 100_000,
    ]
    decoded = Decoder([FIRST], []).decode(Records.of(raw))
    names = [Status(each).name for each in decoded.status[: len(raw)]]
    unknown = ["UNKNOWN_RECORD"] * 3
    assert names == ["TRUNCATED", *unknown, "TRUNCATED", "WRONG_TYPE", "WRONG_COUNT"]


def test_columns_grow_and_are_reused() -> None:
    decoder = Decoder([FIRST], ["n"])
    for n in (3, 700, 5):
        decoded = decoder.decode(
            Records.of([record([*HEAD[:2], i, *HEAD[3:], "x", 2 * i]) for i in range(n)])
        )
        assert decoded.time[:n].tolist() == list(range(n))
        assert decoded.words[0, :n].tolist() == list(range(0, 2 * n, 2))
    assert decoder.decode(Records.of([record(HEAD)])).nulls[0, 0] == 1


def test_none_are_decoded_to_none() -> None:
    assert Decoder([FIRST], ["card"]).decode(Records.of([])).n == 0


def test_records_may_lie_anywhere_in_their_buffer() -> None:
    raw = [record([*HEAD, f"card{i}", i]) for i in range(10)]
    padded = np.frombuffer(b"xyz" + b"".join(raw) + b"rest", np.uint8)
    offsets = np.cumsum([3, *map(len, raw)], dtype=np.int64)
    decoder = Decoder([FIRST], NAMES, hash_key=None)
    decoded = decoder.decode(Records(padded, offsets))
    assert [row_of(decoded, i) for i in range(10)] == [
        expected_row([*HEAD, f"card{i}", i]) for i in range(10)
    ]


def test_a_field_may_not_be_wanted_twice() -> None:
    with pytest.raises(ValueError, match="wanted twice"):
        Decoder([FIRST], ["n", "n"])
