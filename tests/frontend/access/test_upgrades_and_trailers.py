"""What a request is decided by is its head, however its bytes come: an offer of another protocol changes nothing of it,
and what follows the body is no part of it.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.frontend.access.callers import bearer, guarded
from tests.frontend.access.test_every_route import EVENT, EVENTS
from tests.frontend.raw_client import RawClient

OFFER = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA")
WHOAMI = b"GET /v1/whoami HTTP/1.1\r\nHost: x\r\nAuthorization: %s\r\n\r\n" % bearer("all").encode()


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RawClient]:
    with guarded(tmp_path / "data", monkeypatch) as running, RawClient(running.address) as made:
        yield made


def head(*lines: str, token: str | None = "all") -> bytes:
    own = [] if token is None else [f"Authorization: {bearer(token)}"]
    return "".join(f"{line}\r\n" for line in (*lines, "Host: x", *own, "")).encode()


def chunked(body: bytes, trailer: bytes = b"") -> bytes:
    return b"%x\r\n%s\r\n0\r\n%s\r\n" % (len(body), body, trailer)


@pytest.mark.parametrize("is_in_parts", [False, True])
@pytest.mark.parametrize("is_chunked", [False, True])
def test_an_offered_protocol_is_passed_over(client: RawClient, is_in_parts: bool, is_chunked: bool) -> None:
    """As clients of Java do it by default. The connection goes on as before, and the body is one."""
    body, promised = EVENT, f"Content-Length: {len(EVENT)}"
    if is_chunked:
        body, promised = chunked(EVENT), "Transfer-Encoding: chunked"
    for _ in range(2):
        asked = head(f"POST {EVENTS} HTTP/1.1", *OFFER, "Content-Type: application/json", promised)
        for part in [asked, body] if is_in_parts else [asked + body]:
            client.send(part)
        answer = client.response()
        assert answer.status == 200, answer.body
        assert json.loads(answer.body)["metrics"]
        client.send(WHOAMI)
        assert client.response().status == 200


def test_a_request_in_the_body_of_one_is_none(client: RawClient) -> None:
    json_text = "Content-Type: application/json"
    client.send(head(f"POST {EVENTS} HTTP/1.1", *OFFER, json_text, f"Content-Length: {len(WHOAMI)}"))
    client.send(WHOAMI)
    assert client.response().status == 400
    client.send(head("GET /healthz HTTP/1.1", "Connection: close"))
    assert client.response().status == 200
    assert client.line() == b""


def test_an_offer_without_a_body(client: RawClient) -> None:
    for offer in (
        OFFER,
        ("Connection: keep-alive, Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"),
    ):
        client.send(head("GET /v1/whoami HTTP/1.1", *offer) + WHOAMI)
        assert [client.response().status for _ in range(2)] == [200, 200]
    client.send(head("GET /v1/whoami HTTP/1.1", "Connection: close, Upgrade", "Upgrade: h2c"))
    assert client.response().headers["connection"] == "close"
    assert client.line() == b""


def test_this_is_no_proxy(client: RawClient) -> None:
    client.send(head("CONNECT example.com:443 HTTP/1.1") + WHOAMI)
    assert client.response().status == 405
    assert client.line() == b""


@pytest.mark.parametrize("token", [None, "all"])
@pytest.mark.parametrize("is_in_parts", [False, True])
def test_a_trailer_is_no_part_of_the_head(client: RawClient, token: str | None, is_in_parts: bool) -> None:
    """Neither a token there counts, nor that there is another one."""
    trailer = b"Authorization: %s\r\n" % bearer("all").encode()
    asked = head(
        f"POST {EVENTS} HTTP/1.1", "Content-Type: application/json", "Transfer-Encoding: chunked", token=token
    )
    body = chunked(EVENT, trailer)
    for part in [asked, body] if is_in_parts else [asked + body]:
        client.send(part)
    assert client.response().status == (401 if token is None else 200)


def test_what_is_no_route_is_refused_before_its_body(client: RawClient) -> None:
    waits = ("Expect: 100-continue", "Content-Length: 1000000")
    client.send(head("POST /v1/nope HTTP/1.1", *waits))
    status = client.line()
    assert status.split()[1] == b"404"
