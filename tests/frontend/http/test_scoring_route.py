"""Events over HTTP: single ones, arrays, lines; partial failure; options; receipts."""

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from tests.frontend.conftest import Payments
from tests.frontend.serving import Server

EVENTS = "/v1/streams/payments/events"
NDJSON = {"Content-Type": "application/x-ndjson"}


Event = Callable[..., dict[str, Any]]


def lines(*events: Any) -> bytes:
    return b"".join(
        (each if isinstance(each, bytes) else json.dumps(each).encode()) + b"\n" for each in events
    )


def test_an_event(shared: Server, event: Event) -> None:
    sent = event(n=2**62, price="12.30")
    reply = shared.score("payments", sent)
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


def test_long_sums_are_exact_integers(shared: Server, event: Event) -> None:
    card = event()["card"]
    for expected in (2**63 - 1, 2**64 - 2, 3 * 2**63 - 3):
        response = shared.post(EVENTS, event(card=card, n=2**63 - 1))
        assert json.loads(response.content)["metrics"]["l7"] == expected


@pytest.mark.parametrize("count", [1, 3, 200])
def test_an_array_with_bad_events(shared: Server, event: Event, count: int) -> None:
    card = event()["card"]
    good = [event(card=card) for _ in range(count)]
    sent: list[Any] = [{"tx_id": 7}, *good, 5]
    answers = shared.score("payments", sent)
    assert [answer["status"] for answer in (answers[0], answers[-1])] == [422, 422]
    assert [each["loc"] for each in answers[0]["errors"]] == [["tx_id"], ["ts"]]
    assert [answer["metrics"]["n7"] for answer in answers[1:-1]] == list(range(1, count + 1))
    assert [answer["id"] for answer in answers[1:-1]] == [each["tx_id"] for each in good]


@pytest.mark.parametrize("count", [1, 3, 200, 3000])
def test_lines_with_bad_ones(shared: Server, event: Event, count: int) -> None:
    card = event()["card"]
    good = [event(card=card) for _ in range(count)]
    body = lines(b'{"tx_id": ', *good[:1], b"", b'{"ts": 1}', *good[1:]) + b'{"tx_id": "last"'
    response = shared.client.post(EVENTS, content=body, headers=NDJSON)
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/x-ndjson"
    answers = [json.loads(line) for line in response.content.splitlines()]
    assert len(answers) == count + 3
    assert [answers[place]["status"] for place in (0, 2, -1)] == [400, 422, 400]
    assert "byte" in answers[0]["detail"]
    replies = [answer for answer in answers if "metrics" in answer]
    assert [reply["metrics"]["n7"] for reply in replies] == list(range(1, count + 1))
    assert [reply["id"] for reply in replies] == [each["tx_id"] for each in good]


def test_duplicate_and_late(shared: Server, event: Event) -> None:
    sent = event()
    shared.score("payments", sent)
    again = shared.score("payments", sent)
    assert again["duplicate"] == ["card", "*"]
    assert again["metrics"]["n7"] == 1
    late = shared.score("payments", event(ts=1))
    assert late["late"] == {"card": "rewritten", "*": "rewritten"}
    assert late["time"] == 1


def test_a_null_partitioner_has_null_metrics(shared: Server, event: Event) -> None:
    reply = shared.score("payments", event(card=None))
    assert reply["metrics"]["n7"] is None
    assert reply["metrics"]["everyone"] >= 1


def test_chosen_metrics(shared: Server, event: Event) -> None:
    assert list(shared.score("payments", event(), params={"metrics": "everyone,n7"})["metrics"]) == [
        "n7",
        "everyone",
    ]
    response = shared.post(EVENTS, event(), params={"metrics": "n8"})
    assert response.status_code == 422
    assert "n7" in response.json()["detail"]
    assert response.json()["errors"][0]["loc"] == ["query", "metrics"]


@pytest.mark.parametrize(
    "query", ["metric=n7", "reply=some", "timeout_ms=0", "timeout_ms=x", "reply=none&reply=none"]
)
def test_wrong_parameters(shared: Server, event: Event, query: str) -> None:
    response = shared.post(f"{EVENTS}?{query}", event())
    assert response.status_code == 422
    assert response.json()["errors"][0]["loc"][0] == "query"


@pytest.mark.parametrize("value", ["half", "", "Partial", "none"])
def test_another_way_after_a_timeout_is_refused_with_those_that_there_are(
    shared: Server, event: Event, value: str
) -> None:
    for sent in (event(), [event()]):
        response = shared.post(EVENTS, sent, params={"on_timeout": value})
        assert response.status_code == 400
        assert response.json()["detail"] == f"on_timeout: {value!r} is neither error nor partial"
        assert response.json()["errors"][0]["loc"] == ["query", "on_timeout"]


def test_one_engine_has_all_results_or_none(payments: Payments, event: Event) -> None:
    """An event passes all of its tasks together: there is never a part of its results."""
    with payments.serve() as running:
        for value in ("error", "partial"):
            assert running.post(EVENTS, event(), params={"on_timeout": value}).json().keys() == {
                "id",
                "time",
                "metrics",
            }
        payments.gate.shut()
        try:
            query = {"on_timeout": "partial", "timeout_ms": 100}
            late = running.post(EVENTS, event(), params=query)
            several = running.post(EVENTS, [event(), event(card=None)], params=query)
        finally:
            payments.gate.open()
        assert (late.status_code, late.json()["partitioners"]) == (504, ["card", "*"])
        assert [(each["status"], each["partitioners"]) for each in several.json()] == [
            (504, ["card", "*"]),
            (504, ["*"]),
        ]


def test_of_a_key_that_is_there_twice_the_last_value_counts(shared: Server, event: Event) -> None:
    def doubled(sent: dict[str, Any]) -> bytes:
        before = {"tx_id": "other", "card": "other", "amount": "none", "n": None, "price": "0.01"}
        return (
            json.dumps(before).encode()[:-1]
            + b", "
            + json.dumps(sent | {"n": 2, "price": "1.50"}).encode()[1:]
        )

    # Three ways to read them: with a value to be refused, single ones that are all right, and many together.
    for count, amount in ((1, b'"none"'), (1, b"7.5"), (300, b"7.5")):
        sent = [event(card=f"twice {count} {amount.decode()}") for _ in range(count)]
        body = b"".join(doubled(each).replace(b'"none"', amount) + b"\n" for each in sent)
        response = shared.client.post(EVENTS, content=body, headers=NDJSON)
        replies = [json.loads(line) for line in response.content.splitlines()]
        assert [each["id"] for each in replies] == [each["tx_id"] for each in sent]
        last = replies[-1]["metrics"]
        assert (last["s7"], last["l7"], last["p7"]) == (1.5 * count, 2 * count, f"{Decimal('1.50') * count}")


def test_both_ways_of_replying_are_described(shared: Server, event: Event) -> None:
    described = shared.client.get("/openapi.json").json()["paths"]["/v1/streams/{stream}/events"]["post"]
    (reply,) = [each for each in described["parameters"] if each["name"] == "reply"]
    assert reply["schema"]["enum"] == ["all", "none"]
    (after,) = [each for each in described["parameters"] if each["name"] == "on_timeout"]
    assert after["schema"]["enum"] == ["error", "partial"]
    assert shared.post(EVENTS, event(), params={"reply": "all"}).json()["metrics"]["n7"] == 1


def test_receipts(shared: Server, event: Event) -> None:
    card = event()["card"]
    none = {"reply": "none"}
    response = shared.post(EVENTS, event(card=card), params=none)
    assert (response.status_code, response.json()) == (202, {"accepted": 1, "refused": 0, "problems": []})
    response = shared.post(EVENTS, [event(card=card), {}], params=none)
    assert response.status_code == 202
    assert (response.json()["accepted"], response.json()["refused"]) == (1, 1)
    assert response.json()["problems"][0]["event"] == 1
    response = shared.client.post(EVENTS, content=lines(event(card=card), b"x"), params=none, headers=NDJSON)
    assert (response.status_code, response.json()["accepted"], response.json()["refused"]) == (202, 1, 1)
    assert shared.post(EVENTS, {}, params=none).status_code == 422
    assert shared.score("payments", event(card=card))["metrics"]["n7"] == 4


def test_nothing_in_it(shared: Server, event: Event) -> None:
    assert shared.score("payments", []) == []
    response = shared.client.post(EVENTS, content=b"\n \r\n", headers=NDJSON)
    assert (response.status_code, response.content) == (200, b"")


def test_unknown_stream(shared: Server, event: Event) -> None:
    response = shared.post("/v1/streams/paymets/events", event())
    assert response.status_code == 404
    assert "payments" in response.json()["detail"]
    assert response.headers["content-type"] == "application/problem+json"
