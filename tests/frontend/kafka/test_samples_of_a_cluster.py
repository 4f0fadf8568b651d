"""The last events of a stream on Kafka: those of an input topic lie in their reader's ring, with those of HTTP."""

import json
from pathlib import Path
from typing import Any

from railgun.config.settings import ConsoleSettings
from tests.frontend.kafka.cluster import LocalCluster, RunningFrontEnd
from tests.frontend.serving import until
from tests.frontend.topics.input_topic import InputTopic
from tests.frontend.topics.test_input_topic import define

STREAM = """
[streams.payments]
time = "ts"
id = "pid"
partitioners = ["card", "*"]
[streams.payments.output]
include = ["shop"]
[streams.payments.fields]
pid = "string"
ts = "timestamp"
card = "string"
shop = { type = "string", from = "at.shop" }
source = { type = "string", from = "@header.source" }
bin = { as = "SUBSTR(card, 1, 2)" }
[[metrics]]
sql = "SELECT count(*) AS n FROM payments GROUP BY card OVER SLIDING 1 DAY"
[[metrics]]
sql = "SELECT count(*) AS all_n FROM payments OVER INFINITE"
[[metrics]]
sql = "DERIVE n / all_n AS share FROM payments"
"""
T = 1_700_000_000_000


def event(number: int) -> dict[str, Any]:
    return {"pid": f"p{number}", "ts": T + number, "card": "4111", "at": {"shop": "s1"}}


def samples(served: RunningFrontEnd) -> dict[str, Any]:
    response = served.client.get("/v1/streams/payments/samples")
    assert response.status_code == 200, response.text
    return dict(response.json())


def served(cluster: LocalCluster, **settings: Any) -> RunningFrontEnd:
    return cluster.serve(console=ConsoleSettings(**{"samples": 100, **settings}))


def test_an_event_of_an_input_topic_lies_in_its_readers_ring(kafka: str, tmp_path: Path) -> None:
    with LocalCluster(kafka, tmp_path) as cluster:
        define(cluster, STREAM)
        cluster.start_units(1)
        with InputTopic(cluster.broker, cluster.prefix, "payments") as topic:
            reader = served(cluster)
            topic.send([event(1)], headers=[("source", b"till")])
            topic.await_replies(1)
            until(lambda: len(samples(reader)["events"]) == 1)
            reader.score("payments", event(2))
            topic.send([b"{", event(1)])
            topic.await_replies(2)
            until(lambda: len(samples(reader)["events"]) == 3)
            found = samples(reader)
            other = served(cluster)
            assert other.client.get("/v1/streams/payments/samples").json()["events"] == []
    again, over_http, first = found["events"]
    assert (first["topic"], first["partition"], first["offset"]) == (topic.input, 0, 0)
    assert first["fields"] == {
        "pid": "p1",
        "ts": T + 1,
        "card": "4111",
        "shop": "s1",
        "source": "till",
        "bin": "41",
    }
    assert first["reply"] == {"id": "p1", "time": T + 1, "metrics": {"n": 1, "all_n": 1, "share": 1.0}}
    assert first["text"] is first["problem"] is None
    assert first["size_bytes"] == len(json.dumps(first["fields"], separators=(",", ":")))
    assert (over_http["topic"], over_http["reply"]["id"]) == (None, "p2")
    # The record that is no event has a dead letter instead.
    assert (again["offset"], again["reply"]["duplicate"]) == (2, ["card", "*"])
    assert found["derived"]["share"]["reads"] == ["n", "all_n"]


def test_a_mask_covers_what_a_topic_has(kafka: str, tmp_path: Path) -> None:
    with LocalCluster(kafka, tmp_path) as cluster:
        define(cluster, STREAM)
        cluster.start_units(1)
        with InputTopic(cluster.broker, cluster.prefix, "payments") as topic:
            reader = served(cluster, masks=("payments.card", "payments.pid"))
            topic.send([event(1)])
            topic.await_replies(1)
            until(lambda: len(samples(reader)["events"]) == 1)
            (found,) = samples(reader)["events"]
    assert "4111" not in json.dumps(found)
    assert "p1" not in json.dumps(found)
    assert found["fields"] == {"ts": T + 1, "shop": "s1", "source": None}
    assert found["reply"] == {"id": None, "time": T + 1, "metrics": {"all_n": 1}}


def test_many_events_of_a_topic_leave_some(kafka: str, tmp_path: Path) -> None:
    with LocalCluster(kafka, tmp_path) as cluster:
        define(cluster, STREAM)
        cluster.start_units(1)
        with InputTopic(cluster.broker, cluster.prefix, "payments") as topic:
            reader = served(cluster, samples=30)
            topic.send([event(number) for number in range(2_000)])
            topic.await_replies(2_000)
            until(lambda: samples(reader)["last"] > 0)
            found = samples(reader)["events"]
    assert 0 < len(found) <= 30
    ids = [int(each["reply"]["id"][1:]) for each in found]
    assert ids == sorted(ids, reverse=True)
