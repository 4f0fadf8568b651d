"""The errors that clients get: problem objects (RFC 9457), and the exceptions that carry them."""

from collections.abc import Iterable, Sequence
from http import HTTPStatus

import msgspec

from railgun.access.guard import AccessError, Caller
from railgun.registry.evolution import unknown_name
from railgun.wire.json_error import json_error
from railgun.wire.validator import EventRefusedError, FieldError, Location

RETRY_AFTER_S = 1
SHOWN_ERRORS_MAX = 100
_PASSES = ((b"retry-after", b"%d" % RETRY_AFTER_S),)
_FAILED = (
    "an error of the server, which its log names; a token with the scope metrics is told here what it is"
)


class ErrorPlace(msgspec.Struct, frozen=True):
    """One mistake. loc: the keys and the indices of lists that lead to its place."""

    loc: tuple[str | int, ...]
    msg: str


class Problem(msgspec.Struct, kw_only=True):
    """A problem object.

    title: the status in words.
    detail: what happened and what can be done.
    id, partitioners: of an event that was not answered in time: its id, if it has one, and those that did not answer.
    """

    title: str
    status: int
    detail: str
    errors: tuple[ErrorPlace, ...] = ()
    id: str | int | msgspec.UnsetType = msgspec.UNSET
    partitioners: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET


class ProblemError(Exception):
    """A request cannot be answered as asked. headers: sent with the problem."""

    def __init__(self, problem: Problem, headers: Sequence[tuple[bytes, bytes]] = ()) -> None:
        self.problem, self.headers = problem, tuple(headers)
        super().__init__(problem.detail)

    def for_caller(self, caller: Caller) -> "ProblemError":
        """Return the error in the words that a caller may read. `problem` itself is in words for everybody."""
        return self


def problem(status: int, detail: str, errors: Sequence[tuple[Location, str]] = ()) -> Problem:
    """Return the problem of an HTTP status."""
    places = tuple(ErrorPlace(loc, msg) for loc, msg in errors[:SHOWN_ERRORS_MAX])
    return Problem(title=HTTPStatus(status).phrase, status=status, detail=detail, errors=places)


def refusal(status: int, detail: str, errors: Sequence[tuple[Location, str]] = ()) -> ProblemError:
    """Return the exception for a problem. With 429 and 503 it says after how many seconds to try again."""
    passes = status in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)
    return ProblemError(problem(status, detail, errors), _PASSES if passes else ())


def refused(error: AccessError) -> ProblemError:
    """Return the exception for a request that its caller may not make."""
    return ProblemError(problem(error.status, error.detail), error.headers)


class OrderStandsError(ProblemError):
    """An order was given and stands, though its outcome is not the one that was asked for."""

    def __init__(self, status: int, detail: str) -> None:
        answered = refusal(status, detail)
        super().__init__(answered.problem, answered.headers)


class UnknownStreamError(ProblemError):
    """There is no such stream. known: the names of all streams. A caller is told those that they may read."""

    def __init__(self, stream: str, known: Iterable[str]) -> None:
        self._stream, self._known = stream, tuple(known)
        super().__init__(problem(404, unknown_name("stream", stream, ())))

    def for_caller(self, caller: Caller) -> ProblemError:
        readable = filter(caller.scopes.may_read, self._known)
        return refusal(404, unknown_name("stream", self._stream, readable))


class FailureError(ProblemError):
    """An error of the server (503).

    failure: its text. It may name folders and topics of any stream, so only callers with the scope `metrics` get it.
    advice: a text for everybody, which follows the failure.
    """

    def __init__(self, failure: str, advice: str = "", headers: Sequence[tuple[bytes, bytes]] = ()) -> None:
        self._failure, self._advice = failure, advice
        super().__init__(problem(503, _FAILED + advice), headers)

    def for_caller(self, caller: Caller) -> ProblemError:
        if not caller.scopes.have("metrics"):
            return self
        return ProblemError(problem(503, self._failure + self._advice), self.headers)


def failed(failure: str) -> ProblemError:
    """Return the exception for a request of which nothing was taken, because of an error of the server."""
    return FailureError(failure, headers=_PASSES)


def uncertain(detail: str) -> ProblemError:
    """Return the exception for a request that may have been taken. It names no time to try again, since clients would
    send the request again by themselves then."""
    return ProblemError(problem(503, detail))


def no_route(method: str, path: str) -> ProblemError:
    """Return the exception for a path that no route has."""
    slash = ": no route ends in a slash" if path.endswith("/") else ""
    return refusal(404, f"there is no {method} {path[:200]}{slash}; /docs lists what there is")


def wrong_method(method: str, path: str, allowed: Sequence[str]) -> ProblemError:
    """Return the exception for a path that takes other methods."""
    *most, last = (each for each in allowed if each != "HEAD")
    listed = f"{', '.join(most)} or {last}" if most else last
    detail = f"{path[:200]} takes {listed}, not {method[:40]}"
    return ProblemError(problem(405, detail), [(b"allow", ", ".join(allowed).encode())])


def of_defect() -> ProblemError:
    """Return the exception for a defect of this program. The caller must log the defect."""
    return refusal(500, "a defect of this program; the server's log shows where")


def of_event(status: int, error: EventRefusedError) -> Problem:
    """Return the problem of one event that was refused."""
    return problem(status, str(error), [FieldError(*each) for each in error.errors])


def of_no_json(text: bytes, error: Exception) -> ProblemError:
    """Return the exception for a body that is no JSON. error: the decoder's exception."""
    found = json_error(text, error)
    return refusal(400, str(EventRefusedError([found])) if found.loc else found.msg, [found])
