"""Single events go a shorter way than other requests: what clients get is the same, however bytes arrive."""

import asyncio
import gc
import json
import random
import socket
import struct
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from frontend.http import connection, single_events
from frontend.http.asgi import encoder
from frontend.http.single_events import BODY_BYTES_MAX, SingleEvents
from frontend.problems import Problem
from frontend.scoring.answers_in_time import CallbackWaiter
from frontend.scoring.scoring_thread import ScoringThread, Submission
from railgun.telemetry.recording import Recording
from tests.counts import seeds
from tests.frontend.conftest import Payments
from tests.frontend.http.test_lifecycle import is_closed
from tests.frontend.raw_client import RawClient, Response, chunked, head
from tests.frontend.serving import Server, until

Event = Callable[..., dict[str, Any]]
EVENTS = "/v1/streams/payments/events"
JSON = "application/json"


class Counted:
    """How many requests went the short way. `taken`: to be scored."""

    def __init__(self) -> None:
        self.tried = self.taken = 0

    def watch(self, single_events: SingleEvents, monkeypatch: pytest.MonkeyPatch) -> None:
        score = single_events.score

        def counting(*arguments: Any) -> bool:
            is_taken = score(*arguments)
            self.tried += 1
            self.taken += is_taken
            return is_taken

        monkeypatch.setattr(single_events, "score", counting)


@pytest.fixture
def counted(shared: Server, monkeypatch: pytest.MonkeyPatch) -> Counted:
    found = Counted()
    found.watch(shared.service.application.single_events, monkeypatch)
    return found


def request_of(path: str, body: bytes, content_type: str = JSON, *headers: str) -> bytes:
    return head(path, content_type, f"Content-Length: {len(body)}", *headers) + body


def through_the_application(path: str, body: bytes, content_type: str = JSON) -> bytes:
    """The same request, as the short way does not take it."""
    return head(path, content_type, "Transfer-Encoding: chunked") + chunked(*filter(None, [body]))


def pending(server: Server, *requests: bytes) -> list[Response]:
    with RawClient(server.address) as client:
        for each in requests:
            client.send(each)
        return [client.response() for _ in requests]


def same(found: Response) -> tuple[int, dict[str, str], bytes]:
    return found.status, {name: value for name, value in found.headers.items() if name != "date"}, found.body


BAD = [
    b"",
    b"{",
    b"{} {}",
    b'{"tx_id": "h" "ts": 1}',
    b'{"tx_id": "\xff", "ts": 1}',
    b'{"tx_id": "h", "ts": 1, "amount": "x"}',
    b'{"ts": 1}',
    b"null",
    b"[]",
    b'[{"ts": 1}]',
    b'  {"ts": 1}',
    b'{"tx_id": "h", "ts": 1, "amount": ' + b"[" * 5_000 + b"]" * 5_000 + b"}",
]


@pytest.mark.parametrize("body", BAD)
def test_what_is_wrong_is_said_alike(shared: Server, body: bytes) -> None:
    short, long = pending(shared, request_of(EVENTS, body), through_the_application(EVENTS, body))
    assert same(short) == same(long)


@pytest.mark.parametrize(
    ("path", "content_type"),
    [
        (EVENTS + "?metrics=nope", JSON),
        (EVENTS + "?metrics=", JSON),
        (EVENTS + "?timeout_ms=0", JSON),
        (EVENTS + "?what=1", JSON),
        (EVENTS + "?metrics=n7&metrics=n7", JSON),
        ("/v1/streams/nope/events", JSON),
        ("/v1/streams/pay%6Dents/nope", JSON),
        ("/v1/streams//events", JSON),
        (EVENTS, "text/plain"),
        (EVENTS, "application/json; charset=latin-1"),
    ],
)
def test_what_is_refused_as_a_whole_is_refused_alike(
    shared: Server, event: Event, counted: Counted, path: str, content_type: str
) -> None:
    body = json.dumps(event()).encode()
    short, long = pending(
        shared, request_of(path, body, content_type), through_the_application(path, body, content_type)
    )
    assert same(short) == same(long)
    assert short.status >= 400
    assert counted.taken == 0


@pytest.mark.parametrize(
    "query", ["", "?metrics=n7", "?metrics=s7,n7", "?timeout_ms=30000", "?reply=all", "?reply=none"]
)
@pytest.mark.parametrize("content_type", [JSON, "application/json; charset=utf-8", "Application/JSON"])
def test_replies_are_alike(
    shared: Server, event: Event, counted: Counted, query: str, content_type: str
) -> None:
    bodies = [json.dumps(event(tx_id=tx_id, card="same")).encode() for tx_id in ("a1", "a2")]
    short, long = pending(
        shared,
        request_of(EVENTS + query, bodies[0], content_type),
        through_the_application(EVENTS + query, bodies[1], content_type),
    )
    assert (short.status, list(short.headers)) == (long.status, list(long.headers))
    assert short.headers["content-type"] == long.headers["content-type"]
    if "none" in query:
        assert json.loads(short.body) == json.loads(long.body)
    else:
        assert list(json.loads(short.body)) == list(json.loads(long.body))
        assert list(json.loads(short.body)["metrics"]) == list(json.loads(long.body)["metrics"])
    assert counted.taken == ("none" not in query and content_type != "Application/JSON")


@pytest.mark.parametrize(
    ("headers", "version", "is_short"),
    [
        ((), "1.1", True),
        (("Connection: keep-alive",), "1.1", True),
        (("X-Whatever: 1", "Accept: */*"), "1.1", True),
        (("Connection: close",), "1.1", False),
        (("Content-Type: application/json",), "1.1", False),
        (("Content-Encoding: identity",), "1.1", False),
        (("Connection: keep-alive",), "1.0", False),
    ],
)
def test_which_requests_go_the_short_way(
    shared: Server, event: Event, counted: Counted, headers: Sequence[str], version: str, is_short: bool
) -> None:
    sent = request_of(EVENTS, json.dumps(event()).encode(), JSON, *headers)
    [found] = pending(shared, sent.replace(b"HTTP/1.1", b"HTTP/" + version.encode()))
    assert found.status == 200
    assert counted.taken == is_short


@pytest.mark.parametrize(("size_bytes", "is_short"), [(BODY_BYTES_MAX, True), (BODY_BYTES_MAX + 1, False)])
def test_large_events_are_the_applications(
    shared: Server, event: Event, counted: Counted, size_bytes: int, is_short: bool
) -> None:
    [found] = pending(shared, request_of(EVENTS, json.dumps(event()).encode().ljust(size_bytes)))
    assert found.status == 200
    assert counted.taken == is_short


def mixed_requests(event: Event, chance: random.Random, count: int) -> tuple[list[bytes], list[Any]]:
    """Requests of all kinds for one connection, and of each what tells its answer from the others'."""
    requests: list[bytes] = []
    expected: list[Any] = []
    for _ in range(count):
        each = event()
        body = json.dumps(each).encode()
        match chance.randrange(6):
            case 0 | 1 | 2:
                requests.append(request_of(EVENTS, body))
                expected.append((200, each["tx_id"]))
            case 3:
                requests.append(through_the_application(EVENTS, body))
                expected.append((200, each["tx_id"]))
            case 4:
                requests.append(request_of(EVENTS, b"{" + body))
                expected.append((400, None))
            case _:
                requests.append(request_of(EVENTS, b"[" + body + b"]"))
                expected.append((200, [each["tx_id"]]))
    return requests, expected


def told_apart(found: Response) -> Any:
    said = json.loads(found.body)
    if found.status != 200:
        return found.status, None
    return 200, [each["id"] for each in said] if isinstance(said, list) else said["id"]


@pytest.mark.parametrize("seed", seeds(range(6), range(12)))
def test_however_bytes_are_cut(shared: Server, event: Event, counted: Counted, seed: int) -> None:
    """Several requests in one piece, one in many: each is answered, in order."""
    chance = random.Random(seed)
    requests, expected = mixed_requests(event, chance, 25)
    data = b"".join(requests)
    with RawClient(shared.address) as client:
        place = 0
        while place < len(data):
            size_bytes = chance.choice([1, 7, 60, 300, 2_000])
            client.send(data[place : place + size_bytes])
            place += size_bytes
            if chance.random() < 0.3:
                time.sleep(0.002)
        assert [told_apart(client.response()) for _ in requests] == expected
        counted.taken = 0
        client.post(EVENTS, json.dumps(event()).encode())
        assert client.response().status == 200
    assert counted.taken == 1


def test_a_body_that_is_late_is_waited_for(shared: Server, event: Event, counted: Counted) -> None:
    body = json.dumps(event()).encode()
    sent = request_of(EVENTS, body)
    with RawClient(shared.address) as client:
        for wait_s, is_short in ((0.05, True), (3.0, False)):
            counted.tried = 0
            client.send(sent[: -len(body) // 2])
            time.sleep(wait_s)
            client.send(sent[-len(body) // 2 :])
            assert client.response().status == 200
            assert counted.tried == is_short


def test_a_body_that_never_comes_is_not(payments: Payments, event: Event) -> None:
    with payments.serve(timeout_ms=300) as running, RawClient(running.address) as client:
        client.send(request_of(EVENTS, json.dumps(event()).encode())[:-1])
        assert client.response().status == 408


def test_a_server_that_is_full_says_so(payments: Payments, event: Event) -> None:
    with payments.serve(in_flight_limit_events=1) as running:
        payments.gate.shut()
        with RawClient(running.address) as first, RawClient(running.address) as second:
            first.post(EVENTS, json.dumps(event()).encode())
            payments.gate.wait_for_event()
            second.post(EVENTS, json.dumps(event()).encode())
            found = second.response()
            assert (found.status, found.headers["retry-after"]) == (429, "1")
            payments.gate.open()
            assert first.response().status == 200
            second.post(EVENTS, json.dumps(event()).encode())
            assert second.response().status == 200
        assert (
            running.service.application.in_flight.events,
            running.service.application.in_flight.size_bytes,
        ) == (
            0,
            0,
        )


def test_an_event_that_takes_too_long(payments: Payments, event: Event) -> None:
    with payments.serve(timeout_ms=100) as running, RawClient(running.address) as client:
        payments.gate.shut()
        sent = event()
        client.post(EVENTS, json.dumps(sent).encode())
        found = client.response()
        said = json.loads(found.body)
        assert (found.status, said["status"], said["id"]) == (504, 504, sent["tx_id"])
        payments.gate.open()
        client.post(EVENTS + "?timeout_ms=20000", json.dumps(event()).encode())
        assert client.response().status == 200
        assert running.service.application.in_flight.events == 0


def test_a_client_that_goes_before_its_answer(payments: Payments, event: Event) -> None:
    with payments.serve() as running:
        payments.gate.shut()
        with RawClient(running.address) as client:
            client.post(EVENTS, json.dumps(event(card="gone")).encode())
            payments.gate.wait_for_event()
        payments.gate.open()
        until(lambda: running.service.application.in_flight.events == 0)
        assert running.score("payments", event(card="gone"))["metrics"]["n7"] == 2


def test_a_server_that_stops_answers_what_it_has(payments: Payments, event: Event) -> None:
    """Both an event that is being scored and one whose body is on its way; and says that it closes."""
    with payments.serve(shutdown_grace_s=30.0) as running:
        payments.gate.shut()
        with RawClient(running.address) as client, RawClient(running.address) as half:
            body = json.dumps(event()).encode()
            half.send(request_of(EVENTS, body)[:-1])
            client.post(EVENTS, json.dumps(event()).encode())
            payments.gate.wait_for_event()
            running.service.stop()
            until(lambda: is_closed(running.address))
            half.send(body[-1:])
            payments.gate.open()
            for each in (client, half):
                found = each.response()
                assert (found.status, found.headers["connection"]) == (200, "close")
                assert each.is_ended()


def test_a_connection_that_says_nothing_is_ended(payments: Payments, event: Event) -> None:
    with payments.serve(keep_alive_s=1.0) as running, RawClient(running.address) as client:
        client.post(EVENTS, json.dumps(event()).encode())
        assert client.response().status == 200
        began_s = time.monotonic()
        assert client.is_ended()
        assert time.monotonic() - began_s > 0.5


# --- defects ---------------------------------------------------------------------------------------


def is_idle(server: Server) -> bool:
    in_flight = server.service.application.in_flight
    return (in_flight.events, in_flight.size_bytes) == (0, 0)


def fails(*_: object, **__: object) -> Any:
    raise RuntimeError("a defect")


class NoReplies:
    """An encoder that fails with replies."""

    def encode(self, found: object) -> bytes:
        return encoder.encode(found) if isinstance(found, Problem) else fails()


@pytest.mark.parametrize("timeout_ms", [100, 30_000])
def test_a_defect_is_answered(
    payments: Payments,
    event: Event,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    timeout_ms: int,
) -> None:
    """Whether there is no answer to make of what was scored, or none of what was not."""
    with payments.serve(timeout_ms=timeout_ms) as running, RawClient(running.address) as client:
        with monkeypatch.context() as broken:
            broken.setattr(single_events, "encoder", NoReplies())
            broken.setattr(running.backend.scoring, "_late", fails)
            if timeout_ms == 100:
                payments.gate.shut()
            client.post(EVENTS, json.dumps(event()).encode())
            assert client.response().status == 500
        assert is_idle(running)
        assert [each for each in caplog.records if each.exc_info and "a defect" in each.getMessage()]
        payments.gate.open()
        client.post(EVENTS + "?timeout_ms=30000", json.dumps(event()).encode())
        assert client.response().status == 200


def test_what_cannot_be_submitted_is_the_applications(
    payments: Payments, event: Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    with payments.serve() as running, RawClient(running.address) as client:
        monkeypatch.setattr(running.backend.scoring, "submit", fails)
        client.post(EVENTS, json.dumps(event()).encode())
        assert client.response().status == 200
        assert is_idle(running)


def test_what_was_told_is_let_go_of_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not only once garbage is collected, which would look through what is under way for that."""

    class Client:
        def __call__(self, found: object) -> None:
            pass

    async def told() -> weakref.ref[Client]:
        client = Client()
        monkeypatch.setattr(ScoringThread, "submit", lambda self, submission: None)
        waiter = CallbackWaiter(Recording(), lambda submission: [None], client)
        submission = Submission.of("s", [b"{}"], None, 60_000, reply=True, answered=waiter)
        waiter.begin(ScoringThread.__new__(ScoringThread), submission)
        waiter.set_result([None])
        return weakref.ref(client)

    gc.collect()
    gc.disable()
    try:
        assert asyncio.run(told())() is None
    finally:
        gc.enable()


def test_long_urls_are_not_kept(shared: Server, event: Event, counted: Counted) -> None:
    query = "?metrics=n7" + ",n7" * 1_000
    kept = single_events._known_target.cache_info().currsize
    [found] = pending(shared, request_of(EVENTS + query, json.dumps(event()).encode()))
    assert list(json.loads(found.body)["metrics"]) == ["n7"]
    assert counted.taken == 1
    assert single_events._known_target.cache_info().currsize == kept


def test_a_head_that_is_late_waits_for_the_answer_before(
    payments: Payments, event: Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "HEAD_S", 0.1)
    with payments.serve() as running, RawClient(running.address) as client:
        payments.gate.shut()
        sent = event()
        client.post(EVENTS, json.dumps(sent).encode())
        payments.gate.wait_for_event()
        client.send(b"POST /v1")
        time.sleep(2.5)
        payments.gate.open()
        found = client.response()
        assert (found.status, json.loads(found.body).get("id")) == (200, sent["tx_id"])
        assert client.response().status == 408
        assert client.is_ended()


def test_a_client_that_goes_before_the_answers_to_several_requests(
    payments: Payments, event: Event, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is gone once it has the first of them, while the second is at the application."""
    answer, lose, lost = (
        connection.Connection._answer,
        connection.Connection.connection_lost,
        threading.Event(),
    )

    def answered(self: connection.Connection, *arguments: Any) -> None:
        payments.gate.shut()
        answer(self, *arguments)

    def losing(self: connection.Connection, exc: Exception | None) -> None:
        lose(self, exc)
        lost.set()

    with payments.serve() as running:
        payments.gate.shut()
        with RawClient(running.address) as client:
            client.send(b"".join(request_of(EVENTS, json.dumps(event()).encode()) for _ in range(4)))
            until(lambda: running.service.application.in_flight.events == 1)
            monkeypatch.setattr(connection.Connection, "_answer", answered)
            monkeypatch.setattr(connection.Connection, "connection_lost", losing)
            payments.gate.open()
            assert client.response().status == 200
            # Closed so, it resets the connection.
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        assert lost.wait(10)
        payments.gate.open()
        until(lambda: is_idle(running))
    assert not [each.getMessage() for each in caplog.records if each.exc_info]


def test_a_last_answer_that_is_not_taken_is_not_kept_for_ever(payments: Payments, event: Event) -> None:
    with payments.serve(keep_alive_s=1.0, connections_limit=1) as running:
        until(lambda: not running.service.application.in_flight.events)
        running.service._listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_096)
        until(lambda: is_taken(running, event()))
        with RawClient(running.address) as client:
            card = event()["card"]
            body = json.dumps([event(card=card) for _ in range(8_000)]).encode()
            client.post(EVENTS, body, JSON, "Connection: close")
            assert client.socket.recv(1)
            until(lambda: is_taken(running, event()))


def is_taken(server: Server, event: dict[str, Any]) -> bool:
    with RawClient(server.address) as client:
        client.post(EVENTS, json.dumps(event).encode())
        return client.response().status == 200
