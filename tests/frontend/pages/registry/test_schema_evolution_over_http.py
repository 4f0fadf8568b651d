"""Fifty changes of a stream over HTTP, each seen by the events after it alone; fifty that are refused."""

from pathlib import Path

import httpx
import pytest

from tests.engine.evolution import DEFINITIONS, ILLEGAL, Metrics, Redefined, Settings, play_chain
from tests.frontend.http_player import HttpPlayer
from tests.frontend.serving import Server, server

SEEDS = [1, *(pytest.param(seed, marks=pytest.mark.torture) for seed in range(2, 21))]


@pytest.mark.parametrize("seed", SEEDS)
def test_fifty_steps_over_http(seed: int, tmp_path: Path) -> None:
    player = HttpPlayer(tmp_path / "data", "s")
    try:
        play_chain(player, lambda: list(player.client.get("/v1/streams/s").json()["fields"]), seed)
    finally:
        player.close()


def pending(running: Server, wanted: Redefined | Settings | Metrics) -> httpx.Response:
    match wanted:
        case Redefined():
            return running.post("/v1/streams", wanted.stream)
        case Settings(body):
            return running.client.patch("/v1/streams/s", json=body)
        case Metrics(sql):
            return running.post("/v1/streams/s/metrics", {"sql": sql})


def test_fifty_illegal_changes_over_http(tmp_path: Path) -> None:
    """Each is refused with what is wrong and where, and changes nothing."""
    with server(tmp_path / "data") as running:
        running.define(DEFINITIONS)

        def standing() -> list[bytes]:
            return [running.client.get(f"/v1/streams/s{more}").content for more in ("", "/metrics")]

        before = standing()
        for number, wanted in enumerate(ILLEGAL):
            response = pending(running, wanted)
            assert response.status_code in (409, 422), (number, response.text)
            assert response.headers["content-type"] == "application/problem+json"
            assert response.json()["detail"], number
            assert standing() == before, number
            event = {"id": number, "ts": 1_700_000_000_000 + number, "card": "a"}
            assert running.score("s", event)["metrics"]["n"] == number + 1
