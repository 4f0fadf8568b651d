"""Durations: the text of definitions (`250ms 5s 10m 1h 7d 2w`) and the words of queries (`7 DAYS`)."""

import re

from railgun.language.errors import nearest

MS_BY_SUFFIX = {
    "ms": 1,
    "s": 1_000,
    "m": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
    "w": 604_800_000,
}
MS_BY_UNIT = {
    "MILLISECOND": 1,
    "SECOND": 1_000,
    "MINUTE": 60_000,
    "HOUR": 3_600_000,
    "DAY": 86_400_000,
    "WEEK": 604_800_000,
}
# 8,919 years: a window's edge stays far inside 64 bits whatever the event's time.
LIMIT_MS = 1 << 48

# Largest first. Weeks are read but never written: people write a window of a week as seven days.
_WRITTEN = (("d", "DAY"), ("h", "HOUR"), ("m", "MINUTE"), ("s", "SECOND"), ("ms", "MILLISECOND"))
_DURATION = re.compile(r"([0-9]+)\s*([A-Za-z]+)", re.ASCII)
_DIGITS_MAX = 18


class DurationError(ValueError):
    """Text that is not a duration. The message says what one looks like."""


def parse_duration(text: str) -> int:
    """`"5s"` -> 5000: a duration of a definitions file, in milliseconds. Raises DurationError."""
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise DurationError(
            f"{text[:40]!r} is no duration: write a whole number and a unit, as in 250ms 5s 10m"
        )
    suffix = match[2]
    if suffix not in MS_BY_SUFFIX:
        near = nearest(suffix, MS_BY_SUFFIX)
        meant = f"; did you mean {near}?" if near else ""
        raise DurationError(f"{suffix[:40]!r} is no unit of time (ms s m h d w){meant}")
    digits = match[1].lstrip("0") or "0"
    size_ms = int(digits) * MS_BY_SUFFIX[suffix] if len(digits) <= _DIGITS_MAX else LIMIT_MS + 1
    if size_ms > LIMIT_MS:
        raise DurationError(
            f"{text[:40]!r} is longer than the longest duration, {LIMIT_MS // MS_BY_SUFFIX['d']}d"
        )
    return size_ms


def _largest_exact(size_ms: int) -> tuple[int, str, str]:
    for suffix, unit in _WRITTEN:
        count, rest = divmod(size_ms, MS_BY_SUFFIX[suffix])
        if rest == 0 and count > 0:
            return count, suffix, unit
    return size_ms, "ms", "MILLISECOND"


def format_duration(size_ms: int) -> str:
    """5000 -> `"5s"`: in the largest unit (up to days) that is exact."""
    count, suffix, _ = _largest_exact(size_ms)
    return f"{count}{suffix}"


def format_duration_words(size_ms: int) -> str:
    """604800000 -> `"7 DAYS"`: as a query says it, in the largest unit (up to days) that is exact."""
    count, _, unit = _largest_exact(size_ms)
    return f"{count} {unit}{'' if count == 1 else 'S'}"
