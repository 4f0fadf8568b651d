"""What routes without the framework need of ASGI: types, sending a whole answer, and reading a bounded body."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from frontend.access.caller import for_caller_of
from frontend.http.in_flight import InFlight
from frontend.problems import ProblemError, refusal
from railgun.access.browsers import NO_STORE as _NO_STORE

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Header = tuple[bytes, bytes]

JSON_TYPE = b"application/json"
NDJSON_TYPE = b"application/x-ndjson"
PROBLEM_TYPE = b"application/problem+json"

AT_WORK = "railgun.at_work"
"""In a scope, if a body is answered while it comes: a function that returns whether the client waits for the server."""

HAS_CERTIFICATE = "railgun.has_certificate"
"""In a scope: whether the client showed a certificate that was verified."""

CERTIFICATE = "railgun.certificate"
"""In a scope, over TLS: a function that returns the present standing of the client's certificate."""

NO_STORE: Header = (_NO_STORE[0].encode(), _NO_STORE[1].encode())
"""The header of every answer that names no other rule for copies of it."""

encoder = msgspec.json.Encoder()


async def answer(
    send: Send, status: int, body: bytes, content_type: bytes = JSON_TYPE, headers: Sequence[Header] = ()
) -> None:
    """Send a whole answer."""
    sent = [(b"content-type", content_type), (b"content-length", b"%d" % len(body)), *headers]
    await send({"type": "http.response.start", "status": status, "headers": sent})
    await send({"type": "http.response.body", "body": body})


async def answer_problem(
    scope: Scope, send: Send, error: ProblemError, headers: Sequence[Header] = ()
) -> None:
    """Send a problem, in the words that its caller may read."""
    error = for_caller_of(scope, error)
    body = encoder.encode(error.problem)
    await answer(send, error.problem.status, body, PROBLEM_TYPE, (*error.headers, *headers))


def header(scope: Scope, name: bytes) -> bytes | None:
    """Return the value of the first header of a name; None if there is none. name: in lower case."""
    for key, value in scope["headers"]:
        if key == name:
            return bytes(value)
    return None


def ends_waiting_body(scope: Scope) -> list[Header]:
    """Return the header that closes the connection, if a refused request has `Expect`.

    Its client waits for leave to send the body, and may send it or not: the server could not find the next request.
    """
    return [(b"connection", b"close")] if header(scope, b"expect") is not None else []


class GoneError(Exception):
    """The client went away before its request was whole."""


def check_length(scope: Scope, limit_bytes: int) -> None:
    """Raise ProblemError (413) if the length that a request states is too large."""
    length = header(scope, b"content-length")
    if length is not None and int(length) > limit_bytes:
        raise too_large(limit_bytes)


def too_large(limit_bytes: int) -> Exception:
    """Return the error for a body above the limit."""
    return refusal(
        413,
        f"a body of more than {limit_bytes} bytes; send less at a time, events also as lines (application/x-ndjson)",
    )


class Body:
    """A body on its way in, counted in flight until the block of `held` is left."""

    def __init__(self, receive: Receive, in_flight: InFlight, limit_bytes: int) -> None:
        self._receive, self._in_flight, self._limit_bytes = receive, in_flight, limit_bytes
        self._held_bytes = 0

    async def read(self, timeout_s: float) -> bytes:
        """Return the whole body. Raises ProblemError (408, 413, 429) and GoneError."""
        message = await self._next()
        if not message.get("more_body", False):
            return bytes(message["body"])
        pieces: list[bytes] = [message["body"]]
        try:
            async with asyncio.timeout(timeout_s):
                while message.get("more_body", False):
                    message = await self._next()
                    pieces.append(message["body"])
        except TimeoutError:
            raise refusal(408, f"the body did not arrive within {timeout_s:g} s") from None
        return b"".join(pieces)

    async def _next(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise GoneError
        size_bytes = len(message["body"])
        if self._held_bytes + size_bytes > self._limit_bytes:
            raise too_large(self._limit_bytes)
        self._in_flight.take(0, size_bytes)
        self._held_bytes += size_bytes
        return message

    @contextmanager
    def held(self) -> Iterator[None]:
        """Count the bytes that are read as in flight until the block is left."""
        try:
            yield
        finally:
            self._in_flight.release(0, self._held_bytes)
            self._held_bytes = 0
