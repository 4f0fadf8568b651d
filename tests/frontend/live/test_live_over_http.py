"""`GET /v1/live` of a running server that scores in its own process."""

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import railgun
from frontend.live import models
from railgun.engine.engine import Engine
from tests.frontend.access.callers import FOREIGN, OWN, bearer
from tests.frontend.conftest import PAYMENTS, Payments
from tests.frontend.serving import Server, server, until

EVENTS = "/v1/streams/payments/events"


def live(running: Server, name: str = "all") -> dict[str, Any]:
    response = running.client.get("/v1/live", headers={"Authorization": bearer(name)})
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/json"
    found: dict[str, Any] = response.json()
    assert models.Live.model_validate(found).model_dump(exclude_unset=True) == found
    return found


def stream(running: Server, name: str) -> dict[str, Any]:
    (found,) = [each for each in live(running)["streams"] if each["name"] == name]
    return dict(found)


def test_it_shows_what_clients_saw(running: Server, event: Callable[..., dict[str, Any]]) -> None:
    own = event()
    running.post(EVENTS, [own, own, event(n="x")])
    for _ in range(5):
        running.score("payments", event())
    running.client.post(EVENTS, content=b"{", headers={"content-type": "application/json"})

    def window() -> dict[str, Any]:
        return dict(stream(running, "payments")["http"]["last_60_s"])

    until(lambda: window()["latency"]["count"] >= 7)
    found = window()
    assert found["events"] == 7
    assert found["events_per_s"] > 0
    assert found["duplicate"] == {"card": 1, "*": 1}
    assert found["refused"] == {"invalid": 1, "malformed": 1}
    # One array, five events and one that was no JSON.
    latency = found["latency"]
    assert latency["count"] == 7
    assert 0 < latency["p50_ms"] <= latency["p99_ms"] <= latency["p999_ms"]


def test_it_shows_the_process(running: Server) -> None:
    found = live(running)
    process = found["process"]
    assert (process["release"], process["ready"], process["waiting"]) == (railgun.__version__, True, None)
    # The disk may take longer to be looked at than an answer waits.
    until(lambda: live(running)["process"]["disk"] is not None)
    assert live(running)["process"]["disk"]["free_bytes"] > 0
    assert found["cluster"] is None
    assert found["front_end"]["name"] == running.backend.live_figures.name
    assert found["front_end"]["started_ms"] <= found["as_of_ms"]
    assert live(running)["front_end"] == found["front_end"]


def test_a_stream_whose_metrics_are_warm(running: Server) -> None:
    until(lambda: (stream(running, "payments")["warming"] or {}).get("count") == 0)
    found = stream(running, "payments")
    assert (found["metrics"], found["topics"], found["unanswered"], found["warnings"]) == (5, None, 0, [])


def test_warming_metrics_are_shown_with_what_is_derived_of_them(
    tmp_path: Path, event: Callable[..., dict[str, Any]]
) -> None:
    def opening() -> Engine:
        return Engine(tmp_path / "data", durability="os", may_warm=lambda warm: warm.name != "slow")

    with server(tmp_path / "data", open_engine=opening) as running:
        running.define(PAYMENTS)
        running.score("payments", event())
        for sql in (
            "SELECT count(*) AS slow FROM payments OVER INFINITE",
            "DERIVE slow + 1 AS slower FROM payments",
            "DERIVE n7 + 1 AS quick FROM payments",
        ):
            assert running.post("/v1/streams/payments/metrics", {"sql": sql}).status_code == 201

        def warming() -> dict[str, Any]:
            (found,) = running.client.get("/v1/live").json()["streams"]
            assert found["metrics"] == 8
            return dict(found["warming"] or {"count": 0, "least": []})

        # It has read all there is, and is not let answer.
        until(lambda: [each["filled"] for each in warming()["least"]] == [1.0, 1.0])
        assert {each["name"] for each in warming()["least"]} == {"slow", "slower"}
        assert warming()["count"] == 2


def test_times_that_look_like_seconds_are_warned_of(
    tmp_path: Path, event: Callable[..., dict[str, Any]]
) -> None:
    with server(tmp_path / "data") as running:
        running.define(PAYMENTS)
        running.score("payments", event(ts=1_700_000_000))

        def warnings() -> list[str]:
            return list(running.client.get("/v1/live").json()["streams"][0]["warnings"])

        until(lambda: bool(warnings()))
        assert warnings()[0].startswith("the time 1700000000 of an event is 1970-01-20")


def test_a_token_of_one_stream(running: Server) -> None:
    """Nothing of another stream is in the answer, nor of the process."""
    said = live(running, "read-own")
    assert [each["name"] for each in said["streams"]] == [OWN]
    assert FOREIGN not in json.dumps(said)
    assert set(said) == {"front_end", "as_of_ms", "streams"}
    assert [each["name"] for each in live(running, "read-all")["streams"]] == [OWN, FOREIGN]
    assert live(running, "score-all")["streams"] == live(running, "metrics")["streams"] == []
    assert "process" in live(running, "metrics")


def test_it_is_refused(running: Server) -> None:
    for headers in ({"Authorization": ""}, {"Authorization": bearer("expired")}):
        assert running.client.get("/v1/live", headers=headers).status_code == 401
    response = running.client.get("/v1/live?stream=payments")
    assert (response.status_code, response.json()["detail"]) == (
        422,
        "stream: there is no such parameter; this route takes none",
    )
    assert running.client.post("/v1/live").status_code == 405
    assert running.client.head("/v1/live").content == b""


def test_a_stream_comes_and_goes(running: Server) -> None:
    running.define('[streams.passing]\n[streams.passing.fields]\na = "string"\n')
    until(lambda: any(each["name"] == "passing" for each in live(running)["streams"]))
    running.score("passing", {"a": "x"})
    until(lambda: stream(running, "passing")["http"]["last_10_s"]["events"] == 1)
    assert running.client.delete("/v1/streams/passing").status_code == 204
    until(lambda: all(each["name"] != "passing" for each in live(running)["streams"]))


def test_the_client_has_it(running: Server) -> None:
    token = bearer("read-own").removeprefix("Bearer ")
    with railgun.Client(running.service.url, token=token) as client:
        assert [each["name"] for each in client.live()["streams"]] == [OWN]


def test_it_answers_while_the_server_starts(tmp_path: Path) -> None:
    """The console is looked at then most of all."""
    hold = threading.Event()
    payments = Payments(tmp_path / "data")

    def opening() -> Any:
        assert hold.wait(60.0)
        return payments.engine()

    with server(tmp_path / "data", open_engine=opening, wait=False) as running:
        try:
            found = running.client.get("/v1/live").json()
            assert (found["process"]["ready"], found["streams"]) == (False, [])
            assert found["process"]["reason"].startswith("starting")
        finally:
            hold.set()
        until(lambda: bool(running.client.get("/v1/live").json()["process"]["ready"]))
