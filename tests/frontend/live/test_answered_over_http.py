"""Shares of nulls in `/v1/live`, and what a metric was answered lately, of a running server."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from railgun.client.client import Client
from railgun.config.settings import ConsoleSettings
from tests.frontend.access.callers import FOREIGN, bearer, secret
from tests.frontend.conftest import PAYMENTS
from tests.frontend.serving import Server, server, until

PLACE = "/v1/streams/payments"
Event = Callable[..., dict[str, Any]]


def shares(running: Server, name: str = "all") -> dict[str, float]:
    found = running.client.get("/v1/live", headers={"Authorization": bearer(name)}).json()["streams"]
    (nulls,) = [each["nulls"] for each in found if each["name"] == "payments"]
    return {} if nulls is None else dict(nulls["shares"])


def lately(running: Server, name: str) -> dict[str, Any]:
    response = running.client.get(f"{PLACE}/metrics/{name}/answered")
    assert response.status_code == 200, response.text
    return dict(response.json())


def test_single_events_arrays_and_lines(running: Server, event: Event) -> None:
    """Of what was asked for. An event without an amount has a sum that is null."""
    assert shares(running) == {}
    card = event(card="one", amount=None)
    running.score("payments", card)
    running.post(f"{PLACE}/events?metrics=n7", [event(card="one"), event(card="one")])
    lines = b'{"tx_id": "l1", "ts": 1700000000000, "card": "two"}\n'
    sent = running.client.post(
        f"{PLACE}/events", content=lines, headers={"Content-Type": "application/x-ndjson"}
    )
    assert sent.status_code == 200
    until(lambda: lately(running, "n7")["rows"] == 4)
    found = shares(running)
    assert found["n7"] == 0
    assert (found["s7"], lately(running, "s7")["rows"]) == (1, 2)
    assert lately(running, "n7")["front_end"] == running.client.get("/v1/live").json()["front_end"]
    assert lately(running, "n7")["histogram"][0] == {"from": 1, "to": 1, "count": 2}
    assert shares(running, "read-own") == found
    with Client(str(running.client.base_url), token=secret("inspect-own")) as client:
        assert client.answered("payments", "n7") == lately(running, "n7")


def test_what_is_refused_or_wants_no_reply_has_no_values(running: Server, event: Event) -> None:
    before = lately(running, "everyone")["rows"]
    for _ in range(3):
        sent = running.post(f"{PLACE}/events?reply=none", [event() for _ in range(100)])
        assert sent.status_code == 202
    running.post(f"{PLACE}/events", [event(n="x"), event()])
    until(lambda: lately(running, "everyone")["rows"] == before + 1)


def test_a_metric_that_is_not_there(running: Server) -> None:
    for place, status, said in (
        (f"{PLACE}/metrics/n8/answered", 404, "no metric 'n8' of payments"),
        ("/v1/streams/payment/metrics/n7/answered", 404, "did you mean payments?"),
        (f"{PLACE}/metrics/n7/answered?limit=1", 422, "limit"),
    ):
        response = running.client.get(place)
        assert (response.status_code, said in response.json()["detail"]) == (status, True), response.text


def test_scopes(running: Server) -> None:
    place = f"{PLACE}/metrics/n7/answered"
    for name, status in (("read-own", 403), ("define-own", 403), ("metrics", 403), ("inspect-own", 200)):
        response = running.client.get(place, headers={"Authorization": bearer(name)})
        assert response.status_code == status
    assert (
        "inspect:payments"
        in running.client.get(place, headers={"Authorization": bearer("read-own")}).json()["detail"]
    )
    foreign = running.client.get(
        f"/v1/streams/{FOREIGN}/metrics/n/answered", headers={"Authorization": bearer("inspect-own")}
    )
    assert foreign.status_code == 403


def test_of_masked_metrics_nothing_is_shown(tmp_path: Path, event: Event) -> None:
    """Those that group by the card; `everyone` does not."""
    with server(tmp_path / "data", console=ConsoleSettings(masks=("payments.card",))) as masked:
        masked.define(PAYMENTS)
        masked.score("payments", event())

        def shares() -> dict[str, float]:
            (found,) = masked.client.get("/v1/live").json()["streams"]
            return {} if found["nulls"] is None else dict(found["nulls"]["shares"])

        until(lambda: shares() == {"everyone": 0})
        found = lately(masked, "n7")
        assert (found["masked"], found["rows"], found["histogram"]) == (True, 0, None)
        assert lately(masked, "everyone")["rows"] == 1
