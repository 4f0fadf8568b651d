"""Events over HTTP: single ones, arrays, lines; partial failure; options; receipts."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.frontend.serving import Server, server

PAYMENTS = '''
[streams.payments]
time = "ts"
id = "tx_id"
partitioners = ["card", "*"]
[streams.payments.fields]
tx_id = "string"
ts = "timestamp"
card = "string"
amount = "double"
n = "long"
price = "decimal(9,2)"
[[metrics]]
sql = """SELECT count(*) AS n7, sum(amount) AS s7, sum(n) AS l7, sum(price) AS p7 FROM payments
         GROUP BY card OVER SLIDING 7 DAYS"""
[[metrics]]
sql = "SELECT count(*) AS everyone FROM payments OVER INFINITE"
'''
EVENTS = "/v1/streams/payments/events"
NDJSON = {"Content-Type": "application/x-ndjson"}


@pytest.fixture(scope="module")
def payments(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with server(tmp_path_factory.mktemp("payments") / "data") as running:
        running.define(PAYMENTS)
        yield running


NEXT = iter(range(10**9))


def event(**more: Any) -> dict[str, Any]:
    number = next(NEXT)
    found = {"tx_id": f"t{number}", "ts": int(time.time() * 1000), "card": f"c{number}", "amount": 1.5}
    return found | more


def lines(*events: Any) -> bytes:
    return b"".join(
        (each if isinstance(each, bytes) else json.dumps(each).encode()) + b"\n" for each in events
    )


def test_an_event(payments: Server) -> None:
    sent = event(n=2**62, price="12.30")
    reply = payments.score("payments", sent)
    assert reply["id"] == sent["tx_id"]
    assert reply["time"] == sent["ts"]
    assert {name: reply["metrics"][name] for name in ("n7", "s7", "l7", "p7")} == {
        "n7": 1,
        "s7": 1.5,
        "l7": 2**62,
        "p7": "12.30",
    }
    assert list(reply) == ["id", "time", "metrics"]
    assert list(reply["metrics"]) == ["n7", "s7", "l7", "p7", "everyone"]


def test_long_sums_are_exact_integers(payments: Server) -> None:
    card = event()["card"]
    for expected in (2**63 - 1, 2**64 - 2, 3 * 2**63 - 3):
        response = payments.post(EVENTS, event(card=card, n=2**63 - 1))
        assert json.loads(response.content)["metrics"]["l7"] == expected


@pytest.mark.parametrize("count", [1, 3, 200])
def test_an_array_with_bad_events(payments: Server, count: int) -> None:
    card = event()["card"]
    good = [event(card=card) for _ in range(count)]
    sent: list[Any] = [{"tx_id": 7}, *good, 5]
    answers = payments.score("payments", sent)
    assert [answer["status"] for answer in (answers[0], answers[-1])] == [422, 422]
    assert [each["loc"] for each in answers[0]["errors"]] == [["tx_id"], ["ts"]]
    assert [answer["metrics"]["n7"] for answer in answers[1:-1]] == list(range(1, count + 1))
    assert [answer["id"] for answer in answers[1:-1]] == [each["tx_id"] for each in good]


@pytest.mark.parametrize("count", [1, 3, 200, 3000])
def test_lines_with_bad_ones(payments: Server, count: int) -> None:
    card = event()["card"]
    good = [event(card=card) for _ in range(count)]
    body = lines(b'{"tx_id": ', *good[:1], b"", b'{"ts": 1}', *good[1:]) + b'{"tx_id": "last"'
    response = payments.client.post(EVENTS, content=body, headers=NDJSON)
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/x-ndjson"
    answers = [json.loads(line) for line in response.content.splitlines()]
    assert len(answers) == count + 3
    assert [answers[place]["status"] for place in (0, 2, -1)] == [400, 422, 400]
    assert "byte" in answers[0]["detail"]
    replies = [answer for answer in answers if "metrics" in answer]
    assert [reply["metrics"]["n7"] for reply in replies] == list(range(1, count + 1))
    assert [reply["id"] for reply in replies] == [each["tx_id"] for each in good]


def test_duplicate_and_late(payments: Server) -> None:
    sent = event()
    payments.score("payments", sent)
    again = payments.score("payments", sent)
    assert again["duplicate"] == ["card", "*"]
    assert again["metrics"]["n7"] == 1
    late = payments.score("payments", event(ts=1))
    assert late["late"] == {"card": "rewritten", "*": "rewritten"}
    assert late["time"] == 1


def test_a_null_partitioner_has_null_metrics(payments: Server) -> None:
    reply = payments.score("payments", event(card=None))
    assert reply["metrics"]["n7"] is None
    assert reply["metrics"]["everyone"] >= 1


def test_chosen_metrics(payments: Server) -> None:
    assert list(payments.score("payments", event(), params={"metrics": "everyone,n7"})["metrics"]) == [
        "n7",
        "everyone",
    ]
    response = payments.post(EVENTS, event(), params={"metrics": "n8"})
    assert response.status_code == 422
    assert "n7" in response.json()["detail"]
    assert response.json()["errors"][0]["loc"] == ["query", "metrics"]


@pytest.mark.parametrize(
    "query", ["metric=n7", "reply=some", "timeout_ms=0", "timeout_ms=x", "reply=none&reply=none"]
)
def test_wrong_parameters(payments: Server, query: str) -> None:
    response = payments.post(f"{EVENTS}?{query}", event())
    assert response.status_code == 422
    assert response.json()["errors"][0]["loc"][0] == "query"


def test_receipts(payments: Server) -> None:
    card = event()["card"]
    none = {"reply": "none"}
    response = payments.post(EVENTS, event(card=card), params=none)
    assert (response.status_code, response.json()) == (202, {"accepted": 1, "refused": 0, "problems": []})
    response = payments.post(EVENTS, [event(card=card), {}], params=none)
    assert response.status_code == 202
    assert (response.json()["accepted"], response.json()["refused"]) == (1, 1)
    assert response.json()["problems"][0]["event"] == 1
    response = payments.client.post(
        EVENTS, content=lines(event(card=card), b"x"), params=none, headers=NDJSON
    )
    assert (response.status_code, response.json()["accepted"], response.json()["refused"]) == (202, 1, 1)
    assert payments.post(EVENTS, {}, params=none).status_code == 422
    assert payments.score("payments", event(card=card))["metrics"]["n7"] == 4


def test_nothing_in_it(payments: Server) -> None:
    assert payments.score("payments", []) == []
    response = payments.client.post(EVENTS, content=b"\n \r\n", headers=NDJSON)
    assert (response.status_code, response.content) == (200, b"")


def test_unknown_stream(payments: Server) -> None:
    response = payments.post("/v1/streams/paymets/events", event())
    assert response.status_code == 404
    assert "payments" in response.json()["detail"]
    assert response.headers["content-type"] == "application/problem+json"
