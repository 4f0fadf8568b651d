"""Decodes and checks the answers of a server: plain dictionaries with known keys."""

from typing import Any, NotRequired, TypeAlias, TypedDict, cast

import msgspec

from railgun.client.errors import ProblemError, UnreadableAnswerError


class Reply(TypedDict):
    """The reply to an event (docs/http.md). Decimals are strings; integers are exact.

    time: the event's time, in ms since 1970.  metrics: values by name.  late: by partitioner.  partial: by metric.
    missing: with `on_timeout="partial"`, the partitioners that have not answered in time.
    """

    id: str | int
    time: int
    metrics: dict[str, Any]
    late: NotRequired[dict[str, str]]
    duplicate: NotRequired[list[str]]
    warming: NotRequired[list[str]]
    partial: NotRequired[dict[str, int]]
    missing: NotRequired[list[str]]


class AsOf(TypedDict):
    """The position of a task. time: of its clock, in ms; None before the first event.  offset: in its log."""

    time: int | None
    offset: int


class KeyValues(TypedDict):
    """The current metrics of a key. as_of: by partitioner."""

    key: dict[str, Any]
    metrics: dict[str, Any]
    as_of: dict[str, AsOf]
    warming: NotRequired[list[str]]
    partial: NotRequired[dict[str, int]]


# The answer to one event of several: its reply, or the problem. The problem is an exception object that is not raised.
EventAnswer: TypeAlias = Reply | ProblemError


def body_of(content: bytes, place: str) -> Any:
    """Decode a body. Integers of any length stay exact. Raises ClientError."""
    try:
        return msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise _no_railgun(place, "no JSON") from None


def table_of(content: bytes, place: str) -> dict[str, Any]:
    """Decode a body that is an object. Raises ClientError."""
    body = body_of(content, place)
    if not isinstance(body, dict):
        raise _no_railgun(place, "no object")
    return body


def tables_of(content: bytes, place: str, name: str = "") -> list[dict[str, Any]]:
    """Decode a body that is a list of objects, or an object with such a list under `name`. Raises ClientError."""
    body = body_of(content, place)
    found = body.get(name) if isinstance(body, dict) else body
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise _no_railgun(place, "no list of objects")
    return found


def reply_of(content: bytes, place: str) -> Reply:
    """Decode a body that is a reply. Raises ClientError."""
    found = event_answer(table_of(content, place), place)
    if isinstance(found, ProblemError):
        raise found
    return found


def event_answer(body: dict[str, Any], place: str) -> EventAnswer:
    """Convert the object that answers one event. Raises ClientError."""
    if isinstance(body.get("metrics"), dict):
        return cast(Reply, body)
    if isinstance(body.get("status"), int):
        return ProblemError(place, body["status"], body)
    raise _no_railgun(place, "no reply")


def event_answers(content: bytes, place: str, n: int) -> list[EventAnswer]:
    """Decode a body that answers n events. Raises ClientError."""
    found = [event_answer(each, place) for each in tables_of(content, place)]
    if len(found) != n:
        raise _no_railgun(place, f"{len(found)} answers to {n} events")
    return found


def line_answers(lines: bytes, place: str) -> list[EventAnswer]:
    """Decode answers that stand one on each line. Raises ClientError."""
    return [event_answer(table_of(line, place), place) for line in lines.splitlines()]


def _no_railgun(place: str, what: str) -> UnreadableAnswerError:
    return UnreadableAnswerError(f"{place}: the answer is {what}; is this a Railgun server?")
