"""What can go wrong between a client and a server: each error is one line with the place and the remedy."""

from collections.abc import Mapping
from typing import Any

_UNAUTHORIZED = 401
_TOKEN_REMEDY = "; commands take a token from --token-file, or RAILGUN_TOKEN"


class ClientError(Exception):
    """A request could not be made or was refused. The message is for people, one line."""


class UnreachableError(ClientError):
    """There is no server at the address, or it does not answer: nothing was taken."""


class RefusedConnectionError(UnreachableError):
    """Nobody listens at the address."""


class ConnectionLostError(ClientError):
    """The connection ended before the answer: what was sent may have been taken."""


class ProblemError(ClientError):
    """The server refused: RFC 9457.

    status: of the response.  title, detail: its words.  errors: the places that are wrong, (loc, msg).
    """

    def __init__(self, place: str, status: int, problem: Mapping[str, Any]) -> None:
        self.status = status
        self.title = str(problem.get("title") or f"status {status}")
        self.detail = str(problem.get("detail") or "")
        self.errors = _errors(problem.get("errors"))
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
