"""Times as they are given on the command line."""

import argparse

import pytest

from railgun.cli.wording import time_ms


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("-5", -5),
        (str((1 << 63) - 1), (1 << 63) - 1),
        (str(1 - (1 << 63)), 1 - (1 << 63)),
        ("1970-01-01T01:00:00.250+01:00", 250),
    ],
)
def test_times(text: str, expected: int) -> None:
    assert time_ms(text) == expected


@pytest.mark.parametrize(
    "text",
    [str(1 << 63), str(-(1 << 63)), "9" * 30, "--5", "", "-", "2024-01-31", "yesterday", "1e3", "１７"],
)
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is no time"):
        time_ms(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (str(-(1 << 63)), "stands for minus infinity"),
        ("2024-01-31T00:00:00", "lacks its zone; write 2024-01-31T00:00:00Z for UTC"),
        ("2024-01-31T00:00:00.5", "lacks its zone"),
        (str(1 << 63), "64 bits"),
    ],
)
def test_what_is_wrong_with_a_time_is_said(text: str, why: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=why):
        time_ms(text)
