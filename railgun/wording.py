"""Puts numbers of things, lists of names, times and errors of the system into words."""

import errno
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import pairwise

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def counted(number: int, noun: str, nouns: str = "") -> str:
    """Return a number with its noun: `1 chunk`, `12,345 chunks`. nouns: the plural, if it is not `noun` with an s."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {nouns or noun + 's'}"


def number_text(number: float) -> str:
    """Return a number as people write it: `1,234,567`, `12.35`, `0.00001`; whole from 1,000 on, else of four digits."""
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{Decimal(f'{number:.4g}'):,f}"


def listed(names: Sequence[str], most: int = 5, total: int | None = None) -> str:
    """Return the first of some names, and how many more there are: `a, b and 7 more`.

    most: the most names to show.  total: how many there are, if `names` has only those to show.
    """
    left = (len(names) if total is None else total) - most
    return ", ".join(names[:most]) + (f" and {left:,} more" if left > 0 else "")


def one_line(text: str, most: int) -> str:
    """Return a text in one line, cut after so many characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"


_REMEDIES = {
    errno.ENOENT: "is the path right?",
    errno.EISDIR: "a file belongs here, not a folder",
    errno.ENOTDIR: "a folder belongs here, not a file",
    errno.EACCES: "check its permissions",
    errno.EPERM: "check its permissions",
    errno.ENOSPC: "free space, then run it again",
    errno.EDQUOT: "free space, then run it again",
    errno.EROFS: "choose a place that can be written to",
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
}


def error_text(error: BaseException) -> str:
    """Return an error as text. One of the system has its place and, where it is known, a remedy."""
    if not isinstance(error, OSError) or not error.strerror:
        return str(error)
    place = f"{error.filename}: " if error.filename else ""
    remedy = _REMEDIES.get(error.errno or 0)
    return place + error.strerror + (f"; {remedy}" if remedy else "")


_SPANS = (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000))


def span_text(span_ms: int) -> str:
    """Return a length of time in its two greatest units, rounded down: `6 d 23 h`, `7 d`, `1 min 30 s`."""
    for (unit, size_ms), (smaller, smaller_ms) in pairwise(_SPANS):
        if span_ms >= size_ms:
            rest = span_ms % size_ms // smaller_ms
            return f"{span_ms // size_ms} {unit}" + (f" {rest} {smaller}" if rest else "")
    return f"{span_ms // smaller_ms} {smaller}"


def time_text(time_ms: int) -> str:
    """Return a time as `2024-01-31T12:00:00.250Z`, with whole seconds as `2024-01-31T12:00:00Z`.

    Times outside the years 1 to 9999 are given in ms.
    """
    try:
        time = _EPOCH + timedelta(milliseconds=time_ms)
    except OverflowError:
        return f"{time_ms} ms"
    return time.isoformat(timespec="milliseconds" if time_ms % 1000 else "seconds").replace("+00:00", "Z")


# Read as seconds these are the years 2001 to 2286, and as milliseconds twelve days to four months of 1970.
_SECONDS_LEAST, _SECONDS_END = 1_000_000_000, 10_000_000_000


# Nanoseconds in one of each unit; and the times from 1990 to 2100, in ms.
_NANOSECONDS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
_USUAL_LEAST_MS, _USUAL_END_MS = 631_152_000_000, 4_133_980_800_000


def unit_doubt(time_ms: int, unit: str) -> str | None:
    """Return a doubt about the time of an event that is before 1990 or after 2100, with the unit that is likely.

    unit: `s`, `ms`, `us` or `ns`, in which it was read. Returns None for other times.
    """
    if _is_usual(time_ms):
        return None
    doubt = f"an event is of {time_text(time_ms)}, as the numbers of its time are taken for {unit} since 1970"
    for other, size in _NANOSECONDS.items():
        meant_ms = time_ms * size // _NANOSECONDS[unit]
        if _is_usual(meant_ms):
            return f'{doubt}; in {other} it would be of {time_text(meant_ms)[:4]}: is its unit "{other}"?'
    return f"{doubt}; is that right?"


def usual_unit(number: int | float) -> str | None:
    """Return the unit in which a number is a time from 1990 to 2100; None if there is none."""
    return next((unit for unit, size in _NANOSECONDS.items() if _is_usual(number * size / 1_000_000)), None)


def _is_usual(time_ms: float) -> bool:
    return _USUAL_LEAST_MS <= time_ms < _USUAL_END_MS


def seconds_doubt(time_ms: int) -> str | None:
    """Return a doubt about the time of an event that looks like seconds since 1970; None if it does not."""
    if not _SECONDS_LEAST <= time_ms < _SECONDS_END:
        return None
    return (
        f"the time {time_ms} of an event is {time_text(time_ms)}, as times are milliseconds since 1970; if it was "
        f"meant as seconds, send {1000 * time_ms}"
    )


def gap_text(partitioner: str, partition: int, gap_ms: int | None) -> str:
    """Return the words for a task that lacks events of a gap in its log.

    gap_ms: no such event is later than that. None: the time is not to be told.
    """
    reach = "reach back to it" if gap_ms is None else f"begin at or before {time_text(gap_ms)}"
    return f"{partitioner}-{partition} lacks events of a gap in its log: windows that {reach} are partial"


def weak_topics_text(topics: Mapping[str, str]) -> str:
    """Return the words for topics that could lose acknowledged records with a broker. topics: each with a reason."""
    why = next(iter(topics.values()))
    named = listed(list(topics), 1)
    return f"the loss of one broker could lose events that were answered: {named}, as {why}"
