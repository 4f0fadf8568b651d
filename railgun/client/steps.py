"""What a call of a client consists of: requests to send and pauses to wait, as values. Nothing here does either.

A call is a generator. It yields a step, and is sent the outcome: what came of a request, None after a pause. So each
call is written once for the client that blocks and the one that is awaited, and tests can play the server.
"""

import inspect
from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import update_wrapper
from types import NoneType
from typing import Any, TypeAlias, TypeVar, get_args

from railgun.client.address import shown
from railgun.client.errors import ClientError

JSON_TYPE, NDJSON_TYPE = "application/json", "application/x-ndjson"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Request:
    """path: below the server's address, with its query.  timeout_s: for the answer."""

    method: str
    path: str
    content: bytes
    content_type: str
    timeout_s: float


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait so long."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole response. retry_after: that header.  took_s: from the request to the end of the response."""

    status: int
    retry_after: str | None
    content: bytes
    took_s: float

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300


@dataclass(frozen=True, slots=True)
class Failure:
    """No whole response came. content: what came of the body of a success.  took_s: from the request to the error."""

    error: ClientError
    content: bytes
    took_s: float


Outcome: TypeAlias = Answer | Failure
Steps: TypeAlias = Generator[Request | Pause, Outcome | None, T]


@dataclass(frozen=True, slots=True)
class Session:
    """What all calls of a client share: the server's address, and how patient the client is. See `Client`."""

    url: str
    timeout_s: float
    patience_s: float
    connects_within_s: float
    streams_with_ids: frozenset[str]
    on_wait: Callable[[ClientError], None] | None

    def place(self, path: str) -> str:
        """The address of a path, for messages."""
        return shown(self.url, path)


def sent(request: Request) -> Steps[Outcome]:
    """Send a request once."""
    outcome = yield request
    assert outcome is not None
    return outcome


def carried_out(
    steps: Steps[T], attempt: Callable[[Request], Outcome], pause: Callable[[float], object]
) -> T:
    """Carry a call out, step by step, and return its result. Raises what the call raises."""
    outcome: Outcome | None = None
    while True:
        try:
            step = steps.send(outcome)
        except StopIteration as end:
            result: T = end.value
            return result
        if isinstance(step, Pause):
            pause(step.seconds)
            outcome = None
        else:
            outcome = attempt(step)


def described(method: Any, call: Callable[..., Steps[Any]]) -> None:
    """Have the method that carries out a call say what the call says: its name, what it does, and its parameters, with
    `self` in place of the session; and of the steps only their result.
    """
    update_wrapper(method, call)
    # What follows it, as `help` and editors do, would find the call itself.
    del method.__wrapped__
    found = inspect.signature(call)
    _, *parameters = found.parameters.values()
    of_self = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    *_, result = get_args(found.return_annotation)
    # As a person writes it.
    result = None if result is NoneType else result
    method.__signature__ = found.replace(parameters=[of_self, *parameters], return_annotation=result)
    method.__annotations__ = {
        **{each.name: each.annotation for each in parameters},
        "return": result,
    }
