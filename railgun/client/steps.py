"""The steps of a client's call, as values: requests to send and pauses to wait. This module does no I/O.

A call is a generator. It yields a step, and receives its outcome: the result of a request, or the end of a pause. So
each call is written once for the blocking and the asyncio client, and tests can play the server.
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
    """A request to send.

    path: below the server's address, with its query.
    timeout_s: the time limit for the answer.
    """

    method: str
    path: str
    content: bytes
    content_type: str
    timeout_s: float


@dataclass(frozen=True, slots=True)
class Pause:
    """A pause to wait."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole response.

    retry_after: the header.
    took_s: the time from the request to the end of the response.
    """

    status: int
    retry_after: str | None
    content: bytes
    took_s: float

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300


@dataclass(frozen=True, slots=True)
class Failure:
    """No whole response came.

    content: the part of a success's body that came.
    took_s: the time from the request to the error.
    """

    error: ClientError
    content: bytes
    took_s: float


@dataclass(frozen=True, slots=True)
class Paused:
    """The end of a pause.

    took_s: how long it was: on a busy machine longer than was asked for.
    """

    took_s: float


Outcome: TypeAlias = Answer | Failure
Steps: TypeAlias = Generator[Request | Pause, Outcome | Paused | None, T]


@dataclass(frozen=True, slots=True)
class Session:
    """The data that all calls of a client share: the server's address and the time limits. `Client` describes them."""

    url: str
    timeout_s: float
    patience_s: float
    connects_within_s: float
    streams_with_ids: frozenset[str]
    on_wait: Callable[[ClientError], None] | None

    def place(self, path: str) -> str:
        """Return the address of a path, for messages."""
        return shown(self.url, path)


def send_once(request: Request) -> Steps[Outcome]:
    """Send a request once."""
    outcome = yield request
    assert isinstance(outcome, Answer | Failure)
    return outcome


def wait(seconds: float) -> Steps[float]:
    """Wait, and return how long that took."""
    ended = yield Pause(seconds)
    assert isinstance(ended, Paused)
    return ended.took_s


def carry_out(steps: Steps[T], attempt: Callable[[Request], Outcome], pause: Callable[[float], float]) -> T:
    """Carry out a call step by step and return its result. Raises the errors of the call.

    pause: waits for some seconds, and returns how long that took.
    """
    outcome: Outcome | Paused | None = None
    while True:
        try:
            step = steps.send(outcome)
        except StopIteration as end:
            result: T = end.value
            return result
        if isinstance(step, Pause):
            outcome = Paused(pause(step.seconds))
        else:
            outcome = attempt(step)


def describe(method: Any, call: Callable[..., Steps[Any]]) -> None:
    """Give a method the name, docstring and signature of the call that it carries out.

    In the signature `self` takes the place of the session, and the result that of the steps.
    """
    update_wrapper(method, call)
    # `help` and editors follow this attribute and would show the signature of the call.
    del method.__wrapped__
    found = inspect.signature(call)
    _, *parameters = found.parameters.values()
    of_self = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    *_, result = get_args(found.return_annotation)
    # The annotation is `None`, as a person writes it.
    result = None if result is NoneType else result
    method.__signature__ = found.replace(parameters=[of_self, *parameters], return_annotation=result)
    method.__annotations__ = {
        **{each.name: each.annotation for each in parameters},
        "return": result,
    }
