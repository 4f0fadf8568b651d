"""Both clients on real sockets: what is sent, what is kept, and what each way to fail is called."""

import asyncio
import errno
import json
import re
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

import railgun
from railgun.client.connection import IDLE_S, Arriving
from railgun.client.errors import (
    ClientError,
    ConnectionLostError,
    ProblemError,
    RefusedConnectionError,
    UnreachableError,
)
from railgun.client.pool import Pool, PoolClosedError
from railgun.client.steps import Request, Session
from tests.client.scripted_server import OK, UNAVAILABLE, ok, scripted

REPLY = b'{"id": "t1", "time": 1, "metrics": {"n": 1}}'
TOKEN = "hunter2-" + "x" * 35
Asked = Callable[..., Any]


def blocking(url: str, call: str, *arguments: Any, **options: Any) -> Any:
    with railgun.Client(url, **options) as client:
        return getattr(client, call)(*arguments)


def awaited(url: str, call: str, *arguments: Any, **options: Any) -> Any:
    async def main() -> Any:
        async with railgun.AsyncClient(url, **options) as client:
            return await getattr(client, call)(*arguments)

    return asyncio.run(main())


@pytest.fixture(params=[blocking, awaited])
def ask(request: pytest.FixtureRequest) -> Asked:
    asked: Asked = request.param
    return asked


def test_what_is_sent(ask: Asked) -> None:
    with scripted(ok(REPLY)) as server:
        assert ask(server.url, "score", "s", {"tx": "größe"}, token=TOKEN) == json.loads(REPLY)
    [(_, head, body)] = server.requests
    assert head.startswith(b"POST /v1/streams/s/events HTTP/1.1\r\n")
    assert f"Authorization: Bearer {TOKEN}\r\n".encode() in head
    assert b"Content-Type: application/json\r\n" in head
    assert json.loads(body) == {"tx": "größe"}


def test_a_connection_is_kept_and_a_lost_one_is_replaced(ask: Asked) -> None:
    answers = [UNAVAILABLE, UNAVAILABLE, b"", ok(REPLY)]
    with scripted(*answers) as server:
        assert ask(server.url, "score", "s", {}, streams_with_ids=["s"]) == json.loads(REPLY)
    assert [number for number, _, _ in server.requests] == [1, 1, 1, 2]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"", "the connection was lost: "),
        (b"HTTP/1.1 200 O", "the connection was lost: "),
        (OK + b"Content-Length: 99\r\n\r\n" + REPLY, "the connection was lost: "),
        (b"SMTP\r\n\r\n", "the connection was lost: "),
        (None, "no answer within 0.2 s"),
    ],
)
def test_a_lost_answer(ask: Asked, answer: bytes | None, message: str) -> None:
    definition = ok(b'{"id": null, "dedup_events": 9}')
    with (
        scripted(answer, otherwise=definition) as server,
        pytest.raises(ConnectionLostError, match=message) as raised,
    ):
        # A loaded machine needs time to see that a connection has ended.
        ask(server.url, "score", "s", {}, timeout_s=0.2 if answer is None else 20.0)
    assert raised.value.may_have_counted
    assert "s has no id field, so it is not sent again" in str(raised.value)


def test_answers_to_lines_before_the_connection_ended_are_kept(ask: Asked) -> None:
    lines, cut = b'{"tx": 1}\n{"tx": 2}\n', OK + b"Content-Length: 999\r\n\r\n" + REPLY + b"\n" + REPLY[:9]
    with scripted(cut, ok(REPLY + b"\n")) as server:
        assert ask(server.url, "score_lines", "s", lines, streams_with_ids=["s"]) == (REPLY + b"\n") * 2
    assert [body for _, _, body in server.requests] == [lines, b'{"tx": 2}\n']


def test_a_refusal_is_no_answer_to_lines(ask: Asked) -> None:
    cut = b"HTTP/1.1 403 No\r\nContent-Length: 99\r\n\r\n" + REPLY + b"\n"
    with scripted(cut, otherwise=ok(b'{"id": null}')) as server, pytest.raises(ConnectionLostError) as raised:
        ask(server.url, "score_lines", "s", b"{}\n")
    assert raised.value.answered == b""


def test_nobody_listens(ask: Asked) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{held.getsockname()[1]}"
        with pytest.raises(UnreachableError) as raised:
            ask(url, "score", "s", {}, connects_within_s=0.6)
    said = re.escape(f"{url}: connection refused; is a server running there?")
    # It is the time that it took, rounded.
    assert re.fullmatch(rf"{said} Gave up after \d+ s", str(raised.value))
    assert not raised.value.may_have_counted


def test_nobody_listens_at_any_address_of_a_name(ask: Asked) -> None:
    """`localhost` has two, where the machine speaks IPv6: awaited, their errors come as a group."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        url = f"http://localhost:{held.getsockname()[1]}"
        waited: list[ClientError] = []
        with pytest.raises(UnreachableError, match=r"localhost:\d+: connection refused; is a server"):
            ask(url, "whoami", connects_within_s=2.4, on_wait=waited.append)
    assert len(waited) == 1


def test_a_connection_that_was_not_made_carried_nothing() -> None:
    session = Session("http://h:1", 1.0, 1.0, 1.0, frozenset(), None)
    request = Request("GET", "/", b"", "", 1.0)
    timeout = Arriving(session, request).failure(httpx.ConnectTimeout(""))
    assert isinstance(timeout.error, RefusedConnectionError)
    for cause in (
        ConnectionResetError(errno.ECONNRESET, "Connection reset by peer"),
        ExceptionGroup("all", [OSError("no route"), ConnectionAbortedError("aborted")]),
    ):
        error = httpx.ConnectError("All connection attempts failed")
        error.__cause__ = OSError("All connection attempts failed")
        error.__cause__.__cause__ = cause
        failure = Arriving(session, request).failure(error)
        assert isinstance(failure.error, RefusedConnectionError)
    assert str(failure.error) == "http://h:1: aborted; is a server running there?"


def test_no_server_can_be_there(ask: Asked) -> None:
    with pytest.raises(UnreachableError, match=r"^http://no\.invalid: .*; is a server running there\?$"):
        ask("http://no.invalid", "score", "s", {})


def test_a_redirection_is_not_followed(ask: Asked) -> None:
    """It could lead the token anywhere."""
    elsewhere = b"HTTP/1.1 307 Go\r\nLocation: http://127.0.0.1:9/\r\nContent-Length: 0\r\n\r\n"
    with scripted(elsewhere) as server, pytest.raises(ProblemError, match="307"):
        ask(server.url, "whoami", token=TOKEN)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"token": f"{TOKEN}\r\nX: y"}, "token: it holds no token, as `railgun token new` prints one"),
        ({"token": ""}, "token: it holds no token, as `railgun token new` prints one"),
        ({"streams_with_ids": "payments"}, r"streams_with_ids: name streams in a list, as in \['payments'\]"),
        ({"ca": "ca.pem"}, "http://127.0.0.1:1: ca is for TLS: write the address with https://"),
    ],
)
@pytest.mark.parametrize("kind", [railgun.Client, railgun.AsyncClient])
def test_options_that_are_wrong(kind: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ClientError, match=f"^{message}$"):
        kind("http://127.0.0.1:1", **options)


def test_files_that_are_wrong(tmp_path: Path) -> None:
    (tmp_path / "empty.pem").touch()
    for options, message in (
        ({"ca": tmp_path / "none.pem"}, "none.pem: No such file or directory$"),
        ({"cert": tmp_path / "empty.pem"}, "empty.pem: it holds no certificate and key in PEM"),
        ({"key": "key.pem"}, "key.pem: a key goes with a certificate; name that too"),
    ):
        with pytest.raises(ClientError, match=message):
            railgun.Client("https://127.0.0.1:1", **options)  # type: ignore[arg-type]


def test_a_token_is_in_no_error_and_no_repr(ask: Asked) -> None:
    unauthorized = b"HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n"
    with scripted(unauthorized, b"") as server:
        for _ in range(2):
            with pytest.raises(ClientError) as raised:
                ask(server.url, "score", "s", {}, token=TOKEN, patience_s=0)
            assert TOKEN not in str(raised.getrepr(style="short"))
        assert all(TOKEN.encode() in head for _, head, _ in server.requests)
        with railgun.Client(server.url, token=TOKEN) as client:
            assert TOKEN not in repr(client)


def test_a_closed_client_says_so() -> None:
    client = railgun.Client("http://127.0.0.1:1")
    client.close()
    with pytest.raises(UnreachableError, match=r"/v1/whoami: the client is closed$"):
        client.whoami()


def test_threads_share_a_client_and_its_connections() -> None:
    n, together = 400, threading.Barrier(8)
    with (
        scripted(otherwise=ok(REPLY)) as server,
        railgun.Client(server.url, connections=4) as client,
        ThreadPoolExecutor(8) as threads,
    ):

        def score(place: int) -> Any:
            if place < 8:
                together.wait(30)
            return client.score("s", {"place": place})

        assert list(threads.map(score, range(n))) == [json.loads(REPLY)] * n
    assert server.connections <= 4
    assert sorted(json.loads(body)["place"] for _, _, body in server.requests) == list(range(n))


def test_a_request_waits_for_a_connection_that_is_free() -> None:
    pool = Pool({}, 1)
    with pool.lent(1.0) as http, pytest.raises(httpx.PoolTimeout), pool.lent(0.01):
        pass
    with pool.lent(1.0) as again:
        assert again is http
        pool.close()
        assert not http.is_closed
    assert http.is_closed
    with pytest.raises(PoolClosedError), pool.lent(1.0):
        pass
    arriving = Arriving(Session("http://h:1", 1, 1, 1, frozenset(), None), Request("GET", "/x", b"", "", 0.1))
    failure = arriving.failure(httpx.PoolTimeout("")).error
    assert isinstance(failure, UnreachableError)
    assert str(failure) == "http://h:1/x: no connection was free within 0.1 s"


def test_connections_that_were_idle_for_long_are_let_go() -> None:
    now_s = 100.0
    pool = Pool({}, 3, lambda: now_s)
    with pool.lent(1.0) as first, pool.lent(1.0) as second:
        with pool.lent(1.0) as third:
            pass
        now_s += IDLE_S / 2
    now_s += IDLE_S / 2
    with pool.lent(1.0) as kept:
        assert kept is first
        assert [each.is_closed for each in (first, second, third)] == [False, False, True]
    now_s += IDLE_S
    with pool.lent(1.0) as another:
        assert another not in (first, second, third)
        assert first.is_closed
        assert second.is_closed
    pool.close()


def test_score_all_gives_what_was_answered_before_an_error() -> None:
    events = [{"tx": place} for place in range(4)]
    cut = OK + b"Content-Length: 999\r\n\r\n" + REPLY + b"\n"
    answers = [ok((REPLY + b"\n") * 2), cut, ok(b'{"id": null, "dedup_events": 9}')]
    with scripted(*answers) as server, railgun.Client(server.url) as client:
        found = client.score_all("s", iter(events), part_events=2)
        assert [next(found) for _ in range(3)] == [json.loads(REPLY)] * 3
        with pytest.raises(ConnectionLostError):
            next(found)

    async def main() -> list[Any]:
        async with railgun.AsyncClient(server.url) as client:
            found = client.score_all("s", events, part_events=2)
            given = [await anext(found) for _ in range(3)]
            with pytest.raises(ConnectionLostError):
                await anext(found)
            return given

    with scripted(*answers) as server:
        assert asyncio.run(main()) == [json.loads(REPLY)] * 3
