"""Plays the server of a call's steps: no connection, no clock."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from railgun.client.errors import ClientError, ConnectionLostError, RefusedConnectionError
from railgun.client.steps import Answer, Failure, Outcome, Request, Session, Steps, carry_out

T = TypeVar("T")
URL = "http://h:1"


def session(
    *,
    patience_s: float = 60.0,
    connects_within_s: float = 10.0,
    ids: Iterable[str] = (),
    on_wait: Callable[[ClientError], None] | None = None,
) -> Session:
    """A client's settings; its requests have 120 s."""
    return Session(URL, 120.0, patience_s, connects_within_s, frozenset(ids), on_wait)


def answer(
    content: bytes = b"{}", status: int = 200, retry_after: str | None = None, took_s: float = 0.0
) -> Answer:
    """A response."""
    return Answer(status, retry_after, content, took_s)


def lost(content: bytes = b"", took_s: float = 0.0) -> Failure:
    """A connection that ends after the request was sent. content: what came of a success's body."""
    return Failure(ConnectionLostError("lost"), content, took_s)


def refused() -> Failure:
    """Nobody listens."""
    return Failure(RefusedConnectionError("refused"), b"", 0.0)


@dataclass
class Played:
    """requests: that were sent.  pauses: in seconds.  busy: how many times as long a pause takes as was asked for."""

    requests: list[Request] = field(default_factory=list)
    pauses: list[float] = field(default_factory=list)
    busy: float = 1.0

    def run(self, steps: Steps[T], server: Iterable[Outcome] | Callable[[Request], Outcome]) -> T:
        """Carry a call out, by outcomes in order or a function that gives them. Raises what the call raises."""
        if callable(server):
            outcome_of = server
        else:
            prepared = iter(server)

            def outcome_of(request: Request) -> Outcome:
                return next(prepared)

        def attempt(request: Request) -> Outcome:
            self.requests.append(request)
            return outcome_of(request)

        def pause(seconds: float) -> float:
            self.pauses.append(seconds)
            return seconds * self.busy

        return carry_out(steps, attempt, pause)
