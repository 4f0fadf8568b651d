"""Deepening over HTTP while events are scored: each reply is the old one or the new one, and once new always new."""

import threading
import time
from pathlib import Path

import pyarrow as pa

from railgun.engine.engine import Engine
from railgun.history.plan_file import deepening_folder, read_plan
from railgun.task.settings import TaskSettings
from tests.engine.deepening.deepened import build_deepening
from tests.frontend.conftest import PAYMENTS
from tests.frontend.serving import PATIENCE_S, Server, server

START_MS = 1_700_000_000_000
HISTORY, SCORED = 500, 150
SETTINGS = TaskSettings(chunk_events=64, segment_bytes=1 << 14)
PLACE = "/v1/streams/payments/deepening"


def event(number: int) -> dict[str, object]:
    return {"tx_id": f"e{number}", "ts": START_MS + number * 1000, "card": "a", "n": number}


def history() -> pa.Table:
    rows = [{"amount": 1.0, "price": "1.00", **event(number)} for number in range(-HISTORY, 0)]
    return pa.Table.from_pylist(rows)


def state_of(running: Server) -> dict[str, object]:
    found: dict[str, object] = running.client.get(PLACE).json()
    return found


def test_replies_change_at_one_moment(tmp_path: Path) -> None:
    found: list[int] = []
    ended = threading.Event()

    def score(running: Server) -> None:
        for number in range(SCORED, 100_000):
            found.append(running.score("payments", event(number))["metrics"]["n7"])
            if ended.is_set():
                return

    with server(
        tmp_path, open_engine=lambda: Engine(tmp_path, durability="os", settings=SETTINGS)
    ) as running:
        running.define(PAYMENTS)
        for number in range(SCORED):
            running.score("payments", event(number))
        assert state_of(running)["state"] == "none"
        assert running.post(PLACE + "/install").status_code == 409
        too_early = running.post(PLACE, {"cut_ms": START_MS - 1})
        assert (too_early.status_code, "would be missing" in too_early.text) == (409, True)
        assert running.post(PLACE, {"cut_ms": "soon"}).status_code == 422
        begun = running.post(PLACE, {}).json()
        assert (begun["state"], begun["cut_ms"]) == ("building", START_MS + 10_001)
        assert running.post(PLACE, {}).json()["history"] == begun["history"]
        plan = read_plan(deepening_folder(tmp_path, "payments"))
        assert plan is not None
        scoring = threading.Thread(target=score, args=(running,))
        scoring.start()
        try:
            assert running.post(PLACE + "/install").status_code == 202
            wait_for(running, "failed")
            assert "run railgun backfill --deepen" in str(state_of(running)["failure"])
            build_deepening(tmp_path / "backfill" / "payments" / "tasks", plan, history(), SETTINGS)
            assert running.post(PLACE + "/install").status_code == 202
            wait_for(running, "none")
            (newest, *_) = running.client.get("/v1/log").json()["changes"]
            assert (newest["kind"], newest["from"]) == ("deepen", "127.0.0.1")
            assert newest["what"] == f"deepened, history {begun['history']}"
        finally:
            ended.set()
            scoring.join()
        assert state_of(running) == {
            "state": "none", "history": begun["history"], "cut_ms": None, "behind": 0, "failure": None,
        }  # fmt: skip
        assert running.client.delete(PLACE).status_code == 204
    old = list(range(SCORED + 1, SCORED + 1 + len(found)))
    switch = next(place for place, value in enumerate(found) if value != old[place])
    assert found == old[:switch] + [value + HISTORY for value in old[switch:]]


def wait_for(running: Server, wanted: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while state_of(running)["state"] != wanted:
        assert time.monotonic() < deadline, state_of(running)
        time.sleep(0.02)
