"""Numbers, sizes, times and durations in words."""

import pytest

from railgun.cli.wording import duration_text, size_text
from railgun.wording import counted, span_text, time_text


@pytest.mark.parametrize(("number", "text"), [(0, "0 rows"), (1, "1 row"), (1234567, "1,234,567 rows")])
def test_counted(number: int, text: str) -> None:
    assert counted(number, "row") == text


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (999, "999 bytes"),
        (1000, "1.0 kB"),
        (999_949, "999.9 kB"),
        (999_950, "1.0 MB"),
        (45_200_000, "45.2 MB"),
        (10**15, "1.0 PB"),
        (10**19, "10,000.0 PB"),
    ],
)
def test_sizes(size_bytes: int, text: str) -> None:
    assert size_text(size_bytes) == text


@pytest.mark.parametrize(
    ("time_ms", "text"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (1_706_702_400_250, "2024-01-31T12:00:00.250Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (253_402_300_800_000, "253402300800000 ms"),
        (-(2**63), f"{-(2**63)} ms"),
    ],
)
def test_times(time_ms: int, text: str) -> None:
    assert time_text(time_ms) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4213, "0.42 s"), (12.34, "12.3 s"), (65, "1 min 5 s"), (3599.6, "1 h 0 min"), (7380, "2 h 3 min")],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


@pytest.mark.parametrize(
    ("span_ms", "text"),
    [
        (0, "0 s"),
        (59_999, "59 s"),
        (60_000, "1 min"),
        (119_999, "1 min 59 s"),
        (7_199_999, "1 h 59 min"),
        (7_259_999, "2 h"),
        (172_799_999, "1 d 23 h"),
        (604_799_999, "6 d 23 h"),
        (604_800_000, "7 d"),
    ],
)
def test_spans_of_time_are_rounded_down(span_ms: int, text: str) -> None:
    assert span_text(span_ms) == text
