"""Reads and checks the bodies of requests of pages, and describes bodies and problems for OpenAPI."""

from collections.abc import Callable
from typing import Any

import msgspec
from fastapi import Request

from frontend.problems import of_no_json, refusal
from railgun.catalog.errors import DefinitionError

LONG_INTEGER = "it has an integer of more digits than can be read"
_decode = msgspec.json.Decoder().decode
PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {
        "description": says,
        "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    for status, says in {
        400: "malformed",
        401: "a token is needed",
        403: "the token lacks a scope, which is named",
        404: "there is no such stream or metric",
        409: "it exists with another definition",
        413: "too large",
        415: "no JSON",
        422: "invalid, with the place",
        503: "starting, stopping or stopped; or a change that the broker has not confirmed",
    }.items()
}


def body_of(model: type[Any], *, is_required: bool = True) -> dict[str, Any]:
    """Return the description of a JSON body of this model, for OpenAPI."""
    schema = {"$ref": f"#/components/schemas/{model.__name__}"}
    return {"requestBody": {"required": is_required, "content": {"application/json": {"schema": schema}}}}


async def read_json(request: Request, decode: Callable[[bytes], Any] = _decode) -> Any:
    """Return the decoded body of a request. Raises ProblemError (400, 415, 422)."""
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media != "application/json":
        raise refusal(415, f"the Content-Type is {media[:80] or 'missing'}; application/json is taken")
    text = await request.body()
    try:
        return decode(text)
    except msgspec.ValidationError:
        raise refusal(422, LONG_INTEGER, [((), LONG_INTEGER)]) from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise of_no_json(text, error) from None
    except RecursionError:
        raise refusal(400, "no JSON that can be read: nested too deep") from None


def checked(read: Any, body: object) -> Any:
    """Return what `read` makes of a body. Raises ProblemError (422), which names the place of the mistake."""
    try:
        return read(body)
    except DefinitionError as error:
        detail = error.message + (f"; {error.hint}" if error.hint else "")
        raise refusal(422, str(error), [(error.loc, detail)]) from None


async def no_parameters(request: Request) -> None:
    """Refuse parameters of the URL: one that looks like a condition of a DELETE must not be ignored."""
    # It is a coroutine, since the framework would run a plain function in another thread.
    for name in request.query_params:
        detail = f"unknown parameter {name[:80]!r}; this route takes none"
        raise refusal(422, detail, [(("query", name[:80]), detail)])
