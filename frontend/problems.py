"""What goes wrong, as clients get it: RFC 9457 problem objects, and the exception that carries one to the route."""

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
    """One thing that is wrong. loc: the keys and list places that lead to it."""

    loc: tuple[str | int, ...]
    msg: str


class Problem(msgspec.Struct, kw_only=True):
    """title: the status in words.  detail: what happened and what can be done.  Of an event that was not answered in
    time: its id, if it brings one, and the partitioners that have not answered.
    """

    title: str
    status: int
    detail: str
    errors: tuple[ErrorPlace, ...] = ()
    id: str | int | msgspec.UnsetType = msgspec.UNSET
    partitioners: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET


class ProblemError(Exception):
    """A request that cannot be answered as asked. headers: that go with the problem."""

    def __init__(self, problem: Problem, headers: Sequence[tuple[bytes, bytes]] = ()) -> None:
        self.problem, self.headers = problem, tuple(headers)
        super().__init__(problem.detail)

    def for_caller(self, caller: Caller) -> "ProblemError":
        """The same in the words that a caller may read. `problem` itself has nothing that only some may read."""
        return self


def problem(status: int, detail: str, errors: Sequence[tuple[Location, str]] = ()) -> Problem:
    """A problem of an HTTP status."""
    places = tuple(ErrorPlace(loc, msg) for loc, msg in errors[:SHOWN_ERRORS_MAX])
    return Problem(title=HTTPStatus(status).phrase, status=status, detail=detail, errors=places)


def refusal(status: int, detail: str, errors: Sequence[tuple[Location, str]] = ()) -> ProblemError:
    """The exception for a problem; those that pass name the time to wait."""
    passes = status in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)
    return ProblemError(problem(status, detail, errors), _PASSES if passes else ())


def refused(error: AccessError) -> ProblemError:
    """The exception for a request that is refused for who asks."""
    return ProblemError(problem(error.status, error.detail), error.headers)


class UnknownStreamError(ProblemError):
    """There is no such stream. known: the names of all streams, which only those are told who may read them."""

    def __init__(self, stream: str, known: Iterable[str]) -> None:
        self._stream, self._known = stream, tuple(known)
        super().__init__(problem(404, unknown_name("stream", stream, ())))

    def for_caller(self, caller: Caller) -> ProblemError:
        readable = filter(caller.scopes.may_read, self._known)
        return refusal(404, unknown_name("stream", self._stream, readable))


class FailureError(ProblemError):
    """503: an error of the server. failure: its text, which may name folders and topics of any stream, and is told only
    to callers with the scope `metrics`, who may see all of them.  advice: what is said to everybody after it.
    """

    def __init__(self, failure: str, advice: str = "", headers: Sequence[tuple[bytes, bytes]] = ()) -> None:
        self._failure, self._advice = failure, advice
        super().__init__(problem(503, _FAILED + advice), headers)

    def for_caller(self, caller: Caller) -> ProblemError:
        if not caller.scopes.have("metrics"):
            return self
        return ProblemError(problem(503, self._failure + self._advice), self.headers)


def failed(failure: str) -> ProblemError:
    """The exception where nothing was taken because of an error of the server. failure: its text."""
    return FailureError(failure, headers=_PASSES)


def uncertain(detail: str) -> ProblemError:
    """The exception where what was asked for may have been taken: it names no time, by which a client sends again of
    itself."""
    return ProblemError(problem(503, detail))


def no_route(method: str, path: str) -> ProblemError:
    """The exception for a path that there is not."""
    slash = ": no route ends in a slash" if path.endswith("/") else ""
    return refusal(404, f"there is no {method} {path[:200]}{slash}; /docs lists what there is")


def wrong_method(method: str, path: str, allowed: Sequence[str]) -> ProblemError:
    """The exception for a path that takes other methods."""
    *most, last = (each for each in allowed if each != "HEAD")
    listed = f"{', '.join(most)} or {last}" if most else last
    detail = f"{path[:200]} takes {listed}, not {method[:40]}"
    return ProblemError(problem(405, detail), [(b"allow", ", ".join(allowed).encode())])


def of_defect() -> ProblemError:
    """The exception for what should not have happened; whoever makes it logs that."""
    return refusal(500, "a defect of this program; the server's log shows where")


def of_event(status: int, error: EventRefusedError) -> Problem:
    """The problem of one event that was refused."""
    return problem(status, str(error), [FieldError(*each) for each in error.errors])


def of_no_json(text: bytes, error: Exception) -> ProblemError:
    """The exception for a body that is no JSON. error: what its decoder raised."""
    found = json_error(text, error)
    return refusal(400, str(EventRefusedError([found])) if found.loc else found.msg, [found])
