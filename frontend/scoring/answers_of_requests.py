"""The answers to events that were taken together, each request's own, in the order that it sent them."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from frontend.problems import Problem, of_event
from frontend.scoring.backend import Answer
from frontend.scoring.replies import Reply
from railgun.catalog.model import ALL, StreamDefinition
from railgun.ingest.accepted import Taken
from railgun.ingest.intake import JsonText, MalformedEventError


def placed(taken: Taken, replies: Sequence[Reply | Problem], n: int) -> list[Answer | None]:
    """Replies and problems where their events stand among the n texts."""
    if not taken.refused:
        return list(replies)
    answers = without_replies(taken, n)
    assert taken.rows is not None
    for row, reply in zip(taken.rows.tolist(), replies):
        answers[row] = reply
    return answers


def without_replies(taken: Taken, n: int) -> list[Answer | None]:
    """Problems where their events stand among the n texts, None for what was taken."""
    answers: list[Answer | None] = [None] * n
    for row, error in taken.refused.items():
        answers[row] = of_event(400 if isinstance(error, MalformedEventError) else 422, error)
    return answers


def said_by(text: JsonText) -> Mapping[str, Any]:
    """The fields that an event's text says; none where it is no event."""
    try:
        event = msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return {}
    return event if isinstance(event, dict) else {}


def id_of(event: Mapping[str, Any], stream: StreamDefinition) -> str | int | msgspec.UnsetType:
    """The id that an event says; unset where it says none."""
    found = None if stream.id is None else event.get(stream.id)
    return found if isinstance(found, str | int) else msgspec.UNSET


def sent_to(event: Mapping[str, Any], stream: StreamDefinition) -> tuple[str, ...]:
    """The partitioners that an event goes to: not those whose field is null."""
    return tuple(name for name in stream.partitioners if name == ALL or event.get(name) is not None)
