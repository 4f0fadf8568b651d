"""The errors of the clients. Each message is one line with the place and the remedy."""

from collections.abc import Mapping
from typing import Any

_UNAUTHORIZED = 401
_UNAVAILABLE = 503
# After one of these answers, of the server or of a proxy, nobody knows whether the request was taken.
_UNKNOWN_OUTCOME = (500, 502, 504)
_TOKEN_REMEDY = "; commands take a token from --token-file, or RAILGUN_TOKEN; railgun.Client as token="


class ClientError(Exception):
    """A request could not be made or was refused. The message is for people, one line.

    may_have_counted: True if the server may have taken what was sent; False if it took nothing of it.
    answered: the answers that came before the error, as lines; set by calls that send lines.
    gave_up_s: how long the call was repeated, in seconds, until its time was up; 0 if it was not repeated.
    """

    may_have_counted = False
    answered = b""
    gave_up_s = 0.0

    def __str__(self) -> str:
        text = super().__str__()
        if not self.gave_up_s:
            return text
        look = "" if isinstance(self, RefusedConnectionError) else "; the server's log says why"
        gave_up = " Gave up" if text.endswith("?") else "; gave up"
        return f"{text}{gave_up} after {max(1.0, self.gave_up_s):.0f} s{look}"


class UnreachableError(ClientError):
    """There is no server at the address, or it does not answer. It took nothing."""


class RefusedConnectionError(UnreachableError):
    """No server listens at the address, or accepts the connection. A server may be about to start there."""


class ConnectionLostError(ClientError):
    """The connection ended before the answer. The server may have taken what was sent."""

    may_have_counted = True


class UnreadableAnswerError(ClientError):
    """The answer does not come from Railgun. The fate of the request is unknown."""

    may_have_counted = True


class ProblemError(ClientError):
    """The server refused the request with a problem object (RFC 9457).

    status: the HTTP status.  title, detail: the texts of the problem.  errors: (loc, msg) of each wrong place.
    id, partitioners: for an event that was not answered in time, its id and the partitioners that have not answered;
        else None.
    """

    def __init__(
        self, place: str, status: int, problem: Mapping[str, Any], *, is_retriable: bool = False
    ) -> None:
        """Read the problem object. is_retriable: the server named a time for a repeat, so it took nothing."""
        self.status = status
        self.title = str(problem.get("title") or f"status {status}")
        self.detail = str(problem.get("detail") or "")
        self.errors = _errors(problem.get("errors"))
        self.id: str | int | None = problem.get("id")
        self.partitioners: list[str] | None = problem.get("partitioners")
        self.may_have_counted = status in _UNKNOWN_OUTCOME or (status == _UNAVAILABLE and not is_retriable)
        text = problem_text(problem) or f"status {status}"
        super().__init__(f"{place}: {text}{_TOKEN_REMEDY if status == _UNAUTHORIZED else ''}")


def problem_text(problem: Mapping[str, Any]) -> str:
    """Return a problem object as one line: its detail, or else its title, and the wrong places."""
    message = " ".join(str(problem.get("detail") or problem.get("title") or "").split())
    wrong = [
        f"{'.'.join(map(str, loc))}: {msg}" if loc else msg for loc, msg in _errors(problem.get("errors"))
    ]
    missing = [each for each in wrong if each not in message and each.rpartition(": ")[2] not in message]
    return "; ".join([message, *missing] if message else missing)


def _errors(found: object) -> tuple[tuple[tuple[str | int, ...], str], ...]:
    if not isinstance(found, list):
        return ()
    return tuple(
        (tuple(each.get("loc") or ()), str(each.get("msg") or "")) for each in found if isinstance(each, dict)
    )
