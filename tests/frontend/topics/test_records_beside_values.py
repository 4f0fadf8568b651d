"""A stream whose id, time and partitioner are in the records of its input topic, beside their values."""

import time
from pathlib import Path

import httpx
import pytest

from frontend.exchange.front_end import FrontEnd
from railgun.catalog.definitions import parse_definitions
from railgun.catalog.stream_reading import definition_to_json
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.registry.topics import Topics
from tests.frontend.kafka.cluster import LocalCluster, define
from tests.frontend.serving import until
from tests.frontend.topics.input_topic import InputTopic, headers_of
from tests.unit.local_units import quick_settings

DEFINITIONS = """
[streams.s]
id = "id"
time = "ts"
partitioners = ["card"]
lateness = "1h"
[streams.s.fields]
id = { type = "long", from = "@header['event-id']" }
ts = { type = "timestamp", from = "@timestamp" }
card = { type = "string", from = "@key" }
amount = { type = "decimal(9,2)", from = "payment.amount" }
[[metrics]]
sql = "SELECT count(*) AS n, sum(amount) AS total FROM s GROUP BY card OVER INFINITE"
"""


def test_keys_headers_and_times_of_records(kafka: str, tmp_path: Path) -> None:
    with LocalCluster(kafka, tmp_path) as cluster, InputTopic(kafka, cluster.prefix, "s") as topic:
        client = cluster.serve().client
        define(client, DEFINITIONS)
        cluster.start_units(1)
        began_ms = time.time_ns() // 1_000_000
        event = {"payment": {"amount": "1.50", "more": [1]}, "more": {}}
        for number in (7, 8, 8):
            # Of two headers of one name the last counts.
            headers = [("event-id", b"1"), ("other", None), ("event-id", b"%d" % number)]
            topic.send([event], key=b"c", headers=headers)
        replies = topic.await_replies(3)
        assert [each["id"] for each in replies] == [7, 8, 8]
        # The topic stamps its records, by the broker's clock.
        times = [each["time"] for each in replies]
        assert began_ms - 1_000 < times[0] <= times[1] <= times[2] <= time.time_ns() // 1_000_000 + 1_000
        assert [each["metrics"]["n"] for each in replies] == [1, 2, 2]
        assert replies[1]["metrics"]["total"] == "3.00"
        assert replies[2]["duplicate"] == ["card"]

        topic.send([event], key=b"\xff", headers=[("event-id", b"9")])
        topic.send([event], key=b"c", headers=[("event-id", b"nine")])
        topic.send([event], key=b"c", headers=[("event-id", None)])
        reasons = [headers_of(each)["reason"] for each in topic.await_letters(3)]
        assert reasons == [
            "@key: it is no UTF-8",
            "@header['event-id']: 'nine' is not a long",
            "@header['event-id']: the id of an event is needed",
        ]

        response = client.post("/v1/streams/s/events", json=event)
        assert response.status_code == 422
        why = "events of s come from its input topic alone: its time ts is the @timestamp of a record"
        assert response.json()["detail"] == why
        lines = client.post(
            "/v1/streams/s/events", content=b"{}\n", headers={"Content-Type": "application/x-ndjson"}
        )
        assert why in lines.text


def test_they_are_refused_until_all_read_them(kafka: str, tmp_path: Path) -> None:
    """A front-end of an earlier release has a reply topic, and says nothing of itself."""
    plain, *_ = DEFINITIONS.partition("amount =")
    stream = definition_to_json(parse_definitions(plain).streams["s"])
    with LocalCluster(kafka, tmp_path) as cluster, KafkaTransport(quick_settings(kafka)) as transport:
        client = cluster.serve().client
        earlier = Topics(cluster.prefix).replies(FrontEnd("earlier").number)
        transport.create_topic(earlier, 1)
        # Fields that only have types are known to all.
        known = {**stream, "name": "plain", "fields": {"id": "long", "ts": "timestamp", "card": "string"}}
        assert client.post("/v1/streams", json=known).status_code == 201
        refused = client.post("/v1/streams", json=stream)
        assert refused.status_code == 409, refused.text
        assert refused.json()["detail"] == (
            "from and unit (here of id, ts, card) are not read by the front-end of the topic "
            f"{earlier} (if it has died, delete the topic) yet; upgrade them, then register this again"
        )
        more = {"fields": {"x": {"type": "long", "from": "a.b"}}}
        assert client.patch("/v1/streams/plain", json=more).status_code == 409
        transport.delete_topic(earlier)
        until(lambda: earlier not in transport.topics())
        assert client.post("/v1/streams", json=stream).status_code == 201
        assert client.patch("/v1/streams/plain", json=more).status_code == 200
        # What is there is no news: it can be changed whoever lives.
        transport.create_topic(earlier, 1)
        assert client.patch("/v1/streams/s", json={"retention": "90d"}).status_code == 200
        assert _fields(client, "s") == stream["fields"]
        assert _fields(client, "plain")["x"] == more["fields"]["x"]


def _fields(client: httpx.Client, stream: str) -> dict[str, object]:
    return dict(client.get(f"/v1/streams/{stream}").json()["fields"])


@pytest.mark.parametrize("count", [1, 100])
def test_python_and_files_are_refused_too(tmp_path: Path, count: int) -> None:
    import railgun
    from railgun.cli.main import main

    with railgun.Engine(tmp_path / "data") as engine:
        engine.apply(DEFINITIONS)
        (before,) = engine.status().streams[0].tasks
        with pytest.raises(railgun.EngineError, match="its time ts is the @timestamp of a record"):
            engine.score_many("s", [{}] * count)
        assert engine.status().streams[0].tasks == (before,)
    (tmp_path / "d.toml").write_text(DEFINITIONS)
    (tmp_path / "e.ndjson").write_text("{}\n" * count)
    arguments = [str(tmp_path / name) for name in ("d.toml", "e.ndjson")]
    assert main(["run", *arguments, "--out", str(tmp_path / "o.csv")]) == 2
