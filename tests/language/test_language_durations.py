"""Durations: what definitions write, and how a length is written back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from railgun.language.duration import (
    LIMIT_MS,
    DurationError,
    format_duration,
    format_duration_words,
    parse_duration,
)


@pytest.mark.parametrize(
    ("text", "size_ms"),
    [
        ("250ms", 250),
        ("5s", 5_000),
        ("10m", 600_000),
        ("1h", 3_600_000),
        ("7d", 604_800_000),
        ("2w", 1_209_600_000),
        ("0s", 0),
        (" 90 s ", 90_000),
    ],
)
def test_definitions_durations(text: str, size_ms: int) -> None:
    assert parse_duration(text) == size_ms


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no duration"),
        ("5", "no duration"),
        ("-5s", "no duration"),
        ("1.5h", "no duration"),
        ("1h30m", "no duration"),
        ("٥s", "no duration"),
        ("5sec", "no unit of time"),
        ("5S", "did you mean s?"),
        ("5y", "no unit of time"),
        ("9999999d", "longer than"),
        ("9" * 30 + "s", "longer than the longest duration, 3257812d"),
        ("9" * 10_000 + "w", "longer than"),
    ],
)
def test_what_is_no_duration(text: str, said: str) -> None:
    with pytest.raises(DurationError, match=said):
        parse_duration(text)


@pytest.mark.parametrize(
    ("size_ms", "short", "words"),
    [
        (1, "1ms", "1 MILLISECOND"),
        (1_500, "1500ms", "1500 MILLISECONDS"),
        (60_000, "1m", "1 MINUTE"),
        (90_000, "90s", "90 SECONDS"),
        (604_800_000, "7d", "7 DAYS"),
        (86_400_000, "1d", "1 DAY"),
        (90_000_000, "25h", "25 HOURS"),
        (0, "0ms", "0 MILLISECONDS"),
    ],
)
def test_lengths_in_the_largest_exact_unit(size_ms: int, short: str, words: str) -> None:
    assert format_duration(size_ms) == short
    assert format_duration_words(size_ms) == words


@given(st.integers(0, LIMIT_MS))
def test_what_is_written_reads_back(size_ms: int) -> None:
    assert parse_duration(format_duration(size_ms)) == size_ms
