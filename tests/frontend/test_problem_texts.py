"""What clients are told of their mistakes: what is wrong, and what can be done, in the words of definitions."""

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.frontend.conftest import Payments
from tests.frontend.serving import Server

PLACE = "/v1/streams/payments"
JSON = {"Content-Type": "application/json"}
MARK = b"\xef\xbb\xbf"
STREAM = {
    "name": "payments",
    "time": "ts",
    "id": "tx_id",
    "partitioners": ["card", "*"],
    "fields": {"tx_id": "string", "ts": "timestamp", "card": "string", "amount": "double"},
}


@pytest.fixture(scope="module")
def ask(shared: Server) -> Callable[..., httpx.Response]:
    """Ask a server; gives its answer."""

    def pending(method: str, path: str, body: Any = None) -> httpx.Response:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return shared.client.request(method, path, content=content, headers=JSON)

    return pending


def query(sql: str) -> dict[str, str]:
    return {"sql": sql}


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "said"),
    [
        (
            "POST",
            f"{PLACE}/metrics",
            query("SELECT count(*) AS c FROM paymnts OVER INFINITE"),
            422,
            "the query is FROM paymnts and was given for stream payments; write FROM payments",
        ),
        (
            "PATCH",
            PLACE,
            {"partitions": 3},
            422,
            "partitions: it cannot be changed once the stream is there; what can be: fields, lateness, retention",
        ),
        ("PATCH", PLACE, {"latenes": "1s"}, 422, "latenes: unknown key; did you mean lateness?"),
        (
            "POST",
            "/v1/streams",
            STREAM | {"partitioners": ["card"], "lateness": "7s", "retention": "forever", "max_future": "1s"},
            409,
            "payments: partitioners is card, *, the definition says card; payments: lateness is 5s, the",
        ),
        (
            "POST",
            "/v1/streams",
            STREAM | {"name": "more", "max_future": "1h"},
            422,
            "max_future: 1h is longer than the lateness, 5s",
        ),
        (
            "GET",
            f"{PLACE}/metrics/zz",
            None,
            404,
            "no metric 'zz' of payments; known here: everyone, l7, n7, p7, s7",
        ),
        (
            "POST",
            f"{PLACE}/events?metrics=zz",
            {},
            422,
            "no metric 'zz'; known here: everyone, l7, n7, p7, s7",
        ),
        (
            "POST",
            f"{PLACE}/events",
            MARK + b"{}",
            400,
            "it begins with a byte order mark; send UTF-8 without one",
        ),
        ("POST", f"{PLACE}/events", b"", 400, "no JSON: it is empty (byte 0)"),
        (
            "POST",
            f"{PLACE}/events",
            b'[{}, {"amount": NaN}]',
            400,
            "1.amount: NaN is no JSON; send null, or leave the field out",
        ),
        ("POST", "/v1/streams", b'{"partitions": Infinity}', 400, "partitions: Infinity is no JSON"),
        (
            "POST",
            f"{PLACE}/events",
            b'{"card": "\\ud83d"}',
            400,
            "card: \\ud83d is half of a pair of surrogates, and no character; send both halves, or neither",
        ),
        (
            "POST",
            "/v1/streams",
            MARK + b"{}",
            400,
            "it begins with a byte order mark; send UTF-8 without one",
        ),
        ("POST", "/v1/streams", b'{"partitions": %s}' % (b"9" * 1_000_000), 422, "an integer of more digits"),
        ("PUT", PLACE, {}, 405, f"{PLACE} takes DELETE, GET or PATCH, not PUT"),
        ("GET", f"{PLACE}/events", None, 405, f"{PLACE}/events takes POST, not GET"),
        ("GET", "/v1/streams/", None, 404, "no route ends in a slash"),
        ("POST", f"{PLACE}/events/", {}, 404, "no route ends in a slash"),
    ],
)
def test_what_is_said(
    ask: Callable[..., httpx.Response], method: str, path: str, body: Any, status: int, said: str
) -> None:
    response = ask(method, path, body)
    assert response.status_code == status, response.text
    assert said in response.json()["detail"]


def test_a_query_of_another_stream_says_nothing_of_that(payments: Payments) -> None:
    with payments.serve() as server:
        assert server.post("/v1/streams", STREAM | {"name": "other"}).status_code == 201
        told = server.post(
            "/v1/streams/other/metrics", query("SELECT count(*) AS c FROM payments OVER INFINITE")
        )
        assert told.status_code == 422
        assert told.json()["detail"].endswith(
            "FROM payments and was given for stream other; write FROM other"
        )


def test_each_difference_is_told_as_definitions_say_it(shared: Server) -> None:
    other = {"lateness": "7s", "retention": "forever", "max_future": "1s", "record_replies": True}
    told = shared.post("/v1/streams", STREAM | other)
    assert told.status_code == 409
    assert {each["loc"][0]: each["msg"] for each in told.json()["errors"]} == {
        "lateness": "payments: lateness is 5s, the definition says 7s",
        "retention": "payments: retention is 30d, the definition says forever",
        "record_replies": "payments: record_replies is false, the definition says true",
        "max_future": "payments: max_future is not set, the definition says 1s",
    }
