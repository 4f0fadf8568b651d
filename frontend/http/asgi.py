"""The little of ASGI that raw routes need: types, and sending a whole answer."""

from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any

import msgspec

from frontend.problems import ProblemError

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Header = tuple[bytes, bytes]

JSON_TYPE = b"application/json"
NDJSON_TYPE = b"application/x-ndjson"
PROBLEM_TYPE = b"application/problem+json"

AT_WORK = "railgun.at_work"
"""In a scope, where a body is answered while it comes: a function that says whether the server is at work on it."""

encoder = msgspec.json.Encoder()


async def answer(
    send: Send, status: int, body: bytes, content_type: bytes = JSON_TYPE, headers: Sequence[Header] = ()
) -> None:
    """Send a whole answer."""
    sent = [(b"content-type", content_type), (b"content-length", b"%d" % len(body)), *headers]
    await send({"type": "http.response.start", "status": status, "headers": sent})
    await send({"type": "http.response.body", "body": body})


async def answer_problem(send: Send, error: ProblemError, headers: Sequence[Header] = ()) -> None:
    """Send a problem."""
    body = encoder.encode(error.problem)
    await answer(send, error.problem.status, body, PROBLEM_TYPE, (*error.headers, *headers))


def header(scope: Scope, name: bytes) -> bytes | None:
    """A header's value, the first of them; None where there is none. name: in lower case."""
    for key, value in scope["headers"]:
        if key == name:
            return bytes(value)
    return None
