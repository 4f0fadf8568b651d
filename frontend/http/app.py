"""The HTTP application: decides who may ask, hands requests to scoring, probes or pages, and answers errors.

Every error is answered with a problem object. Probes are the routes for monitoring: health, readiness, `/metrics`, and
`/v1/live`, which is asked for too often to go through the framework.
"""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from frontend.access.audit import has_line, note_refusal
from frontend.access.caller import caller_of, set_caller
from frontend.backend.backend import Backend
from frontend.backend.readiness import unavailable
from frontend.http.asgi import (
    HAS_CERTIFICATE,
    NO_STORE,
    Body,
    GoneError,
    Message,
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
from frontend.http.routes import ROUTES, ServedBy
from frontend.http.scoring_route import ScoringRoute
from frontend.http.single_events import SingleEvents
from frontend.live.live import Live
from frontend.problems import ProblemError, no_route, of_defect, refusal, refused, uncertain, wrong_method
from frontend.url_query import pairs_of, wrong_parameter
from railgun.access.guard import UNAUTHENTICATED, AccessError, Caller
from railgun.access.routes import Route, RouteMatch
from railgun.access.tls import Tls
from railgun.catalog.definitions import REQUEST_LIMIT_BYTES
from railgun.config.access import guard_of
from railgun.config.settings import HttpSettings

_UNANSWERED = (
    "stopping, without an answer by now: what was asked for may come to pass, and events may count; sending them again "
    "is safe with their ids, and without an id field they would count once more"
)
_log = logging.getLogger("railgun.frontend")


class Telemetry(Protocol):
    """The content of `/metrics`."""

    def text(self, accept: str = "") -> tuple[bytes, str]:
        """Return the body and its content type for an Accept header."""


class Application:
    """An ASGI application over a backend.

    stopping: set when streams of lines are to end.
    shown: all settings without secrets, for support bundles.
    tls: of the port; None without TLS.
    telemetry: the text of `/metrics`; if None, that route answers 404.
    single_events: scores requests of one event. Connections hand these requests to it, and not to the application.
    guard: decides about each request before its body is read and before its stream is looked up.
    live: the answers of `/v1/live`. Its `tick` is to be called about once a second.
    Raises ConfigError, TokenFileError and OSError if the configured tokens cannot be read, or contradict each other.
    """

    def __init__(
        self,
        backend: Backend,
        settings: HttpSettings,
        shown: Mapping[str, Any] | None = None,
        tls: Tls | None = None,
    ) -> None:
        self._backend, self._settings, self._shown = backend, settings, shown or {}
        self.telemetry: Telemetry | None = None
        self.in_flight = InFlight(settings.in_flight_limit_events, settings.in_flight_limit_bytes)
        self.stopping = asyncio.Event()
        self.guard = guard_of(settings)
        samples = backend.samples.or_none
        self._scoring = ScoringRoute(
            backend.scoring, settings, self.in_flight, self.stopping, self.guard, samples
        )
        self.single_events = SingleEvents(backend.scoring, settings, self.in_flight, self.guard, samples)
        self.live = Live(
            backend.live_figures,
            backend.readiness,
            lambda: (self.in_flight.events, self.in_flight.size_bytes),
            backend.samples.masks,
            ending=None if tls is None else tls.ending,
        )
        self._pages: Callable[[Scope, Receive, Send], Awaitable[None]] | None = None
        self._preparing = threading.Lock()
        self._probes = ROUTES.bind(
            ServedBy.PROBES,
            {"alive": self._alive, "ready": self._ready, "metrics": self._metrics, "live": self._live},
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        answering = _Answering(send)
        try:
            await self._route(scope, receive, answering)
        except ProblemError as error:
            await answer_problem(scope, answering, error, ends_waiting_body(scope))
        except AccessError as error:
            route = ROUTES.find(scope["method"], scope["path"]).route
            note_refusal(scope, error, is_logged=has_line(error, route))
            await answer_problem(scope, answering, refused(error), ends_waiting_body(scope))
        except GoneError:
            return
        except asyncio.CancelledError:
            # The server stops, and waits no longer for requests that are under way.
            if answering.started or not self.stopping.is_set():
                raise
            await answer_problem(scope, answering, uncertain(_UNANSWERED))
        except Exception:
            _log.exception("a defect: %s %s", scope["method"], scope["path"])
            if answering.is_whole:
                return
            if answering.started:
                raise
            await answer_problem(scope, answering, of_defect())

    def prepare(self) -> None:
        """Make the pages, which takes half a second, on any thread. Requests for pages wait for it; events do not."""
        with self._preparing:
            if self._pages is None:
                from frontend.http.bundle_parts import bundle_parts
                from frontend.http.pages import pages_of

                telemetry = self.telemetry
                parts = bundle_parts(
                    self._backend,
                    self.live.answer,
                    None if telemetry is None else lambda: telemetry.text()[0],
                    self._shown,
                )
                self._pages = pages_of(
                    self._backend, self._settings, self.live.front_end(), self.live.answered.lately, parts
                )

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = ROUTES.find(scope["method"], scope["path"])
        has_certificate = scope.get(HAS_CERTIFICATE, False)
        set_caller(
            scope,
            self.guard.authorize(scope["method"], found, scope["headers"], has_certificate=has_certificate),
        )
        route = _check_route(found, scope)
        match found.served_by:
            case ServedBy.EVENTS:
                await self._scoring(found, scope, receive, send)
            case ServedBy.PROBES:
                await self._probes[route](scope, send)
            case _:
                await self._page(scope, receive, send)

    async def _alive(self, scope: Scope, send: Send) -> None:
        await answer(send, 200, b'{"status":"alive"}')

    async def _metrics(self, scope: Scope, send: Send) -> None:
        if self.telemetry is None:
            raise refusal(404, "nothing is measured here")
        accept = (header(scope, b"accept") or b"").decode("latin-1")
        text, content_type = await asyncio.to_thread(self.telemetry.text, accept)
        await answer(send, 200, text, content_type.encode())

    async def _ready(self, scope: Scope, send: Send) -> None:
        caller = caller_of(scope)
        standing = self._backend.readiness()
        if not standing.ready:
            raise refusal(503, "not ready") if caller is UNAUTHENTICATED else unavailable(standing)
        said: dict[str, Any] = {"status": "ready"}
        shown = [each for each in self._backend.unanswered() if _may_see(caller, each["stream"])]
        if shown:
            said["unanswered"] = shown
        await answer(send, 200, encoder.encode(said))

    async def _live(self, scope: Scope, send: Send) -> None:
        for name, _ in pairs_of(scope["query_string"]):
            raise wrong_parameter(name[:80], "there is no such parameter; this route takes none")
        await answer(send, 200, await self.live.answer(caller_of(scope).scopes))

    async def _page(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with a page. The framework would read a body of any length, so it is given one that was read here."""
        limit_bytes = min(REQUEST_LIMIT_BYTES, self._settings.body_limit_bytes)
        check_length(scope, limit_bytes)
        body = Body(receive, self.in_flight, limit_bytes)
        with body.held():
            whole: list[Message] = [
                {"type": "http.request", "body": await body.read(self._settings.timeout_ms / 1000)}
            ]

            async def replay() -> Message:
                return whole.pop() if whole else await receive()

            if self._pages is None:
                await asyncio.to_thread(self.prepare)
            assert self._pages is not None
            # The server sends no body in answer to a HEAD.
            asked = {**scope, "method": "GET"} if scope["method"] == "HEAD" else scope
            await self._pages(asked, replay, send)


def _may_see(caller: Caller, stream: str) -> bool:
    """Whether `/readyz` names a stream. Monitoring sees all of them, as in `/metrics`."""
    return caller.scopes.may_read(stream) or caller.scopes.have("metrics")


def _check_route(found: RouteMatch, scope: Scope) -> Route:
    """Return the route of a request. Raises ProblemError (404, 405) if it has none."""
    if found.route is not None:
        return found.route
    method, path = scope["method"], scope["path"]
    raise wrong_method(method, path, found.methods) if found.rows else no_route(method, path)


class _Answering:
    """Passes the messages of an answer on, and notes whether the answer has begun and whether all of it was sent.

    Browsers may keep a copy only of an answer that says so.
    """

    def __init__(self, send: Send) -> None:
        self._send, self.started, self.is_whole = send, False, False

    async def __call__(self, message: Message) -> None:
        self.started = True
        if message["type"] == "http.response.start":
            headers = message["headers"]
            if not any(name == NO_STORE[0] for name, _ in headers):
                message = {**message, "headers": [NO_STORE, *headers]}
        await self._send(message)
        self.is_whole = message["type"] == "http.response.body" and not message.get("more_body", False)
