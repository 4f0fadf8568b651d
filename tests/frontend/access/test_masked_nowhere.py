"""What a mask covers is in no answer that people look at, however it was sent: embedded and on Kafka."""

import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from frontend.live import live as live_answers
from railgun.catalog.task_key import TaskKey
from railgun.config.settings import ConsoleSettings
from railgun.wording import time_text
from tests.frontend.kafka.cluster import LocalCluster, RunningFrontEnd
from tests.frontend.serving import Server, load_kernels, server, until
from tests.frontend.topics.input_topic import InputTopic
from tests.frontend.topics.test_input_topic import define

STREAM = """
[streams.payments]
time = "ts"
id = "pid"
partitioners = ["card", "*"]
[streams.payments.fields]
pid = "string"
ts = "timestamp"
card = "string"
amount = "double"
bin = { as = "SUBSTR(card, 1, 6)" }
[[metrics]]
sql = "SELECT count(*) AS n, last(ts) AS latest FROM payments GROUP BY card OVER SLIDING 1 DAY"
[[metrics]]
sql = "SELECT last(card) AS last_card, last(bin) AS last_bin, first(pid) AS first_pid FROM payments OVER INFINITE"
[[metrics]]
sql = "SELECT count(*) AS all_n FROM payments OVER INFINITE"
"""
CARD, PID, TS = "card4711secret", "pid4712secret", 1_712_345_678
"""Secrets. The time looks like seconds since 1970, which is warned of."""
SECRETS = (CARD, CARD[:6], PID, str(TS), "1712345.678", "1.712345678", time_text(TS)[:16])
FOLDER = "/v1/streams/payments"
CONSOLE = ConsoleSettings(samples=100, masks=("payments.card", "payments.pid", "payments.ts"))


def event(**more: Any) -> dict[str, Any]:
    return {"pid": PID, "ts": TS, "card": CARD, "amount": 1.5, **more}


def send(client: httpx.Client) -> None:
    """Send the secrets in events that are good, sent again, refused and malformed, in each way."""

    def post(body: bytes, kind: str = "json") -> int:
        headers = {"content-type": f"application/{kind}"}
        return client.post(f"{FOLDER}/events", content=body, headers=headers).status_code

    good, refused = json.dumps(event()).encode(), json.dumps(event(amount=CARD)).encode()
    assert [post(good), post(good), post(refused)] == [200, 200, 422]
    assert (
        post(b"[" + good + b"," + refused + b"]") == post(good + b"\n" + refused + b"\n{", "x-ndjson") == 200
    )
    for wrong in (good[:-1], b'{"%s": "%d", "pid": ["%s"]}' % (CARD.encode(), TS, PID.encode())):
        assert post(wrong) in (400, 422)


def answers(client: httpx.Client) -> dict[str, str]:
    """Return the texts of what people look at, by name; each file of a support bundle is one."""
    metrics = [each["name"] for each in client.get(f"{FOLDER}/metrics").json()["metrics"]]
    places = (
        "/v1/live",
        f"{FOLDER}/samples",
        f"{FOLDER}/dead",
        FOLDER,
        f"{FOLDER}/metrics",
        f"{FOLDER}/plan",
    )
    found = {
        each: client.get(each) for each in (*places, *(f"{FOLDER}/metrics/{n}/answered" for n in metrics))
    }
    texts = {name: answer.text for name, answer in found.items() if answer.status_code != 409}
    with zipfile.ZipFile(io.BytesIO(client.get("/v1/support").content)) as bundle:
        return texts | {name: bundle.read(name).decode() for name in bundle.namelist()}


def told(texts: Mapping[str, str]) -> dict[str, list[str]]:
    """Return which of the secrets each text tells, where it tells any."""
    found = {name: [each for each in SECRETS if each in text] for name, text in texts.items()}
    return {name: secrets for name, secrets in found.items() if secrets}


def live(running: Server | RunningFrontEnd) -> dict[str, Any]:
    (found,) = running.client.get("/v1/live").json()["streams"]
    return dict(found)


def answered(running: Server | RunningFrontEnd) -> int:
    return sum(live(running)[way]["last_60_s"]["events"] for way in ("http", "topics") if live(running)[way])


def clock_s(running: Server) -> float:
    """Return the clock of the tasks, as they were read last."""
    reading = running.backend.reading()
    return 0.0 if reading is None else max((task.clock_s for task in reading.tasks), default=0.0)


def as_of_ms(running: Server) -> int:
    return int(running.client.get("/v1/live").json()["as_of_ms"])


def test_embedded(tmp_path: Path) -> None:
    load_kernels()
    with server(tmp_path / "data", console=CONSOLE, timeout_ms=60_000) as running:
        running.define(STREAM)
        send(running.client)
        until(lambda: answered(running) == 4 and live(running)["nulls"] is not None)
        # The warnings come with the next reading of the tasks.
        until(lambda: clock_s(running) > 0)
        read_ms = as_of_ms(running)
        until(lambda: as_of_ms(running) > read_ms)
        texts = answers(running.client)
        kept = running.client.get(f"{FOLDER}/samples").json()
    assert len(kept["events"]) >= 7
    assert json.loads(texts["/v1/live"])["streams"][0]["warnings"] == []
    # The clocks of tasks are for who may see `/v1/status`.
    assert told(texts) == {"status.json": [str(TS)], "metrics.txt": ["1.712345678"]}


def test_on_kafka(kafka: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_answers, "CLUSTER_S", 0.2)
    with LocalCluster(kafka, tmp_path) as cluster:
        define(cluster, STREAM)
        cluster.start_units(1)
        with InputTopic(cluster.broker, cluster.prefix, "payments") as topic:
            running = cluster.serve(console=CONSOLE, timeout_ms=60_000)
            send(running.client)
            good = json.dumps(event()).encode()
            topic.send([event(pid=PID + "2"), event(amount=CARD), good[:-1]], key=CARD.encode())
            topic.await_replies(1)
            topic.await_letters(2)
            until(lambda: answered(running) == 5 and live(running)["nulls"] is not None)
            parts = running.backend.running.parts
            assert parts is not None
            gaps = dict.fromkeys(parts.intakes.now.catalog.entry("payments").task_keys, TS)
            monkeypatch.setattr(parts.task_states, "gaps", lambda _: gaps)
            until(lambda: len(live(running)["warnings"]) == len(gaps))
            texts = answers(running.client)
    assert len(json.loads(texts[f"{FOLDER}/dead"])["letters"]) == 2
    assert json.loads(texts["/v1/live"])["streams"][0]["warnings"] == [
        f"{name}-0 lacks events of a gap in its log: windows that reach back to it are partial"
        for name in ("card", "*")
    ]
    assert told(texts) == {}


def test_a_gap_tells_its_time_where_none_is_masked(
    kafka: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_answers, "CLUSTER_S", 0.2)
    with LocalCluster(kafka, tmp_path) as cluster:
        define(cluster, STREAM)
        running = cluster.serve(console=ConsoleSettings(masks=("payments.card",)))
        parts = running.backend.running.parts
        assert parts is not None
        entry = parts.intakes.now.catalog.entry("payments")
        gaps = {TaskKey("payments", entry.created, "card", 0): TS}
        monkeypatch.setattr(parts.task_states, "gaps", lambda _: gaps)
        until(lambda: bool(live(running)["warnings"]))
        (said,) = live(running)["warnings"]
        assert said.endswith(f": windows that begin at or before {time_text(TS)} are partial")
