"""Takes single events the shortest way from a connection to the backend and back, without a task or ASGI messages.

Only requests that are plainly one event are taken here. All others, and those that are refused before they are scored,
are left to the application, so that one place says what is wrong with requests.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import NamedTuple

import httptools

from frontend.http.asgi import JSON_TYPE, PROBLEM_TYPE, Header, encoder
from frontend.http.in_flight import InFlight
from frontend.http.routes import ROUTES, SCORE
from frontend.http.score_options import KNOWN_BYTES_MAX, ScoreOptions, check_metrics, read_options
from frontend.problems import Problem, ProblemError, of_defect
from frontend.samples.samples import Samples
from frontend.scoring.scoring import Answer, Scoring
from railgun.access.guard import AccessError, Caller, Guard
from railgun.access.routes import RouteMatch
from railgun.config.settings import HttpSettings

METHOD = SCORE.method.encode()
BODY_BYTES_MAX = 16 << 10
"""The greatest body that is taken here. A connection holds this much before it is counted in flight."""
_JSON_TYPES = frozenset({JSON_TYPE, b"application/json; charset=utf-8", b"application/json;charset=utf-8"})
_LEFT = frozenset({b"content-encoding", b"expect", b"transfer-encoding", b"upgrade"})
_log = logging.getLogger("railgun.frontend")

Reply = Callable[[int, bytes, bytes, Sequence[Header]], None]
"""Sends an answer: its status, body, type, and further headers."""


@dataclass(frozen=True, slots=True)
class Target:
    """The stream and the options that a URL names. found: its route, with the stream."""

    found: RouteMatch
    options: ScoreOptions

    @property
    def stream(self) -> str:
        return self.found.parameters["stream"]


class Admitted(NamedTuple):
    """A request that may be scored, as far as its head tells."""

    target: Target
    caller: Caller


class SingleEvents:
    """Admits requests by their heads and has their events scored. `Connection` calls it, in one event loop.

    samples: takes some of the events; None: none are taken.
    """

    def __init__(
        self,
        scoring: Scoring,
        settings: HttpSettings,
        in_flight: InFlight,
        guard: Guard,
        samples: Samples | None = None,
    ) -> None:
        self._samples = samples
        self._scoring, self._in_flight, self._timeout_ms = scoring, in_flight, settings.timeout_ms
        self._guard = guard
        self._body_limit_bytes = min(BODY_BYTES_MAX, settings.body_limit_bytes)

    def admit(
        self, url: bytes, headers: Sequence[Header], *, has_certificate: bool = False
    ) -> Admitted | None:
        """Return the target and the caller of a request, if it may be a single event and its caller may send it.

        None if the request is left to the application.
        url, headers: of a `METHOD` request; the headers' names are in lower case.
        has_certificate: whether the client showed a certificate that was verified.
        """
        kind = length = None
        for name, value in headers:
            if name == b"content-type":
                if kind is not None:
                    return None
                kind = value
            elif name == b"content-length":
                length = value
            elif name in _LEFT:
                return None
        if kind not in _JSON_TYPES or length is None or int(length) > self._body_limit_bytes:
            return None
        target = (_known_target if len(url) <= KNOWN_BYTES_MAX else _target)(url)
        if target is None:
            return None
        try:
            caller = self._guard.authorize(
                SCORE.method, target.found, headers, has_certificate=has_certificate
            )
        except AccessError:
            return None
        return Admitted(target, caller)

    def score(self, admitted: Admitted, text: bytes, reply: Reply) -> bool:
        """Have an event scored. Return False if the request is left to the application.

        reply: is called once, in the event loop; never if this returns False.
        """
        if text[:1] != b"{":
            return False
        target, caller = admitted
        stream, options, size_bytes = target.stream, target.options, len(text)
        try:
            check_metrics(options, self._scoring.view(stream))
            self._in_flight.take(1, size_bytes)
        except ProblemError:
            return False
        if self._guard.wait_s(caller, 1) > 0:
            self._in_flight.release(1, size_bytes)
            return False
        try:
            self._scoring.submit(
                stream,
                text,
                metrics=options.metrics,
                timeout_ms=options.timeout_ms or self._timeout_ms,
                takes_partial=options.takes_partial,
                tell=partial(self._tell, stream, caller, text, reply),
            )
        except Exception:  # noqa: BLE001 - the application finds the same, and says it
            self._in_flight.release(1, size_bytes)
            self._guard.give_back(caller, 1)
            return False
        return True

    def _tell(
        self, stream: str, caller: Caller, text: bytes, reply: Reply, found: Answer | BaseException | None
    ) -> None:
        self._in_flight.release(1, len(text))
        if not isinstance(found, BaseException):
            status, content_type = (
                (found.status, PROBLEM_TYPE) if isinstance(found, Problem) else (200, JSON_TYPE)
            )
            try:
                body = encoder.encode(found)
            except Exception as error:  # noqa: BLE001 - the client is told, whatever it is
                found = error
            else:
                reply(status, body, content_type, ())
                if self._samples is not None:
                    self._samples.take(stream, (text,), (found,))
                return
        if not isinstance(found, ProblemError):
            _log.error("a defect: an event of %s", stream, exc_info=found)
            found = of_defect()
        found = found.for_caller(caller)
        self._scoring.refused(stream, found.problem.status)
        reply(found.problem.status, encoder.encode(found.problem), PROBLEM_TYPE, found.headers)


def _target(url: bytes) -> Target | None:
    try:
        parsed = httptools.parse_url(url)
        path = parsed.path.decode("ascii")
        options = read_options(parsed.query or b"")
    except (httptools.HttpParserInvalidURLError, UnicodeDecodeError, ProblemError):
        return None
    if "%" in path or not options.reply:
        return None
    found = ROUTES.find(SCORE.method, path)
    return Target(found, options) if found.route is SCORE else None


_known_target = lru_cache(maxsize=1024)(_target)
