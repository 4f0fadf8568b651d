"""Bodies that are wrong, too large, or meant to do harm: a clear problem for each, and the server goes on."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.frontend.raw_client import RawClient, chunked, head
from tests.frontend.serving import Server

Event = Callable[..., dict[str, Any]]
EVENTS = "/v1/streams/payments/events"
JSON = {"Content-Type": "application/json"}
NDJSON = {"Content-Type": "application/x-ndjson"}
DEEP = b"[" * 200_000 + b"]" * 200_000


def field(name: str, value: bytes) -> bytes:
    return b'{"tx_id": "h", "ts": 1, "%s": %s}' % (name.encode(), value)


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (b"", 400, "byte 0"),
        (b"{", 400, "byte 1"),
        (b'{"tx_id": "h" "ts": 1}', 400, "byte 14"),
        (b"nonsense", 400, "byte"),
        (b"\xef\xbb\xbf{}", 400, "byte 0"),
        (b'{"tx_id": "\xff", "ts": 1}', 400, "not UTF-8 (byte 11)"),
        (b'{"tx_id": "\\ud800", "ts": 1}', 400, "tx_id: \\ud800 is half"),
        (field("amount", b"NaN"), 400, "amount: NaN is no JSON"),
        (field("amount", b"-Infinity"), 400, "amount: -Infinity is no JSON"),
        (field("amount", b"1e999"), 422, "amount"),
        (field("amount", b'"1.5"'), 422, "amount"),
        (field("n", b"9223372036854775808"), 422, "n"),
        (field("n", b"1.5"), 422, "n"),
        (field("n", b"1e3"), 422, "n"),
        (field("n", b"9" * 5000), 422, "n: the number 999"),
        (field("price", b"1.234"), 422, "price"),
        (field("card", b'"%s"' % (b"x" * 65_536)), 422, "card"),
        (field("card", b"[]"), 422, "card"),
        (b'{"ts": 1}', 422, "tx_id"),
        (b'{"tx_id": "h"}', 422, "ts"),
        (b'{"tx_id": "h", "ts": 99999999999999}', 422, "max_future"),
        (b'{"tx_id": "h", "ts": "yesterday"}', 422, "RFC 3339"),
        (b"null", 422, "object"),
        (b"7", 422, "object"),
        (b'"event"', 422, "object"),
        (DEEP, 400, "nested too deep"),
        (field("amount", DEEP), 400, "nested too deep"),
        (field("unknown", DEEP), 400, "nested too deep"),
        (b'[{"tx_id": "h"', 400, "byte"),
        (b"[" + field("unknown", DEEP) + b"]", 400, "nested too deep"),
    ],
)
def test_a_body_that_is_refused(shared: Server, body: bytes, status: int, said: str) -> None:
    response = shared.client.post(EVENTS, content=body, headers=JSON)
    assert response.status_code == status, response.text[:300]
    assert response.headers["content-type"] == "application/problem+json"
    problem = response.json()
    assert set(problem) == {"title", "status", "detail", "errors"}
    assert problem["status"] == status
    assert said.lower() in problem["detail"].lower()
    if status == 422 and said in ("amount", "n", "price", "card", "tx_id", "ts"):
        assert [said] in [each["loc"] for each in problem["errors"]]


@pytest.mark.parametrize("count", [1, 100])
def test_bad_lines_harm_no_other(shared: Server, event: Event, count: int) -> None:
    card = event()["card"]
    bad = [b'{"tx_id": "\xff"}', field("unknown", DEEP), b"]", b'{"ts": 1}', field("n", b"1.5"), b"\x00"]
    body = bytearray()
    for place in range(count):
        body += bad[place % len(bad)] + b"\r\n" + json.dumps(event(card=card)).encode() + b"\n"
    response = shared.client.post(EVENTS, content=bytes(body), headers=NDJSON)
    answers = [json.loads(line) for line in response.content.splitlines()]
    assert [answer.get("status", 200) in (400, 422) for answer in answers] == [True, False] * count
    assert [answer["metrics"]["n7"] for answer in answers[1::2]] == list(range(1, count + 1))


@pytest.mark.parametrize(
    "content_type",
    [None, "text/plain", "application/xml", "application/json; charset=latin-1", "application/jsonlines"],
)
def test_other_content(shared: Server, event: Event, content_type: str | None) -> None:
    headers = {} if content_type is None else {"Content-Type": content_type}
    response = shared.client.post(EVENTS, content=json.dumps(event()).encode(), headers=headers)
    assert response.status_code == 415
    assert "application/x-ndjson" in response.json()["detail"]


def test_content_types_that_are_taken(shared: Server, event: Event) -> None:
    for content_type in ("application/json;charset=UTF-8", "Application/JSON"):
        body = json.dumps(event()).encode()
        response = shared.client.post(EVENTS, content=body, headers={"Content-Type": content_type})
        assert response.status_code == 200
    response = shared.client.post(EVENTS, content=b"x", headers=JSON | {"Content-Encoding": "gzip"})
    assert response.status_code == 415


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"\x00\x01\x02\r\n\r\n", 400),
        (b"GET / HTTP/9.9\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nbad header\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\n" + b"X: " + b"y" * 200_000, 431),
        (b"GET / HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * 30_000, 431),
        (b"GET /" + b"y" * 200_000, 431),
        (head("/v1/streams", "application/json", "Content-Length: nine"), 400),
        (head("/v1/streams", "application/json", "Transfer-Encoding: chunked") + b"zz\r\n", 400),
        (
            head(EVENTS, "application/x-ndjson", "Transfer-Encoding: chunked")
            + b"1\r\n\n\r\n0\r\n"
            + b"T: y\r\n" * 30_000,
            431,
        ),
    ],
)
def test_what_is_no_request(shared: Server, request_bytes: bytes, status: int) -> None:
    with RawClient(shared.address) as client:
        try:
            client.send(request_bytes)
        except (ConnectionResetError, BrokenPipeError):
            return
        response = client.response()
        assert response.status == status
        assert json.loads(response.body)["status"] == status
        assert client.is_ended()
    assert shared.client.get("/readyz").status_code == 200


def test_sizes_of_chunks_do_not_matter(shared: Server, event: Event) -> None:
    body = json.dumps(event()).encode()
    with RawClient(shared.address) as client:
        client.send(head(EVENTS, "application/json", "Transfer-Encoding: chunked"))
        for place in range(len(body)):
            client.send(chunked(body[place : place + 1], end=False))
        client.send(b"0\r\n\r\n")
        assert client.response().status == 200


def test_requests_in_a_row_are_answered_in_order(shared: Server, event: Event) -> None:
    sent = [event() for _ in range(20)]
    with RawClient(shared.address) as client:
        for each in sent:
            client.post(EVENTS, json.dumps(each).encode())
        assert [json.loads(client.response().body)["id"] for _ in sent] == [each["tx_id"] for each in sent]


def test_a_client_that_asks_before_it_sends(shared: Server, event: Event) -> None:
    with RawClient(shared.address) as client:
        body = json.dumps(event()).encode()
        client.send(head(EVENTS, "application/json", f"Content-Length: {len(body)}", "Expect: 100-continue"))
        assert client.line() == b"HTTP/1.1 100 Continue"
        assert client.line() == b""
        client.send(body)
        assert client.response().status == 200


def test_a_client_that_has_said_all(shared: Server, event: Event) -> None:
    """Half a connection is enough to get an answer."""
    with RawClient(shared.address) as client:
        client.post(EVENTS, json.dumps(event()).encode())
        client.socket.shutdown(1)
        assert client.response().status == 200
        assert client.is_ended()


def test_a_client_that_goes_away_half_way(shared: Server, event: Event) -> None:
    card = event()["card"]
    body = json.dumps(event(card=card)).encode()
    with RawClient(shared.address) as client:
        client.send(head(EVENTS, "application/json", f"Content-Length: {len(body)}") + body[:-1])
    with RawClient(shared.address) as client:
        client.send(head(EVENTS, "application/x-ndjson", "Transfer-Encoding: chunked"))
        client.send(chunked(body[:-1], end=False))
    assert shared.score("payments", event(card=card))["metrics"]["n7"] == 1


def test_unknown_routes_and_methods(shared: Server) -> None:
    for method, path, status in [
        ("GET", "/nope", 404),
        ("POST", "/v1/streams/payments/events/more", 404),
        ("GET", EVENTS, 405),
        ("PUT", "/v1/streams", 405),
        ("POST", "/v1/streams/a%2Fb/events", 404),
        ("POST", "/v1/streams/%00/events", 404),
    ]:
        response = shared.client.request(method, path, content=b"{}", headers=JSON)
        assert response.status_code == status, (method, path)
        assert response.headers["content-type"] == "application/problem+json"
