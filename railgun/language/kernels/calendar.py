"""Parts of a timestamp in UTC and the proleptic Gregorian calendar: hour, minute, day of the week, day, month, year.

Timestamps are also moved to the local time of a zone here.
"""

from typing import Any

import numpy as np

from railgun.language.kernels.layout import (
    CODE,
    DAY,
    DAY_OF_WEEK,
    HOUR,
    IN_ZONE,
    MINUTE,
    MONTH,
    POOL,
    RESULT,
    A,
    X,
    Y,
)
from railgun.language.kernels.vectors import nulls_of, words_of
from reservoir.native.jit import jit, ldi64

_ZERO = np.uint64(0)
_LEAST, _GREATEST = -(1 << 63), (1 << 63) - 1
_DAY_MS, _HOUR_MS, _MINUTE_MS = 86_400_000, 3_600_000, 60_000
# 1970-01-01 was the fourth day of its week.
_WEEKDAY_OF_DAY_0 = 3
# Days from 0000-03-01 to 1970-01-01, and of 400 years, 100, 4 (each without the leap day at its end) and 1.
_TO_DAY_0, _ERA, _CENTURY, _FOUR_YEARS, _YEAR = 719_468, 146_097, 36_524, 1_460, 365


@jit
def _date_part(code: Any, day: Any) -> Any:
    """Day, month or year of a day since 1970. Years begin in March here: a leap day is the last day of a year."""
    shifted = day + _TO_DAY_0
    day_of_era = shifted % _ERA
    leaps = day_of_era // _FOUR_YEARS - day_of_era // _CENTURY + day_of_era // (_ERA - 1)
    year_of_era = (day_of_era - leaps) // _YEAR
    day_of_year = day_of_era - (_YEAR * year_of_era + year_of_era // 4 - year_of_era // 100)
    # From March on, the months have 31, 30, 31, 30, 31 days, again and again: five have 153.
    months = (5 * day_of_year + 2) // 153
    if code == DAY:
        return day_of_year - (153 * months + 2) // 5 + 1
    month = months + 3 if months < 10 else months - 9
    if code == MONTH:
        return month
    return year_of_era + 400 * (shifted // _ERA) + np.int64(month <= 2)


@jit
def _run_in_zone(context: Any, row: Any, n: Any) -> None:
    """Move timestamps to the local time of a zone; null if int64 cannot hold it.

    In the pool at X: the Y moments (ms) at which the offset changes, then Y + 1 offsets (ms), the first of them before
    all changes.
    """
    moments, count = ldi64(context + 8 * POOL) + 8 * ldi64(row + 8 * X), ldi64(row + 8 * Y)
    offsets = moments + 8 * count
    d, dn = words_of(context, row, RESULT, n), nulls_of(context, row, RESULT, n)
    a, an = words_of(context, row, A, n), nulls_of(context, row, A, n)
    for i in range(n):
        time_ms = np.int64(a[i])
        # A binary search for the number of changes at or before the time.
        low, high = np.int64(0), count
        while low < high:
            middle = (low + high) >> 1
            if ldi64(moments + 8 * middle) <= time_ms:
                low = middle + 1
            else:
                high = middle
        offset_ms = ldi64(offsets + 8 * low)
        if offset_ms < 0:
            is_beyond = time_ms < _LEAST - offset_ms
        else:
            is_beyond = time_ms > _GREATEST - offset_ms
        null = (an[i] != 0) | is_beyond
        d[i] = _ZERO if null else a[i] + np.uint64(offset_ms)
        dn[i] = null


@jit
def run_calendar(context: Any, row: Any, n: Any) -> None:
    """Evaluate one operation of the calendar family (a row of the program) over n events."""
    code = ldi64(row + 8 * CODE)
    if code == IN_ZONE:
        _run_in_zone(context, row, n)
        return
    d, dn = words_of(context, row, RESULT, n), nulls_of(context, row, RESULT, n)
    a, an = words_of(context, row, A, n), nulls_of(context, row, A, n)
    for i in range(n):
        time_ms = np.int64(a[i])
        # Both round down, so that times before 1970 need no case of their own.
        day, ms = time_ms // _DAY_MS, time_ms % _DAY_MS
        if code == HOUR:
            part = ms // _HOUR_MS
        elif code == MINUTE:
            part = ms % _HOUR_MS // _MINUTE_MS
        elif code == DAY_OF_WEEK:
            part = (day + _WEEKDAY_OF_DAY_0) % 7 + 1
        else:
            part = _date_part(code, day)
        d[i] = _ZERO if an[i] != 0 else np.uint64(part)
        dn[i] = an[i]
