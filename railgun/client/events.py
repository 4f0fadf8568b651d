"""Encodes events of Python programs as JSON, and cuts them into parts that are sent one after another."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from railgun.client.errors import ClientError

PART_EVENTS, PART_BYTES = 1_000, 1 << 20


def event_json(event: Mapping[str, Any]) -> bytes:
    """Encode one event. A datetime needs a time zone; a Decimal becomes a string. Raises ClientError."""
    given: object = event
    if isinstance(given, list | tuple):
        raise ClientError("event: it is a list; score_batch takes several events")
    return _encoded(event, "event")


def events_json(events: Sequence[Mapping[str, Any]]) -> bytes:
    """Encode an array of events. Raises ClientError."""
    return b"[" + b",".join(_encoded(each, f"event {place}") for place, each in enumerate(events)) + b"]"


def keys_json(keys: Sequence[Mapping[str, Any]], metrics: Sequence[str] | None) -> bytes:
    """Encode the body of a value query. Raises ClientError."""
    asked: dict[str, Any] = {"keys": list(keys)}
    if metrics is not None:
        asked["metrics"] = list(metrics)
    return _encoded(asked, "keys")


class Parts:
    """Cuts events into parts of lines. A part has at most `part_events` events and about `PART_BYTES` bytes."""

    def __init__(self, part_events: int) -> None:
        if part_events < 1:
            raise ClientError(f"part_events: {part_events} is no number of events; name 1 or more")
        self._part_events, self._lines, self._bytes, self._n = part_events, list[bytes](), 0, 0

    def add(self, event: Mapping[str, Any]) -> bytes | None:
        """Add an event. Return the part if the event completes it, else None. Raises ClientError."""
        line = _encoded(event, f"event {self._n}") + b"\n"
        self._n += 1
        self._lines.append(line)
        self._bytes += len(line)
        if len(self._lines) >= self._part_events or self._bytes >= PART_BYTES:
            return self.rest()
        return None

    def rest(self) -> bytes | None:
        """Return the events that are in no part yet, or None if there are none."""
        part = b"".join(self._lines)
        self._lines, self._bytes = [], 0
        return part or None


def parts_of(events: Iterable[Mapping[str, Any]], part_events: int) -> Iterator[bytes]:
    """Encode events as lines and yield them in parts. Raises ClientError."""
    parts = Parts(part_events)
    for event in events:
        part = parts.add(event)
        if part is not None:
            yield part
    rest = parts.rest()
    if rest is not None:
        yield rest


def _encoded(value: Any, place: str) -> bytes:
    try:
        if isinstance(value, Mapping):
            value = dict(value)
        return json.dumps(
            value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_as_json
        ).encode()
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise ClientError(f"{place}: {error}") from None


def _as_json(value: object) -> object:
    """Convert a value that JSON has no type for."""
    if isinstance(value, datetime):
        if value.utcoffset() is None:
            raise ValueError(f"the datetime {value} has no time zone: give it one, as in tzinfo=UTC")
        # RFC 3339 has no seconds in offsets, and Python may have some, so the time is converted to UTC.
        return value.astimezone(UTC).isoformat()
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise ValueError(f"the Decimal {value} is no number")
        return format(value, "f")
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a {type(value).__name__} is no value of JSON")
