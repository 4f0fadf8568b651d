"""Bounds: sizes, what is in flight, connections, patience; and that what is over is let go again."""

import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from frontend.http import connection
from tests.frontend.conftest import Payments
from tests.frontend.raw_client import RawClient, chunked, head
from tests.frontend.serving import Server, until

Event = Callable[..., dict[str, Any]]
EVENTS = "/v1/streams/payments/events"
NAMELESS = """
[streams.nameless]
partitioners = ["card"]
[streams.nameless.fields]
card = "string"
"""
NDJSON = {"Content-Type": "application/x-ndjson"}


def lines(*events: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(each).encode() + b"\n" for each in events)


def is_idle(server: Server) -> bool:
    in_flight = server.service.application.in_flight
    return (in_flight.events, in_flight.size_bytes) == (0, 0)


# --- sizes -----------------------------------------------------------------------------------------


def test_a_body_that_is_too_large(payments: Payments, event: Event) -> None:
    with payments.serve(body_limit_bytes=1_000) as server:
        large = json.dumps(event(card="x" * 2_000)).encode()
        with RawClient(server.address) as client:
            client.post(EVENTS, large)
            response = client.response()
            assert response.status == 413
            assert "1000 bytes" in json.loads(response.body)["detail"]
            # The connection is of use still.
            client.post(EVENTS, json.dumps(event()).encode())
            assert client.response().status == 200
        with RawClient(server.address) as client:
            client.send(head(EVENTS, "application/json", "Transfer-Encoding: chunked"))
            client.send(chunked(large[:600], large[600:]))
            assert client.response().status == 413
            client.post(EVENTS, json.dumps(event()).encode())
            assert client.response().status == 200
        with RawClient(server.address) as client:
            client.send(
                head(EVENTS, "application/json", f"Content-Length: {len(large)}", "Expect: 100-continue")
            )
            assert client.response().status == 413
            assert client.is_ended()
        assert (
            server.client.post(
                "/v1/streams", content=large, headers={"Content-Type": "application/json"}
            ).status_code
            == 413
        )
        until(lambda: is_idle(server))


def test_an_array_of_too_many(payments: Payments, event: Event) -> None:
    with payments.serve(batch_limit_events=10) as server:
        assert len(server.score("payments", [event() for _ in range(10)])) == 10
        response = server.post(EVENTS, [event() for _ in range(11)])
        assert response.status_code == 413
        assert "at most 10" in response.json()["detail"]


@pytest.mark.parametrize("piece_bytes", [700, 100_000])
def test_a_line_that_is_too_long(payments: Payments, event: Event, piece_bytes: int) -> None:
    with payments.serve(body_limit_bytes=1_000) as server:
        card = event()["card"]
        body = lines(event(card=card), event(card="x" * 5_000), event(card=card), event(card="y" * 1_000))
        pieces = [body[at : at + piece_bytes] for at in range(0, len(body), piece_bytes)]
        response = server.client.post(EVENTS, content=iter(pieces), headers=NDJSON)
        answers = [json.loads(line) for line in response.content.splitlines()]
        assert [answer.get("status") for answer in answers] == [None, 413, None, 413]
        assert [answers[place]["metrics"]["n7"] for place in (0, 2)] == [1, 2]
        assert is_idle(server)


# --- in flight -------------------------------------------------------------------------------------


def test_more_in_flight_than_may_be(payments: Payments, event: Event) -> None:
    with payments.serve(in_flight_limit_events=3) as server, ThreadPoolExecutor(3) as pool:
        payments.gate.shut()
        held = [pool.submit(server.score, "payments", event()) for _ in range(3)]
        until(lambda: server.service.application.in_flight.events == 3)
        response = server.post(EVENTS, event())
        assert (response.status_code, response.headers["retry-after"]) == (429, "1")
        assert "3 events" in response.json()["detail"]
        payments.gate.open()
        assert all(each.result()["metrics"]["n7"] == 1 for each in held)
        assert server.post(EVENTS, [event() for _ in range(4)]).status_code == 413
        assert server.post(EVENTS, event()).status_code == 200
        assert is_idle(server)


def test_more_bytes_in_flight_than_may_be(payments: Payments, event: Event) -> None:
    with payments.serve(in_flight_limit_bytes=3_000) as server, ThreadPoolExecutor(1) as pool:
        payments.gate.shut()
        held = pool.submit(server.score, "payments", event(card="x" * 2_000))
        payments.gate.wait_for_event()
        assert server.post(EVENTS, event(card="y" * 2_000)).status_code == 429
        payments.gate.open()
        assert held.result()["metrics"]["n7"] == 1
        assert server.post(EVENTS, event(card="y" * 2_000)).status_code == 200
        assert server.post(EVENTS, event(card="y" * 4_000)).status_code == 413
        assert is_idle(server)


def test_lines_wait_where_requests_are_refused(payments: Payments, event: Event) -> None:
    """More lines than may be in flight, over several connections at once: slower, and all answered."""
    with payments.serve(in_flight_limit_events=2_000, in_flight_limit_bytes=400_000) as server:

        def stream(number: int) -> list[int]:
            sent = [event(card=f"many{number}") for _ in range(6_000)]
            with RawClient(server.address) as client:
                sender = threading.Thread(target=send_lines, args=(client, sent))
                sender.start()
                status, _ = client.head()
                assert status == 200
                body = b""
                while piece := client.chunk():
                    body += piece
                sender.join()
            return [json.loads(line)["metrics"]["n7"] for line in body.splitlines()]

        with ThreadPoolExecutor(3) as pool:
            for counted in pool.map(stream, range(3)):
                assert counted == list(range(1, 6_001))
        assert is_idle(server)


def send_lines(client: RawClient, events: list[dict[str, Any]]) -> None:
    client.send(head(EVENTS, "application/x-ndjson", "Transfer-Encoding: chunked"))
    for first in range(0, len(events), 500):
        client.send(chunked(lines(*events[first : first + 500]), end=False))
    client.send(b"0\r\n\r\n")


def test_replies_come_while_lines_go(shared: Server, event: Event) -> None:
    with RawClient(shared.address) as client:
        client.send(head(EVENTS, "application/x-ndjson", "Transfer-Encoding: chunked"))
        card = event()["card"]
        for number in range(1, 4):
            client.send(chunked(lines(event(card=card)), end=False))
            if number == 1:
                assert client.head()[0] == 200
            assert json.loads(client.chunk())["metrics"]["n7"] == number
        client.send(b"0\r\n\r\n")
        assert client.chunk() == b""


def test_a_client_that_reads_once_it_has_sent_all(shared: Server, event: Event) -> None:
    card = event()["card"]
    body = lines(*[event(card=card) for _ in range(50_000)])
    response = shared.client.post(EVENTS, content=body, headers=NDJSON)
    assert response.content.count(b"\n") == 50_000
    assert json.loads(response.content.splitlines()[-1])["metrics"]["n7"] == 50_000


def test_a_client_that_never_reads(payments: Payments, event: Event) -> None:
    settings = {"in_flight_limit_bytes": 1 << 20, "keep_alive_s": 1.0}
    with payments.serve(**settings) as server, RawClient(server.address) as client:
        client.socket.settimeout(0.2)
        client.send(head(EVENTS, "application/x-ndjson", "Transfer-Encoding: chunked"))
        card = event()["card"]
        piece = chunked(lines(*[event(card=card) for _ in range(500)]), end=False)
        with pytest.raises(OSError):
            client.send(piece * 2_000)
        # What it holds leaves room for others, and is given back once patience is at its end.
        assert server.score("payments", event())["metrics"]["n7"] == 1
        until(lambda: is_idle(server))


# --- patience --------------------------------------------------------------------------------------


def test_more_connections_than_may_be(payments: Payments, event: Event) -> None:
    with payments.serve(connections_limit=3) as server:
        held = [RawClient(server.address) for _ in range(2)]
        try:
            for client in held:
                client.post(EVENTS, json.dumps(event()).encode())
                assert client.response().status == 200
            with RawClient(server.address) as client:
                response = client.response()
                assert (response.status, response.headers["retry-after"]) == (503, "1")
                assert client.is_ended()
        finally:
            for client in held:
                client.socket.close()
        until(lambda: answers(server, event()))


def answers(server: Server, event: dict[str, Any]) -> bool:
    with RawClient(server.address) as client:
        client.post(EVENTS, json.dumps(event).encode())
        return client.response().status == 200


def test_a_body_that_does_not_come(payments: Payments) -> None:
    with payments.serve(timeout_ms=200) as server, RawClient(server.address) as client:
        client.send(head(EVENTS, "application/json", "Content-Length: 100") + b"{")
        response = client.response()
        assert response.status == 408
        assert is_idle(server)


def test_a_head_that_does_not_come(payments: Payments, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "HEAD_S", 0.1)
    with payments.serve() as server, RawClient(server.address) as client:
        client.send(b"POST /v1/streams HTTP/1.1\r\nHost:")
        assert client.response().status == 408
        assert client.is_ended()


def test_connections_that_say_nothing(payments: Payments, event: Event) -> None:
    with payments.serve(keep_alive_s=1.0) as server:
        with RawClient(server.address) as fresh, RawClient(server.address) as used:
            used.post(EVENTS, json.dumps(event()).encode())
            assert used.response().status == 200
            assert fresh.is_ended()
            assert used.is_ended()
        with RawClient(server.address) as client:
            client.send(head(EVENTS, "application/x-ndjson", "Transfer-Encoding: chunked"))
            client.send(chunked(lines(event()), end=False))
            assert client.head()[0] == 200
            assert client.chunk()
            assert client.is_ended()
        until(lambda: is_idle(server))


def test_a_new_connection_is_to_say_something_soon(
    payments: Payments, event: Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that has had an answer may idle for longer."""
    monkeypatch.setattr(connection, "HEAD_S", 0.1)
    with payments.serve() as server, RawClient(server.address) as used:
        used.post(EVENTS, json.dumps(event()).encode())
        assert used.response().status == 200
        with RawClient(server.address) as fresh:
            assert fresh.is_ended()
        used.post(EVENTS, json.dumps(event()).encode())
        assert used.response().status == 200


def test_patience_begins_with_the_answer_however_long_that_took(payments: Payments, event: Event) -> None:
    with payments.serve(keep_alive_s=3.0) as server, RawClient(server.address) as client:
        payments.gate.shut()
        client.post(EVENTS, json.dumps(event()).encode())
        payments.gate.wait_for_event()
        time.sleep(3.5)
        payments.gate.open()
        assert client.response().status == 200
        time.sleep(1.5)
        client.post(EVENTS, json.dumps(event()).encode())
        assert client.response().status == 200


def test_lines_that_wait_for_room_are_not_cut_off(payments: Payments, event: Event) -> None:
    settings = {"in_flight_limit_events": 1, "keep_alive_s": 1.0}
    with payments.serve(**settings) as server, RawClient(server.address) as client:
        payments.gate.shut()
        with RawClient(server.address) as first:
            first.post(EVENTS, json.dumps(event()).encode())
            payments.gate.wait_for_event()
            client.send(head(EVENTS, "application/x-ndjson", "Transfer-Encoding: chunked"))
            client.send(chunked(lines(event()), end=False))
            time.sleep(2.5)
            payments.gate.open()
            assert first.response().status == 200
        assert client.head()[0] == 200
        assert client.chunk()
        client.send(chunked(lines(event())))
        assert client.chunk()
        assert client.chunk() == b""


def test_what_has_come_and_is_not_read_yet_keeps_a_connection(
    payments: Payments, event: Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    close, held = connection.Connection._close_unread, threading.Event()

    def late(self: connection.Connection) -> None:
        # A loop that is busy while patience ends: by the time it looks, a request is there.
        held.set()
        time.sleep(0.5)
        close(self)

    monkeypatch.setattr(connection.Connection, "_close_unread", late)
    with payments.serve(keep_alive_s=1.0) as server, RawClient(server.address) as client:
        for _ in range(3):
            held.clear()
            client.post(EVENTS, json.dumps(event()).encode())
            assert client.response().status == 200
            assert held.wait(10)


def test_the_rest_of_a_refused_body_is_not_read_for_ever(
    payments: Payments, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "DISCARD_S", 0.1)
    with payments.serve() as server, RawClient(server.address) as client:
        client.send(head(EVENTS, "text/plain", "Content-Length: 1000000"))
        assert client.response().status == 415
        assert client.is_ended()


# --- time ------------------------------------------------------------------------------------------


def test_no_answer_in_time(payments: Payments, event: Event) -> None:
    with payments.serve() as server, ThreadPoolExecutor(1) as pool:
        payments.gate.shut()
        first = event()
        taken = pool.submit(server.post, EVENTS, first, params={"timeout_ms": "300"})
        payments.gate.wait_for_event()
        second = event(card=first["card"])
        waiting = server.post(EVENTS, second, params={"timeout_ms": "100"})
        assert waiting.status_code == 504
        assert waiting.json()["id"] == second["tx_id"]
        assert waiting.json()["partitioners"] == ["card", "*"]
        assert "was not taken" in waiting.json()["detail"]
        assert taken.result().status_code == 504
        assert "may count" in taken.result().json()["detail"]
        response = server.client.post(
            EVENTS, content=lines(second, event()), headers=NDJSON, params={"timeout_ms": "50"}
        )
        assert [json.loads(line)["status"] for line in response.content.splitlines()] == [504, 504]
        array = server.post(EVENTS, [second, event()], params={"timeout_ms": "50"})
        assert [each["status"] for each in array.json()] == [504, 504]
        payments.gate.open()
        assert all(each["id"] == second["tx_id"] for each in (waiting.json(), array.json()[0]))
        # Sent again with its id, each counts once: whether it was taken before or not.
        assert server.score("payments", first)["metrics"]["n7"] == 1
        assert server.score("payments", second)["metrics"]["n7"] == 2
        assert is_idle(server)


def test_who_has_not_answered_is_who_the_event_was_sent_to(payments: Payments, event: Event) -> None:
    texts = [event(), event(card=None), {"tx_id": "bare", "ts": 1}]
    damaged = b'{"tx_id": "\xff"}\n'
    with payments.serve() as server, ThreadPoolExecutor(1) as pool:
        payments.gate.shut()
        taken = pool.submit(server.post, EVENTS, event(card=None), params={"timeout_ms": "300"})
        payments.gate.wait_for_event()
        response = server.client.post(
            EVENTS, content=lines(*texts) + damaged, headers=NDJSON, params={"timeout_ms": "50"}
        )
        held = taken.result().json()
        payments.gate.open()
    assert held["partitioners"] == ["*"]
    problems = [json.loads(line) for line in response.content.splitlines()]
    assert [each["status"] for each in problems] == [504] * 4
    assert [each["partitioners"] for each in problems[:3]] == [["card", "*"], ["*"], ["*"]]


def test_no_answer_in_time_to_an_event_that_brings_no_id(payments: Payments, event: Event) -> None:
    with payments.serve() as server, ThreadPoolExecutor(1) as pool:
        server.define(NAMELESS)
        payments.gate.shut()
        place = "/v1/streams/nameless/events"
        taken = pool.submit(server.post, place, {"card": "a"}, params={"timeout_ms": "300"})
        payments.gate.wait_for_event()
        waiting = server.post(place, {"card": "a"}, params={"timeout_ms": "50"})
        assert (waiting.status_code, taken.result().status_code) == (504, 504)
        assert "id" not in waiting.json()
        assert "sent again it would count once more" in taken.result().json()["detail"]
        # One that should have brought an id.
        unnamed = server.post(EVENTS, {"card": "a"}, params={"timeout_ms": "50"})
        assert (unnamed.status_code, "id" in unnamed.json()) == (504, False)
        payments.gate.open()
