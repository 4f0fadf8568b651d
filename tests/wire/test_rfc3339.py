"""RFC 3339 times, against Python's calendar and by hand where Python has none."""

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from railgun.wire.rfc3339 import days_from_civil, read_rfc3339

UTC = dt.UTC
EPOCH = dt.datetime(1970, 1, 1, tzinfo=UTC)


@given(
    st.datetimes(min_value=dt.datetime(1, 1, 2), max_value=dt.datetime(9999, 12, 30)),
    st.integers(-23 * 60 - 59, 23 * 60 + 59),
    st.sampled_from("Tt "),
    st.integers(0, 9),
)
def test_any_time_of_the_calendar(time: dt.datetime, minutes: int, between: str, digits: int) -> None:
    text = time.strftime("%m-%d") + between + time.strftime("%H:%M:%S")
    if digits:
        text += "." + f"{time.microsecond:06d}000"[:digits]
        cut = 10 ** max(6 - digits, 0)
        time = time.replace(microsecond=time.microsecond // cut * cut)
    else:
        time = time.replace(microsecond=0)
    sign = "-" if minutes < 0 else "+"
    text = f"{time.year:04d}-{text}{sign}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"
    exact = time.replace(tzinfo=UTC) - dt.timedelta(minutes=minutes) - EPOCH
    assert read_rfc3339(text) == exact // dt.timedelta(milliseconds=1)


@pytest.mark.parametrize(
    ("text", "time_ms"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1969-12-31T23:59:59.9999z", -1),
        ("1969-12-31T23:59:59.999Z", -1),
        ("1969-12-31T23:59:59.1Z", -900),
        ("0000-01-01T00:00:00Z", -62_167_219_200_000),
        ("9999-12-31T23:59:59.999-23:59", 253_402_387_139_999),
        ("2000-02-29 00:00:00-00:00", 951_782_400_000),
        ("2023-11-14T22:13:20.00000000000000000000000000000000000000000001+00:00", 1_700_000_000_000),
    ],
)
def test_times_at_the_edges(text: str, time_ms: int) -> None:
    assert read_rfc3339(text) == time_ms


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1700000000000",
        "2023-11-14",
        "2023-11-14T22:13:20",
        "2023-11-14T22:13Z",
        "2023-11-14T22:13:20.Z",
        "2023-11-14T22:13:20,5Z",
        "2023-11-14T22:13:60Z",
        "2023-11-14T24:00:00Z",
        "2023-11-14T22:60:20Z",
        "2023-13-14T22:13:20Z",
        "2023-00-14T22:13:20Z",
        "2023-11-31T22:13:20Z",
        "2023-11-00T22:13:20Z",
        "2023-02-29T22:13:20Z",
        "1900-02-29T22:13:20Z",
        "2023-11-14T22:13:20+24:00",
        "2023-11-14T22:13:20+01:60",
        "2023-11-14T22:13:20+0100",
        "2023-11-14T22:13:20+01",
        "2023-11-14T22:13:20+01:0",
        "2023-11-14T22:13:20+01:00 ",
        "2023-11-14T22:13:20ZZ",
        "2023-11-14T22:13:20Q",
        "2023-11-14_22:13:20Z",
        "2023/11/14T22:13:20Z",
        "+023-11-14T22:13:20Z",
        "2023-1a-14T22:13:20Z",
        "２023-11-14T22:13:20Z",
        "2023-11-14T22:13:20Zé",
    ],
)
def test_what_is_no_time(text: str) -> None:
    assert read_rfc3339(text) is None


@given(st.integers(-719_000, 2_932_000))
def test_days(days: int) -> None:
    date = dt.date(1970, 1, 1) + dt.timedelta(days=days)
    assert days_from_civil(date.year, date.month, date.day) == days
