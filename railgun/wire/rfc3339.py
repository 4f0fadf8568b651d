"""Converts RFC 3339 text to milliseconds, in compiled code: `2026-01-31T23:59:59.123Z`, always with an offset.

It accepts `T`, `t` or one space between date and time; `Z`, `z` or `±hh:mm` up to 23:59; and years 0000 to 9999. Leap
seconds (:60) are refused, because Unix time has no value for them. Parts finer than a millisecond are floored.
"""

from typing import Any

import numpy as np

from railgun.wire.columns import REF_LENGTH_BITS, REF_LENGTH_MASK
from reservoir.native.jit import bytes_address, jit, ld8, ldi64, st8, st64

_SHORTEST = 20
_DAY_MS = 86_400_000


@jit
def _digits(p: Any, count: Any) -> Any:
    """Return the number in `count` ASCII digits; -1 if there is any other character."""
    number = np.int64(0)
    for i in range(count):
        digit = np.int64(ld8(p + i)) - 48
        if digit < 0 or digit > 9:
            return np.int64(-1)
        number = number * 10 + digit
    return number


@jit
def days_from_civil(year: Any, month: Any, day: Any) -> Any:
    """Return the days from 1970-01-01 to a date of the proleptic Gregorian calendar.

    Source: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms".
    """
    year -= month <= 2
    era = year // 400
    year_of_era = year - era * 400
    day_of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return era * 146_097 + day_of_era - 719_468


@jit
def _month_days(year: Any, month: Any) -> Any:
    if month == 2:
        leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
        return 29 if leap else 28
    return 30 if month in (4, 6, 9, 11) else 31


@jit
def _fraction(p: Any, at: Any, n: Any) -> Any:
    """Return (place after, milliseconds) of a fraction whose point is before `at`; place -1 if it has no digit."""
    number, scale, first = np.int64(0), np.int64(100), at
    while at < n:
        digit = np.int64(ld8(p + at)) - 48
        if digit < 0 or digit > 9:
            break
        number += digit * scale
        scale //= 10
        at += 1
    return (at if at > first else np.int64(-1)), number


@jit
def _offset_minutes(p: Any, at: Any, n: Any) -> Any:
    """Return (whether it is an offset, minutes) of the text from `at` to its end."""
    if at >= n:
        return False, np.int64(0)
    sign = np.int64(ld8(p + at))
    if sign == 0x5A or sign == 0x7A:
        return at + 1 == n, np.int64(0)
    if (sign != 0x2B and sign != 0x2D) or at + 6 != n or np.int64(ld8(p + at + 3)) != 0x3A:
        return False, np.int64(0)
    hours, minutes = _digits(p + at + 1, 2), _digits(p + at + 4, 2)
    if hours < 0 or hours > 23 or minutes < 0 or minutes > 59:
        return False, np.int64(0)
    total = hours * 60 + minutes
    return True, (total if sign == 0x2B else -total)


@jit
def parse_rfc3339(p: Any, n: Any) -> Any:
    """Return (whether it is such a time, ms since 1970-01-01 UTC) of the n bytes at address p."""
    no = np.int64(0)
    if n < _SHORTEST:
        return False, no
    year, month, day = _digits(p, 4), _digits(p + 5, 2), _digits(p + 8, 2)
    hour, minute, second = _digits(p + 11, 2), _digits(p + 14, 2), _digits(p + 17, 2)
    if np.int64(ld8(p + 4)) != 0x2D or np.int64(ld8(p + 7)) != 0x2D:
        return False, no
    between = np.int64(ld8(p + 10))
    if between != 0x54 and between != 0x74 and between != 0x20:
        return False, no
    if np.int64(ld8(p + 13)) != 0x3A or np.int64(ld8(p + 16)) != 0x3A:
        return False, no
    if year < 0 or month < 1 or month > 12 or day < 1 or day > _month_days(year, month):
        return False, no
    if hour < 0 or hour > 23 or minute < 0 or minute > 59 or second < 0 or second > 59:
        return False, no
    at, fraction_ms = np.int64(19), np.int64(0)
    if np.int64(ld8(p + 19)) == 0x2E:
        at, fraction_ms = _fraction(p, np.int64(20), n)
        if at < 0:
            return False, no
    valid, offset_minutes = _offset_minutes(p, at, n)
    if not valid:
        return False, no
    seconds = hour * 3_600 + (minute - offset_minutes) * 60 + second
    # A fraction only adds to the time, so cutting its digits floors the whole time, also before 1970.
    return True, days_from_civil(year, month, day) * _DAY_MS + seconds * 1_000 + fraction_ms


@jit
def parse_column(refs: Any, heap: Any, n: Any, times: Any, bad: Any) -> Any:
    """Parse n strings (references into a heap) to int64 ms at `times`.

    Rows whose `bad` (uint8[n]) is set are skipped. `bad` is set to 1 for a string that is not such a time. Returns
    how many these are.
    """
    count = np.int64(0)
    for row in range(n):
        if ld8(bad + row) != np.uint8(0):
            continue
        ref = ldi64(refs + 8 * row)
        valid, time = parse_rfc3339(heap + (ref >> REF_LENGTH_BITS), ref & REF_LENGTH_MASK)
        if valid:
            st64(times + 8 * row, np.uint64(time))
        else:
            st8(bad + row, np.uint8(1))
            count += 1
    return count


def read_rfc3339(text: str) -> int | None:
    """Return the milliseconds since 1970-01-01 UTC; None if the text is not such a time."""
    if not text.isascii() or not _SHORTEST <= len(text) <= 64 * 1024:
        return None
    data = text.encode("ascii")
    valid, time_ms = parse_rfc3339(bytes_address(data), len(data))
    return int(time_ms) if valid else None
