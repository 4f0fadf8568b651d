"""Reads files of the time zone database (TZif, RFC 9636): the offsets from UTC and when they begin."""

import re
import struct
from collections.abc import Iterator
from datetime import date

_HEADER = struct.Struct(">4sc15x6I")
_TYPE = struct.Struct(">iBB")
_EPOCH = date(1970, 1, 1).toordinal()
_DAY_S = 86_400
# A rule without an end is followed up to the end of this year.
LAST_YEAR = 2100
_NAME = r"(?:[A-Za-z]{3,}|<[A-Za-z0-9+-]{3,}>)"
_OFFSET = r"[+-]?[0-9]{1,3}(?::[0-9]{2}){0,2}"
_RULE = re.compile(
    rf"{_NAME}(?P<standard>{_OFFSET})"
    rf"(?:{_NAME}(?P<summer>{_OFFSET})?,(?P<begin>[^,/]+)(?:/(?P<begin_at>{_OFFSET}))?"
    rf",(?P<end>[^,/]+)(?:/(?P<end_at>{_OFFSET}))?)?"
)

# The offset before the first change, in seconds; then pairs (second since 1970 in UTC, offset from then on), in order.
Offsets = tuple[int, tuple[tuple[int, int], ...]]


def offsets_of(data: bytes) -> Offsets:
    """The offsets of a file of version 2 or later, and those of its last rule up to the end of LAST_YEAR.

    Raises ValueError where the data is no such file.
    """
    try:
        return _offsets(data)
    except (struct.error, IndexError) as error:
        raise ValueError("a time zone's file ends too early") from error


def _offsets(data: bytes) -> Offsets:
    # The first part has times of 32 bits and is skipped.
    start, *counts = 0, *_counts(data, 0)
    in_utc, standard, leaps, times, types, characters = counts
    start = _HEADER.size + 5 * times + 6 * types + characters + 8 * leaps + standard + in_utc
    in_utc, standard, leaps, times, types, characters = _counts(data, start)
    if leaps:
        raise ValueError("a time zone's file counts leap seconds")
    place = start + _HEADER.size
    moments = struct.unpack_from(f">{times}q", data, place)
    of_moment = data[place + 8 * times : place + 9 * times]
    place += 9 * times
    offset_of = [_TYPE.unpack_from(data, place + 6 * number)[0] for number in range(types)]
    changes = [(moment, offset_of[number]) for moment, number in zip(moments, of_moment, strict=True)]
    place += 6 * types + characters + 12 * leaps + standard + in_utc
    rule = data[place:].decode("ascii").strip("\n")
    first_year = 1970 if not changes else date.fromordinal(_EPOCH + changes[-1][0] // _DAY_S).year
    for change in _by_rule(rule, first_year):
        if not changes or change[0] > changes[-1][0]:
            changes.append(change)
    return offset_of[0], tuple(_real(offset_of[0], changes))


def _counts(data: bytes, place: int) -> tuple[int, ...]:
    magic, version, *counts = _HEADER.unpack_from(data, place)
    if magic != b"TZif" or version < b"2":
        raise ValueError("no file of a time zone, or one of version 1")
    return tuple(counts)


def _real(before_s: int, changes: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The changes of the offset, without those that change only its name."""
    for moment, offset_s in changes:
        if offset_s != before_s:
            yield moment, offset_s
        before_s = offset_s


def _by_rule(rule: str, first_year: int) -> list[tuple[int, int]]:
    """The changes by the rule in a file's last line (POSIX TZ), as `WET0WEST,M3.5.0/1,M10.5.0`; none without a rule."""
    found = _RULE.fullmatch(rule)
    if rule and found is None:
        raise ValueError(f"no rule of a time zone: {rule[:80]!r}")
    if found is None or found["begin"] is None:
        return []
    # POSIX writes the offset that has to be added to local time to get UTC.
    standard_s = -_seconds(found["standard"])
    summer_s = standard_s + 3_600 if found["summer"] is None else -_seconds(found["summer"])
    begin_s, end_s = _seconds(found["begin_at"] or "2"), _seconds(found["end_at"] or "2")
    changes: list[tuple[int, int]] = []
    for year in range(first_year, LAST_YEAR + 1):
        changes.append((_day(year, found["begin"]) * _DAY_S + begin_s - standard_s, summer_s))
        changes.append((_day(year, found["end"]) * _DAY_S + end_s - summer_s, standard_s))
    return sorted(change for change in changes if change[0] < _day(LAST_YEAR + 1, "0") * _DAY_S)


def _seconds(text: str) -> int:
    """`-3:30` in seconds."""
    parts = [int(part) for part in text.lstrip("+-").split(":")]
    seconds = sum(part * unit for part, unit in zip(parts, (3_600, 60, 1)))
    return -seconds if text.startswith("-") else seconds


def _day(year: int, rule: str) -> int:
    """The day since 1970 that a rule names: `M3.5.0` is the last Sunday of March, `J60` 1 March, `59` the 60th day."""
    january_1 = date(year, 1, 1).toordinal() - _EPOCH
    if not rule.startswith("M"):
        number = int(rule.lstrip("J"))
        if not rule.startswith("J"):
            return january_1 + number
        is_leap = date(year, 12, 31).toordinal() - date(year, 1, 1).toordinal() == 365
        return january_1 + number - 1 + (is_leap and number >= 60)
    month, week, weekday = (int(part) for part in rule[1:].split("."))
    first = date(year, month, 1)
    day = 1 + (weekday - first.isoweekday()) % 7 + 7 * (week - 1)
    length = (date(year + month // 12, month % 12 + 1, 1) - first).days
    return first.toordinal() - _EPOCH + (day if day <= length else day - 7) - 1
