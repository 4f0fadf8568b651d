"""The validator of single events: what each type takes, what it refuses and how it says so, what is exact."""

import json
import math
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from railgun.wire.decode import Decoder
from railgun.wire.encode import encode_event
from railgun.wire.records import Records
from railgun.wire.schema import (
    BOOLEAN,
    DOUBLE,
    LONG,
    STRING,
    TIMESTAMP,
    Field,
    FieldType,
    Schema,
    decimal_type,
)
from railgun.wire.validator import EventRefusedError, EventValidator, Roles, ValidatedEvent
from railgun.wire.values import MisfitError, decode_json, reader

PRICE = decimal_type(6, 2)
SCHEMA = Schema(
    1,
    (
        Field("tx_id", STRING),
        Field("ts", TIMESTAMP),
        Field("card", STRING),
        Field("n", LONG),
        Field("amount", DOUBLE),
        Field("ok", BOOLEAN),
        Field("price", PRICE),
    ),
)
ROLES = Roles(SCHEMA, time="ts", id="tx_id", partitioners=("card", "n"))
EVENT = {
    "tx_id": "t1",
    "ts": 1_700_000_000_000,
    "card": "c1",
    "n": 7,
    "amount": 12.5,
    "ok": True,
    "price": "1.50",
}
VALUES = ["t1", 1_700_000_000_000, "c1", 7, 12.5, True, 150]


@given(st.datetimes(timezones=st.timezones() | st.just(UTC)))
def test_a_datetime_is_its_millisecond(moment: datetime) -> None:
    since = moment.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    exact_ms = Fraction(since.days * 86_400 * 10**6 + since.seconds * 10**6 + since.microseconds, 1_000)
    assert reader(TIMESTAMP)(moment) == math.floor(exact_ms)


def test_an_event() -> None:
    validator = EventValidator(ROLES)
    assert validator.admit(EVENT) == ValidatedEvent("t1", 1_700_000_000_000, VALUES)
    assert validator.admit_json(json.dumps(EVENT).encode()) == ValidatedEvent("t1", 1_700_000_000_000, VALUES)


def test_absent_is_null_and_unknown_is_ignored() -> None:
    validator = EventValidator(ROLES)
    admitted = validator.admit({"tx_id": "t", "ts": 5, "card": None, "extra": {"deep": [1]}, "more": 1e400})
    assert admitted.values == ["t", 5, None, None, None, None, None]


def test_without_roles() -> None:
    admitted = EventValidator(Roles(SCHEMA)).admit({})
    assert admitted == ValidatedEvent(None, None, [None] * 7)


def test_a_long_id_is_its_decimal() -> None:
    roles = Roles(SCHEMA, id="n")
    assert EventValidator(roles).admit({"n": -12}).id == "-12"


JSON_CASES: list[tuple[FieldType, str, Any]] = [
    (STRING, '""', ""),
    (STRING, '"\\u0000é😀"', "\0é😀"),
    (LONG, "-0", 0),
    (LONG, "9223372036854775807", 2**63 - 1),
    (LONG, "-9223372036854775808", -(2**63)),
    (DOUBLE, "1", 1.0),
    (DOUBLE, "9007199254740992", 2.0**53),
    (DOUBLE, "18446744073709551616", 2.0**64),
    (DOUBLE, "0.1", 0.1),
    (DOUBLE, "1e308", 1e308),
    (DOUBLE, "5e-324", 5e-324),
    (DOUBLE, "2.2250738585072011e-308", 2.2250738585072011e-308),
    (DOUBLE, "1e-400", 0.0),
    (DOUBLE, "-0.0", 0.0),
    (BOOLEAN, "false", False),
    (TIMESTAMP, "1700000000000", 1_700_000_000_000),
    (TIMESTAMP, "-1", -1),
    (TIMESTAMP, '"2023-11-14T22:13:20.1239Z"', 1_700_000_000_123),
    (PRICE, "12.5", 1250),
    (PRICE, "-12.50", -1250),
    (PRICE, "1250e-2", 1250),
    (PRICE, "1.25E1", 1250),
    (PRICE, "9999.99", 999_999),
    (PRICE, "9999.990000000000000000000000", 999_999),
    (PRICE, "7", 700),
    (PRICE, "0.000", 0),
    (PRICE, "-0.0", 0),
    (PRICE, "0e999999999", 0),
    (PRICE, '"0012.50"', 1250),
    (PRICE, '"-0"', 0),
    (decimal_type(18, 0), "999999999999999999", 10**18 - 1),
    (decimal_type(18, 18), "0.123456789012345678", 123456789012345678),
]


@pytest.mark.parametrize(("type_", "text", "value"), JSON_CASES)
def test_json_values_that_are_taken(type_: FieldType, text: str, value: Any) -> None:
    got = reader(type_)(decode_json(text))
    assert (type(got), got) == (type(value), value)
    assert not isinstance(got, float) or math.copysign(1, got) == math.copysign(1, value)


REFUSED: list[tuple[FieldType, str, str]] = [
    (STRING, "1", "the number 1 is not a string"),
    (STRING, "1.5", "the number 1.5 is not a string"),
    (STRING, "true", "the boolean true is not a string"),
    (STRING, '{"a": 1}', "the object"),
    (STRING, "[]", "the array [] is not a string"),
    (STRING, f'"{"é" * 32768}"', "65536 bytes; at most 65535"),
    (LONG, '"5"', "the string '5' is not a long"),
    (LONG, "1.0", "the number 1.0 is not a long"),
    (LONG, "1e3", "the number 1e3 is not a long"),
    (LONG, "false", "the boolean false is not a long"),
    (LONG, "9223372036854775808", "beyond 64 bits"),
    (LONG, "-9223372036854775809", "beyond 64 bits"),
    (LONG, "1" * 400, "an integer of 1326 bits is beyond 64 bits"),
    (DOUBLE, '"1.5"', "the string '1.5' is not a double"),
    (DOUBLE, "true", "the boolean true is not a double"),
    (DOUBLE, "9007199254740993", "no double equals 9007199254740993"),
    (DOUBLE, "1" * 400, "beyond the doubles"),
    (DOUBLE, "1e400", "1e400 is beyond the doubles"),
    (DOUBLE, "-1e999999999", "beyond the doubles"),
    (BOOLEAN, "1", "the number 1 is not true or false"),
    (BOOLEAN, '"true"', "the string 'true' is not true or false"),
    (TIMESTAMP, "1.7e12", "the number 1.7e12 is not integer milliseconds"),
    (TIMESTAMP, '"1700000000000"', "no RFC 3339 time with an offset"),
    (TIMESTAMP, '"2023-11-14T22:13:20"', "no RFC 3339 time with an offset"),
    (TIMESTAMP, "9223372036854775808", "beyond 64 bits"),
    (TIMESTAMP, "true", "the boolean true"),
    (PRICE, "1.234", "1.234 has more than 2 digits after the point, for decimal(6,2)"),
    (PRICE, "1e-3", "more than 2 digits after the point"),
    (PRICE, "10000", "10000 has too many digits for decimal(6,2)"),
    (PRICE, "1e999999999", "too many digits"),
    (PRICE, "1e-999999999", "digits after the point"),
    (PRICE, "1e9999999999", "is not decimal(6,2)"),
    (PRICE, "1" * 4000, "too many digits"),
    (PRICE, '"1e2"', "the string '1e2' is not decimal(6,2)"),
    (PRICE, '" 1"', "the string ' 1' is not decimal(6,2)"),
    (PRICE, '"+1"', "is not decimal(6,2)"),
    (PRICE, '"1."', "is not decimal(6,2)"),
    (PRICE, '".5"', "is not decimal(6,2)"),
    (PRICE, '"١"', "is not decimal(6,2)"),
    (PRICE, '""', "is not decimal(6,2)"),
    (PRICE, "true", "the boolean true is not decimal(6,2)"),
    (PRICE, f'"{"9" * 1_000_000}"', "too many digits"),
]


@pytest.mark.parametrize(("type_", "text", "words"), REFUSED)
def test_json_values_that_are_refused(type_: FieldType, text: str, words: str) -> None:
    with pytest.raises(MisfitError) as caught:
        reader(type_)(decode_json(text))
    assert words in str(caught.value)
    assert len(str(caught.value)) < 150


PYTHON_REFUSED: list[tuple[FieldType, Any]] = [
    (DOUBLE, math.nan),
    (DOUBLE, math.inf),
    (DOUBLE, -math.inf),
    (DOUBLE, Decimal("1.5")),
    (PRICE, 1.5),
    (PRICE, Decimal("NaN")),
    (PRICE, Decimal("Infinity")),
    (PRICE, Decimal("1.001")),
    (STRING, "\ud800"),
    (STRING, b"bytes"),
    (LONG, 1.0),
    (TIMESTAMP, object()),
]


@pytest.mark.parametrize(("type_", "value"), PYTHON_REFUSED)
def test_python_values_that_are_refused(type_: FieldType, value: Any) -> None:
    with pytest.raises(MisfitError):
        reader(type_)(value)


def test_decimals_of_python() -> None:
    assert reader(PRICE)(Decimal("12.50")) == 1250
    assert reader(PRICE)(Decimal("1.2E+3")) == 120_000
    assert reader(PRICE)(Decimal("-0.00")) == 0


@given(st.integers(1, 18), st.data())
def test_decimals_are_exact_or_refused(precision: int, data: st.DataObject) -> None:
    scale = data.draw(st.integers(0, precision))
    type_ = decimal_type(precision, scale)
    number = data.draw(
        st.decimals(allow_nan=False, allow_infinity=False, places=data.draw(st.integers(0, 20)))
    )
    exact = number * Decimal(10) ** scale if abs(number) < 10**20 else None
    fits = exact is not None and exact == exact.to_integral_value() and abs(exact) < 10**precision
    for value in (number, f"{number:f}", decode_json(f"{number:f}")):
        try:
            got = reader(type_)(value)
        except MisfitError:
            assert not fits
        else:
            assert fits
            assert got == exact


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_doubles_of_json_are_rounded_as_python_does(number: float) -> None:
    got = reader(DOUBLE)(decode_json(json.dumps(number)))
    assert got == number
    assert math.copysign(1, got) == 1 or number != 0


def errors_of(event: Any, latest_ms: int | None = None) -> list[tuple[tuple[Any, ...], str]]:
    validator = EventValidator(ROLES)
    with pytest.raises(EventRefusedError) as caught:
        validator.admit(event, latest_ms)
    return [tuple(error) for error in caught.value.errors]


def test_everything_wrong_is_said_at_once() -> None:
    errors = errors_of({"tx_id": None, "ts": "yesterday", "n": 1.5, "amount": math.nan, "other": 1})
    assert [loc for loc, _ in errors] == [("tx_id",), ("ts",), ("n",), ("amount",)]
    assert errors[0][1] == "the id of an event is needed"


def test_time_and_id_are_needed() -> None:
    assert errors_of({"tx_id": "a"}) == [(("ts",), "the time of an event is needed")]
    assert errors_of({"ts": 1, "tx_id": None}) == [(("tx_id",), "the id of an event is needed")]


def test_the_future() -> None:
    validator = EventValidator(ROLES)
    assert validator.admit(EVENT, latest_ms=EVENT["ts"]).time_ms == EVENT["ts"]
    ((loc, message),) = errors_of(EVENT, latest_ms=EVENT["ts"] - 5)
    assert loc == ("ts",)
    assert "5 ms further ahead" in message
    assert "is the sender's clock right" in message


@pytest.mark.parametrize("event", [None, 5, "x", [EVENT], b"{}"])
def test_what_is_no_object(event: Any) -> None:
    assert errors_of(event) == [((), "an event is a JSON object")]


@pytest.mark.parametrize(
    "body", [b"", b"{", b'{"a":\xff}', b'{"card": "\\ud800"}', b"[" * 100_000, b'{"n": ' + b"1" * 5000 + b"}"]
)
def test_bytes_that_are_no_json(body: bytes) -> None:
    with pytest.raises(EventRefusedError, match=r"^event: "):
        EventValidator(ROLES).admit_json(body)


@pytest.mark.parametrize(
    "roles",
    [{"time": "n"}, {"time": "x"}, {"id": "amount"}, {"partitioners": ("price",)}, {"partitioners": ("x",)}],
)
def test_roles_that_cannot_be(roles: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="is no field of type"):
        Roles(SCHEMA, **roles)


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text(max_size=5)
    | st.sampled_from(["12.5", "2023-11-14T22:13:20Z", 1_700_000_000_000]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=4,
)


@given(st.fixed_dictionaries({}, optional={field.name: JSON_VALUES for field in SCHEMA.fields}))
def test_whatever_is_admitted_can_be_recorded_and_read(event: dict[str, Any]) -> None:
    try:
        admitted = EventValidator(ROLES).admit(event)
    except EventRefusedError as error:
        refused = error
        admitted = None
    if admitted is None:
        assert refused.errors
        assert str(refused)
        return
    assert admitted.id is not None
    assert admitted.time_ms is not None
    record = encode_event(1, admitted.id, admitted.time_ms, admitted.values)
    decoded = Decoder([SCHEMA], []).decode(Records.of([record]))
    assert decoded.exceptions == 0, decoded.describe(0)
