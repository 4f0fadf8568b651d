"""The answers to events that were taken together, each request's own, in the order that it sent them."""

from collections.abc import Sequence

import msgspec

from frontend.backend import Answer, StreamView
from frontend.problems import Problem, of_event
from frontend.replies import Reply
from railgun.engine.intake import JsonText, MalformedEventError
from railgun.engine.taken import Taken


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


def id_of(text: JsonText, view: StreamView | None) -> str | int | msgspec.UnsetType:
    """The id that an event's text says; unset where it says none, or is no event."""
    field = None if view is None else view.definition.id
    try:
        event = msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        return msgspec.UNSET
    found = event.get(field) if isinstance(event, dict) else None
    return found if isinstance(found, str | int) else msgspec.UNSET
