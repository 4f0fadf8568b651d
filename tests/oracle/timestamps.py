"""Times as they come in: integer milliseconds, or RFC 3339 text with an offset, finer parts floored."""

import re

from tests.oracle.errors import EventRefused
from tests.oracle.types import LONG_MAX, LONG_MIN

_RFC_3339 = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:[Zz]|([+-])(\d\d):(\d\d))", re.ASCII
)
_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def _leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def days_from_epoch(year: int, month: int, day: int) -> int:
    """Days from 1970-01-01 to a date of the proleptic Gregorian calendar, years from 0; counted plainly."""
    leaps = sum(1 for y in range(min(year, 1970), max(year, 1970)) if _leap(y))
    days = (year - 1970) * 365 + (leaps if year >= 1970 else -leaps)
    days += sum(_DAYS[: month - 1]) + (1 if month > 2 and _leap(year) else 0)
    return days + day - 1


def parse_timestamp(value: object, field: str) -> int:
    """Milliseconds since 1970-01-01 UTC; raises EventRefused."""
    if isinstance(value, int) and not isinstance(value, bool):
        if not LONG_MIN <= value <= LONG_MAX:
            raise EventRefused(f"{field}: {value} is beyond 64 bits")
        return value
    match = _RFC_3339.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise EventRefused(f"{field}: {value!r} is neither integer ms nor RFC 3339 text with an offset")
    year, month, day, hour, minute, second = (int(match[i]) for i in range(1, 7))
    if not 1 <= month <= 12:
        raise EventRefused(f"{field}: no month {month}")
    last = _DAYS[month - 1] + (1 if month == 2 and _leap(year) else 0)
    if not (1 <= day <= last and hour < 24 and minute < 60 and second < 60):
        raise EventRefused(f"{field}: {value!r} is no time of the calendar")
    offset_minutes = 0
    if match[8]:
        if int(match[9]) > 23 or int(match[10]) > 59:
            raise EventRefused(f"{field}: {value!r} has no such offset")
        offset_minutes = (1 if match[8] == "+" else -1) * (int(match[9]) * 60 + int(match[10]))
    seconds = (
        days_from_epoch(year, month, day) * 86_400 + hour * 3_600 + (minute - offset_minutes) * 60 + second
    )
    # The fraction only ever adds, so cutting its digits floors the whole, before 1970 too.
    return seconds * 1_000 + int((match[7] or "").ljust(3, "0")[:3])
