"""Whoever sent events that may count is told whether sending them again is safe: only their ids make it so."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any, cast

import pytest

from frontend.exchange.exchange import Exchange
from frontend.exchange.pending import PendingRequest
from frontend.exchange.streams import StreamIntakes
from frontend.kafka.requests import Request, Requests, _Together
from frontend.problems import ProblemError
from frontend.scoring.answers_in_time import unanswered
from frontend.scoring.scoring_thread import Waiter
from frontend.topics.recorded import RecordedReplies
from railgun.messaging.errors import TransportUnavailableError
from railgun.telemetry.recording import Recording

AWAY = TransportUnavailableError("t-0", "Message timed out", "Check the broker")
SAFE = "sending them again with their ids is safe"
TWICE = "their stream has no id field, so sent again they would count once more"
NOT_KNOWN = "sending them again is safe with their ids, and without an id field they would count once more"


class _Loop:
    """Takes the outcomes that are due."""

    def __init__(self) -> None:
        self.outcomes: list[tuple[Request, ProblemError]] = []

    def call_soon_threadsafe(self, _: Callable[..., object], outcomes: list[Any]) -> None:
        self.outcomes += outcomes


def _views(has_id: bool | None) -> dict[str, Any]:
    """The view of the stream s. has_id: None: it is not known any more."""
    definition = SimpleNamespace(id="id" if has_id else None)
    return {} if has_id is None else {"s": SimpleNamespace(definition=definition)}


def _requests(loop: _Loop, has_id: bool | None) -> Requests:
    return Requests(
        cast(asyncio.AbstractEventLoop, loop),
        cast(Exchange, None),
        cast(StreamIntakes, SimpleNamespace(now=SimpleNamespace(views=_views(has_id)))),
        cast(RecordedReplies, SimpleNamespace(record=_raises)),
        Recording(),
    )


def _request(timeout_ms: int) -> Request:
    return Request.of("s", ["{}"], None, timeout_ms, reply=True, answered=cast(Waiter, Future()))


def _raises(pending: PendingRequest) -> None:
    raise AWAY


def _said(loop: _Loop) -> str:
    ((_, error),) = loop.outcomes
    return error.problem.detail


@pytest.mark.parametrize(("has_id", "text"), [(True, SAFE), (False, TWICE), (None, NOT_KNOWN)])
def test_events_whose_acknowledgement_did_not_come(has_id: bool | None, text: str) -> None:
    loop, sent = _Loop(), Future[list[int]]()
    sent.set_exception(AWAY)
    request = _request(1000)
    context = _Together([request], cast(Any, None), 1, 0.0)
    _requests(loop, has_id)._sent("s", context, sent)
    assert _said(loop) == f"{AWAY}; the events may count; {text}"


@pytest.mark.parametrize(("has_id", "text"), [(True, SAFE), (False, TWICE)])
def test_replies_that_could_not_be_recorded(has_id: bool, text: str) -> None:
    loop, request = _Loop(), _request(1000)
    pending = cast(PendingRequest, SimpleNamespace(homes=SimpleNamespace(has_id=has_id)))
    requests = _requests(loop, has_id)
    expected = f"the replies could not be recorded: {AWAY}; the events count; {text}"
    ((_, error),) = requests._recorded(pending, [(request, [])])
    assert cast(ProblemError, error).problem.detail == expected
    written = Future[list[int]]()
    written.set_exception(AWAY)
    requests._written(pending, [(request, [])], written)
    assert _said(loop) == expected


def test_an_event_of_a_stream_that_is_not_known() -> None:
    request = _request(200)
    request.taken = True
    (answer,) = unanswered(request, None)
    assert getattr(answer, "detail", "") == (
        "no answer within 200 ms; the event may count; sending it again is safe with its id, and without an id field "
        "it would count once more"
    )
