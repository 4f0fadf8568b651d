"""Events of Python programs as JSON."""

import json
from collections import UserDict
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from railgun.client.errors import ClientError
from railgun.client.events import PART_BYTES, event_json, events_json, keys_json, parts_of


@pytest.mark.parametrize(
    ("value", "sent"),
    [
        ("größe", "größe"),
        (2**70, 2**70),
        (None, None),
        (True, True),
        (0.1, 0.1),
        (Decimal("1E+3"), "1000"),
        (Decimal("-12.50"), "-12.50"),
        (datetime(2026, 1, 31, 23, 59, 59, 123000, UTC), "2026-01-31T23:59:59.123000+00:00"),
        # An offset with seconds, which RFC 3339 cannot say.
        (datetime(1900, 1, 1, tzinfo=timezone(timedelta(seconds=3208))), "1899-12-31T23:06:32+00:00"),
    ],
)
def test_values(value: Any, sent: Any) -> None:
    assert json.loads(event_json(UserDict({"x": value}))) == {"x": sent}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (float("nan"), "event 1: Out of range float values are not JSON compliant"),
        (Decimal("NaN"), "event 1: the Decimal NaN is no number"),
        (
            datetime(2026, 1, 1),
            "event 1: the datetime 2026-01-01 00:00:00 has no time zone: give it one, as in tzinfo=UTC",
        ),
        ({1}, "event 1: a set is no value of JSON"),
        (b"x", "event 1: a bytes is no value of JSON"),
        ("\ud800", "event 1: 'utf-8' codec can't encode"),
    ],
)
def test_what_is_no_value(value: Any, message: str) -> None:
    for call in (events_json, lambda events: list(parts_of(events, 10))):
        with pytest.raises(ClientError) as raised:
            call([{"x": 1}, {"x": value}])
        assert str(raised.value).startswith(message)


def test_keys() -> None:
    assert json.loads(keys_json([UserDict({"card": "c1"})], None)) == {"keys": [{"card": "c1"}]}
    assert json.loads(keys_json([], ["n"])) == {"keys": [], "metrics": ["n"]}


def test_parts() -> None:
    events = [{"n": n} for n in range(25)]
    parts = list(parts_of(iter(events), 10))
    assert [part.count(b"\n") for part in parts] == [10, 10, 5]
    assert [json.loads(line) for part in parts for line in part.splitlines()] == events
    assert list(parts_of([], 10)) == []
    large = {"x": "y" * (PART_BYTES // 2)}
    assert [part.count(b"\n") for part in parts_of([large] * 5, 10)] == [2, 2, 1]
    with pytest.raises(ClientError, match="part_events: 0 is no number of events"):
        list(parts_of(events, 0))
