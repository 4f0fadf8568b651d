"""The validator of texts whose values all have the right types: it agrees with the general one or leaves it to it."""

import json
import math
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from railgun.wire.schema import (
    BOOLEAN,
    DOUBLE,
    LONG,
    STRING,
    STRING_LIMIT_BYTES,
    TIMESTAMP,
    Field,
    Schema,
    decimal_type,
)
from railgun.wire.typed_validator import TypedValidator
from railgun.wire.validator import EventRefusedError, EventValidator, Roles, ValidatedEvent

SCHEMA = Schema(
    1,
    (
        Field("tx_id", STRING),
        Field("ts", TIMESTAMP),
        Field("seen", TIMESTAMP),
        Field("n", LONG),
        Field("amount", DOUBLE),
        Field("ok", BOOLEAN),
        Field("price", decimal_type(6, 2)),
    ),
)
ROLES = Roles(SCHEMA, time="ts", id="tx_id", partitioners=("n",))
EVENT = b'{"tx_id":"t1","ts":1700000000000,"n":7,"amount":12.5,"ok":true,"price":"1.50","seen":null}'
VALUES = ("t1", 1_700_000_000_000, None, 7, 12.5, True, 150)

_TEXTS = st.one_of(
    st.integers(-(1 << 70), 1 << 70).map(str),
    st.sampled_from([2**53, 2**53 - 1, 2**53 + 1, -(2**53), 2**63, 2**63 - 1, -(2**63), -(2**63) - 1]).map(
        str
    ),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.sampled_from(["-0", "-0.0", "-1e-999", "1e999", "1.0", "1e3", "null", "true", "false", "[]", "{}"]),
    st.sampled_from(
        ['"x"', '"\\ud800"', '"\\ud83d\\ude00"', '"2026-01-31T23:59:59Z"', '"1.5"', '"-0"', '""']
    ),
    st.text(max_size=5).map(json.dumps),
)
_NAMES = st.sampled_from([field.name for field in SCHEMA.fields] + ["other"])


def _by_validator(text: bytes, latest_ms: int | None = None) -> ValidatedEvent | None:
    try:
        return EventValidator(ROLES).admit_json(text, latest_ms)
    except EventRefusedError:
        return None


def _exactly(values: Sequence[Any]) -> list[tuple[type, Any, float]]:
    return [(type(v), v, math.copysign(1, v) if isinstance(v, float) else 0.0) for v in values]


def test_an_event() -> None:
    assert TypedValidator(ROLES).admit(EVENT, None) == ValidatedEvent("t1", 1_700_000_000_000, VALUES)


def test_raw_text() -> None:
    raw = msgspec.json.decode(b"[" + EVENT + b"]", type=list[msgspec.Raw])[0]
    assert TypedValidator(ROLES).admit(raw, None) == ValidatedEvent("t1", 1_700_000_000_000, VALUES)


@given(st.lists(st.tuples(_NAMES, _TEXTS), max_size=4), st.sampled_from([None, 1_700_000_000_000, 5]))
def test_as_the_other_door(changed: list[tuple[str, str]], latest_ms: int | None) -> None:
    pairs = dict(changed)
    event = {"tx_id": '"t1"', "ts": "1700000000000", **pairs}
    text = ("{" + ",".join(f'"{name}": {value}' for name, value in event.items()) + "}").encode()
    found = TypedValidator(ROLES).admit(text, latest_ms)
    if found is None:
        return
    wanted = _by_validator(text, latest_ms)
    assert wanted is not None
    assert found[:2] == wanted[:2]
    assert _exactly(found.values) == _exactly(wanted.values)


@given(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.floats(-1e15, 1e15),
    st.booleans(),
)
def test_what_is_common_is_taken(text: str, number: int, amount: float, ok: bool) -> None:
    event = {"tx_id": text, "ts": "2026-01-31T23:59:59Z", "n": number, "amount": amount, "ok": ok, "price": 2}
    found = TypedValidator(ROLES).admit(json.dumps(event).encode(), None)
    wanted = _by_validator(json.dumps(event).encode())
    assert found is not None
    assert wanted is not None
    assert _exactly(found.values) == _exactly(wanted.values)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"{",
        EVENT + b"}",
        b'{"ts":1}',
        b'{"tx_id":null,"ts":1}',
        b'{"tx_id":"t1"}',
        b'{"tx_id":"t1","ts":1,"other":"\xff"}',
        b'{"tx_id":"t1","ts":1,"other":[1,]}',
        b'{"tx_id":"t1","ts":1,"n":1.0}',
        b'{"tx_id":"t1","ts":1,"amount":9007199254740993}',
        b'{"tx_id":"t1","ts":1,"amount":1e999}',
        b'{"tx_id":"t1","ts":1,"price":1.001}',
        b'{"tx_id":"t1","ts":"yesterday"}',
        b'{"tx_id":"\xff","ts":1}',
        b"[" * 100_000,
        b'{"ts":1,"tx_id":"' + b"x" * (STRING_LIMIT_BYTES + 1) + b'"}',
    ],
)
def test_the_rest_is_left(text: bytes) -> None:
    assert TypedValidator(ROLES).admit(text, None) is None


@pytest.mark.parametrize(
    "more", [b"1", b'"\\u00e9\xc3\xa9"', b'{"n": 2, "deep": [{}]}', b'"' + b"x" * 65_536 + b'"']
)
def test_unknown_keys_are_skipped(more: bytes) -> None:
    """Also where keys were known before, and are again."""
    validator, wanted = TypedValidator(ROLES), ValidatedEvent("t1", 1_700_000_000_000, VALUES)
    with_more = EVENT.replace(b"{", b'{"other":' + more + b",", 1)
    for text in (EVENT, with_more, with_more, EVENT):
        assert validator.admit(text, None) == wanted


def test_after_misses_it_is_tried_less_often() -> None:
    validator, not_typed = TypedValidator(ROLES), b'{"tx_id":"t1","ts":1,"n":1.0}'
    for _ in range(1_000):
        assert validator.admit(not_typed, None) is None
    tried = [validator.admit(EVENT, None) is not None for _ in range(200)]
    assert any(tried)
    first = tried.index(True)
    assert 0 < first <= 63
    assert all(tried[first:])
