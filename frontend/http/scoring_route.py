"""Answers `POST /v1/streams/{stream}/events` without the framework, which would cost more than scoring an event.

`Application` hands it the requests, and it hands the events to the backend's scoring.
"""

import logging
from collections.abc import Sequence
from typing import Any

import msgspec

from frontend.access.audit import has_line, note_refusal
from frontend.access.caller import caller_of
from frontend.access.permission import Permission, check_rate, no_certificate
from frontend.http.asgi import (
    AT_WORK,
    CERTIFICATE,
    JSON_TYPE,
    NDJSON_TYPE,
    PROBLEM_TYPE,
    Body,
    GoneError,
    Receive,
    Scope,
    Send,
    answer,
    answer_problem,
    check_length,
    encoder,
    ends_waiting_body,
    header,
)
from frontend.http.in_flight import InFlight
from frontend.http.line_stream import LineStream, Stopping
from frontend.http.receipt import Receipt
from frontend.http.score_options import ScoreOptions, check_metrics, read_options
from frontend.problems import Problem, ProblemError, of_no_json, refusal
from frontend.samples.samples import Samples
from frontend.scoring.scoring import Answer, Scoring
from railgun.access.guard import AccessError, Caller, Guard
from railgun.access.routes import RouteMatch
from railgun.config.settings import HttpSettings

_log = logging.getLogger("railgun.frontend")
_split = msgspec.json.Decoder(list[msgspec.Raw]).decode
_SPACE = b" \t\r\n"


class ScoringRoute:
    """Answers requests with one event, an array, or lines.

    stopping: set when streams of lines are to end.
    samples: takes some of the events, once they are answered; None: none are taken.
    """

    def __init__(
        self,
        scoring: Scoring,
        settings: HttpSettings,
        in_flight: InFlight,
        stopping: Stopping,
        guard: Guard,
        samples: Samples | None = None,
    ) -> None:
        self._samples = samples
        self._scoring, self._settings, self._in_flight = scoring, settings, in_flight
        self._stopping, self._guard = stopping, guard

    async def __call__(self, found: RouteMatch, scope: Scope, receive: Receive, send: Send) -> int:
        """Answer an authorized request and return the status. found: the request's route."""
        stream = found.parameters["stream"]
        try:
            return await self._answer(found, scope, receive, send)
        except ProblemError as error:
            self._scoring.refused(stream, error.problem.status)
            await answer_problem(scope, send, error, ends_waiting_body(scope))
            return error.problem.status
        except GoneError:
            return 499

    async def _answer(self, found: RouteMatch, scope: Scope, receive: Receive, send: Send) -> int:
        stream, caller = found.parameters["stream"], caller_of(scope)
        content_type = _content_type(scope)
        options = read_options(scope["query_string"])
        check_metrics(options, self._scoring.view(stream))
        if content_type == NDJSON_TYPE:

            def note_end(error: AccessError) -> None:
                note_refusal(scope, error, is_logged=has_line(error, found.route))

            permission = Permission(
                self._guard, caller, found, scope.get(CERTIFICATE, no_certificate), note_end
            )
            lines = LineStream(
                self._scoring, self._settings, self._in_flight, self._stopping, permission, self._samples
            )
            scope[AT_WORK] = lines.is_at_work
            return await lines.answer(stream, options, receive, send)
        check_length(scope, self._settings.body_limit_bytes)
        body = Body(receive, self._in_flight, self._settings.body_limit_bytes)
        with body.held():
            text = await body.read(self._settings.timeout_ms / 1000)
            if text.lstrip(_SPACE)[:1] == b"[":
                return await self._array(caller, stream, self._texts(text), options, send)
            return await self._event(caller, stream, text, options, send)

    async def _event(
        self, caller: Caller, stream: str, text: bytes, options: ScoreOptions, send: Send
    ) -> int:
        (found,) = await self._score(caller, stream, [text], options)
        if isinstance(found, Problem):
            status = found.status
            await answer(send, status, encoder.encode(found), PROBLEM_TYPE)
        elif not options.reply:
            status = await self._receipt([found], send)
        else:
            status = 200
            await answer(send, status, encoder.encode(found))
        if self._samples is not None:
            self._samples.take(stream, [text], [found])
        return status

    async def _array(
        self, caller: Caller, stream: str, texts: Sequence[Any], options: ScoreOptions, send: Send
    ) -> int:
        answers = await self._score(caller, stream, texts, options) if texts else []
        status = 200
        if not options.reply:
            status = await self._receipt(answers, send)
        else:
            await answer(send, status, encoder.encode(answers))
        if self._samples is not None:
            self._samples.take(stream, texts, answers)
        return status

    def _texts(self, text: bytes) -> list[msgspec.Raw]:
        try:
            texts = _split(text)
        except msgspec.MsgspecError as error:
            raise of_no_json(text, error) from None
        except RecursionError:
            raise refusal(400, "no JSON that can be read: nested too deep") from None
        limit = self._settings.batch_limit_events
        if len(texts) > limit:
            raise refusal(
                413,
                f"{len(texts)} events in one array; at most {limit} are taken: send several arrays, or lines "
                "(application/x-ndjson)",
            )
        return texts

    async def _score(
        self, caller: Caller, stream: str, texts: Sequence[Any], options: ScoreOptions
    ) -> list[Answer | None]:
        self._in_flight.take(len(texts), 0)
        try:
            # The rate is checked last: events without room do not count against their token's limit.
            check_rate(self._guard, caller, len(texts))
            return await self._scoring.score(
                stream,
                texts,
                metrics=options.metrics,
                timeout_ms=options.timeout_ms or self._settings.timeout_ms,
                takes_partial=options.takes_partial,
                reply=options.reply,
            )
        finally:
            self._in_flight.release(len(texts), 0)

    async def _receipt(self, answers: Sequence[Answer | None], send: Send) -> int:
        receipt = Receipt()
        receipt.note(answers)
        await answer(send, 202, encoder.encode(receipt), JSON_TYPE)
        return 202


def _content_type(scope: Scope) -> bytes:
    """Return the media type of a request. Raises ProblemError (415)."""
    given = header(scope, b"content-type") or b""
    media, _, parameters = given.partition(b";")
    media = media.strip().lower()
    encoding = (header(scope, b"content-encoding") or b"identity").strip().lower()
    if encoding != b"identity":
        raise refusal(415, "a body with a Content-Encoding is not taken; send it as it is")
    charset = parameters.replace(b" ", b"").replace(b'"', b"").lower()
    if media not in (JSON_TYPE, NDJSON_TYPE) or (b"charset=" in charset and b"charset=utf-8" not in charset):
        shown = given[:80].decode("latin-1") or "missing"
        raise refusal(
            415, f"the Content-Type is {shown}; application/json or application/x-ndjson in UTF-8 is taken"
        )
    return media
