"""What a server answers, as Python sees it: plain dictionaries with known keys, checked as they come."""

from typing import Any, NotRequired, TypeAlias, TypedDict, cast

import msgspec

from railgun.client.errors import ProblemError, UnreadableAnswerError


class Reply(TypedDict):
    """The reply to an event (docs/http.md). Decimals are strings; integers are exact.

    time: of the event, in ms since 1970.  metrics: by name.  late, partial: by partitioner, by metric.  missing: the
    partitioners that have not answered in time, with `on_timeout="partial"`.
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
    """How far a task was: the time of its clock in ms, None before the first event, and the offset in its log."""

    time: int | None
    offset: int


class KeyValues(TypedDict):
    """The metrics of a key as they are now. as_of: by partitioner."""

    key: dict[str, Any]
    metrics: dict[str, Any]
    as_of: dict[str, AsOf]
    warming: NotRequired[list[str]]
    partial: NotRequired[dict[str, int]]


# Of an event among others: its reply, or why it was refused. The problem is an exception, and not raised.
EventAnswer: TypeAlias = Reply | ProblemError


def body_of(content: bytes, place: str) -> Any:
    """A body, decoded; integers of any length stay exact. Raises ClientError."""
    try:
        return msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise _no_railgun(place, "no JSON") from None


def table_of(content: bytes, place: str) -> dict[str, Any]:
    """A body that is an object. Raises ClientError."""
    body = body_of(content, place)
    if not isinstance(body, dict):
        raise _no_railgun(place, "no object")
    return body


def tables_of(content: bytes, place: str, name: str = "") -> list[dict[str, Any]]:
    """A body that is a list of objects, or an object that has such a list by a name. Raises ClientError."""
    body = body_of(content, place)
    found = body.get(name) if isinstance(body, dict) else body
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise _no_railgun(place, "no list of objects")
    return found


def reply_of(content: bytes, place: str) -> Reply:
    """A body that is a reply. Raises ClientError."""
    found = event_answer(table_of(content, place), place)
    if isinstance(found, ProblemError):
        raise found
    return found


def event_answer(body: dict[str, Any], place: str) -> EventAnswer:
    """What stands in the place of one event. Raises ClientError."""
    if isinstance(body.get("metrics"), dict):
        return cast(Reply, body)
    if isinstance(body.get("status"), int):
        return ProblemError(place, body["status"], body)
    raise _no_railgun(place, "no reply")


def event_answers(content: bytes, place: str, n: int) -> list[EventAnswer]:
    """A body that answers n events. Raises ClientError."""
    found = [event_answer(each, place) for each in tables_of(content, place)]
    if len(found) != n:
        raise _no_railgun(place, f"{len(found)} answers to {n} events")
    return found


def line_answers(lines: bytes, place: str) -> list[EventAnswer]:
    """Lines of answers. Raises ClientError."""
    return [event_answer(table_of(line, place), place) for line in lines.splitlines()]


def _no_railgun(place: str, what: str) -> UnreadableAnswerError:
    return UnreadableAnswerError(f"{place}: the answer is {what}; is this a Railgun server?")
