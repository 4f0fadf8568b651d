"""What can go wrong between a client and a server: each error is one line with the place and the remedy."""

from collections.abc import Mapping
from typing import Any

_UNAUTHORIZED = 401
_UNAVAILABLE = 503
# An answer of the server or of a proxy before it, after which nobody knows whether the request was taken.
_UNKNOWN_OUTCOME = (500, 502, 504)
_TOKEN_REMEDY = "; commands take a token from --token-file, or RAILGUN_TOKEN; railgun.Client as token="


class ClientError(Exception):
    """A request could not be made or was refused. The message is for people, one line.

    may_have_counted: True if nobody knows whether what was sent was taken; False if nothing of it was.
    answered: of lines, the answers that came before the error, as lines.
    """

    may_have_counted = False
    answered = b""


class UnreachableError(ClientError):
    """There is no server at the address, or it does not answer: nothing was taken."""


class RefusedConnectionError(UnreachableError):
    """Nobody listens at the address, or accepts a connection there: a server may be about to."""


class ConnectionLostError(ClientError):
    """The connection ended before the answer: nobody knows whether what was sent was taken."""

    may_have_counted = True


class UnreadableAnswerError(ClientError):
    """The answer is none of Railgun's: nobody knows what became of the request."""

    may_have_counted = True


class ProblemError(ClientError):
    """The server refused: RFC 9457.

    status: of the response.  title, detail: its words.  errors: the places that are wrong, (loc, msg).
    id, partitioners: of an event that was not answered in time, its id and who has not answered; None for others.
    """

    def __init__(
        self, place: str, status: int, problem: Mapping[str, Any], *, is_retriable: bool = False
    ) -> None:
        """is_retriable: the server named a time to send the same again, so it took nothing."""
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
    """A problem object in one line: its detail, or its title, and where what is wrong."""
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
