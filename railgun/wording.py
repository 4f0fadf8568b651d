"""Numbers of things, names and times, in words."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def counted(number: int, noun: str, nouns: str = "") -> str:
    """`1 chunk`, `12,345 chunks`. nouns: where it does not end in an s."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {nouns or noun + 's'}"


def listed(names: Sequence[str], most: int = 5) -> str:
    """`a, b and 7 more`: the first of some names, and how many there are besides."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def time_text(time_ms: int) -> str:
    """A time as `2024-01-31T12:00:00.250Z`, without a fraction for whole seconds; in ms outside the years 1 to 9999."""
    try:
        time = _EPOCH + timedelta(milliseconds=time_ms)
    except OverflowError:
        return f"{time_ms} ms"
    return time.isoformat(timespec="milliseconds" if time_ms % 1000 else "seconds").replace("+00:00", "Z")
