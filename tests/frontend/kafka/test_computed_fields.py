"""Computed fields on Kafka: refused until all read them, there for older events, and asked for while they change."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from frontend.exchange.front_end import FrontEnd
from frontend.exchange.streams import StreamIntakes
from railgun.cluster.records import READS, FrontEndRecord, encode_statement
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.messaging.transport import Entry, TopicPartition
from railgun.registry.follower import Snapshot
from railgun.registry.topics import Topics
from railgun.wire.records import Records
from tests.frontend.kafka.cluster import LocalCluster, RunningFrontEnd, define
from tests.frontend.serving import until
from tests.unit.local_units import quick_settings

STREAM = """
[streams.s]
time = "t"
id = "id"
partitioners = ["bin", "*"]
partitions = 3
[streams.s.fields]
id = "string"
t = "timestamp"
card = "string"
amount = "long"
bin = { as = "SUBSTR(card, 1, 1)" }
"""
NAME = "last_two"
TWO = {NAME: {"type": "string", "as": "SUBSTR(card, 2, 2)"}}
METRICS = f"SELECT count(*) AS n, sum(amount) AS total, max({NAME}) AS most FROM s GROUP BY bin, {NAME} OVER INFINITE"
ALL_METRICS = (
    f"SELECT count_distinct({NAME}) AS kinds FROM s WHERE {NAME} <> '11' OVER SLIDING 40 MILLISECONDS"
)
DERIVED = f"DERIVE {NAME} || ':' || CAST(n AS string) AS shown FROM s"


def event(number: int) -> dict[str, Any]:
    card = None if number % 7 == 3 else f"{number % 3}{number % 5 // 2}{number % 2}"
    return {
        "id": f"e{number - number % 9 // 8}",
        "t": 1_000 + number,
        "card": card,
        "amount": number,
        NAME: "no",
    }


def changed(front_end: RunningFrontEnd, method: str, path: str, body: Any = None) -> httpx.Response:
    response = front_end.client.request(method, path, json=body)
    assert response.is_success, response.text
    return response


def add_all(front_end: RunningFrontEnd) -> None:
    for sql in (METRICS, ALL_METRICS, DERIVED):
        changed(front_end, "POST", "/v1/streams/s/metrics", {"sql": sql})
    until(
        lambda: (
            not any(
                each["warming"] for each in front_end.client.get("/v1/streams/s/metrics").json()["metrics"]
            )
        )
    )


def asked(front_end: RunningFrontEnd, key: dict[str, Any]) -> dict[str, Any]:
    (found,) = changed(front_end, "POST", "/v1/streams/s/values", {"keys": [key]}).json()
    return dict(found["metrics"])


def test_one_that_is_added_later_equals_one_from_the_beginning(kafka: str, tmp_path: Path) -> None:
    """Also after a restart of the units. Older events have it, as do their fills."""
    found: dict[str, list[Any]] = {"first": [], "later": []}
    for order, replies in found.items():
        with LocalCluster(kafka, tmp_path / order) as cluster:
            front_end = cluster.serve()
            cluster.start_units(2)
            define(front_end.client, STREAM)
            if order == "first":
                changed(front_end, "PATCH", "/v1/streams/s", {"fields": TWO})
                add_all(front_end)
            for number in range(60):
                front_end.score("s", event(number))
            if order == "later":
                changed(front_end, "PATCH", "/v1/streams/s", {"fields": TWO})
                add_all(front_end)
            replies += [front_end.score("s", event(number)) for number in range(58, 100)]
            cluster.stop_units(checkpoint=False)
            cluster.start_units(2)
            replies += [front_end.score("s", event(number)) for number in range(98, 130)]
            replies += [asked(front_end, {"bin": "1", NAME: two}) for two in ("01", "10", None)]
    assert found["first"] == found["later"]
    assert any("duplicate" in each for each in found["later"])
    shown = {each["metrics"].get("shown") for each in found["later"][:-3]}
    assert None in shown
    assert {text.partition(":")[0] for text in shown if text} == {"00", "01", "10", "11", "20", "21"}


def test_it_is_refused_until_all_read_it(kafka: str, tmp_path: Path) -> None:
    """A front-end of an earlier release says that it reads version 2 of the catalogue."""
    plain = {"name": "s", "fields": {"card": "string", "y": {"type": "long", "from": "a.b"}}}
    said = (
        "computed fields (here last_two) are not read by the front-end earlier of 0.0.9 yet; upgrade them, then "
        "register this again"
    )
    with LocalCluster(kafka, tmp_path) as cluster, KafkaTransport(quick_settings(kafka)) as transport:
        client = cluster.serve().client
        topics, earlier = Topics(cluster.prefix), FrontEnd("earlier")
        transport.create_topic(topics.replies(earlier.number), 1)

        def reads(catalog: int) -> None:
            record = FrontEndRecord(
                said_ms=1,
                number=earlier.number,
                name=earlier.name,
                release="0.0.9",
                reads={**READS, "catalog": catalog},
            )
            entry = Entry(
                TopicPartition(topics.nodes, 0), Records.of([encode_statement(record)]), [record.key]
            )
            transport.submit([entry]).result(30)

        reads(2)
        # It reads paths.
        assert client.post("/v1/streams", json=plain).status_code == 201
        for method, path, body in (
            ("POST", "/v1/streams", {**plain, "name": "t", "fields": {**plain["fields"], **TWO}}),  # type: ignore[dict-item]
            ("PATCH", "/v1/streams/s", {"fields": TWO}),
        ):
            refused = client.request(method, path, json=body)
            assert (refused.status_code, refused.json()["detail"]) == (409, said)
        reads(3)
        assert client.patch("/v1/streams/s", json={"fields": TWO}).status_code == 200
        # What is there can be changed, and dropped, whoever lives.
        reads(2)
        assert client.patch("/v1/streams/s", json={"retention": "90d"}).status_code == 200
        assert client.patch("/v1/streams/s", json={"fields": {NAME: None}}).status_code == 200


def test_values_by_a_front_end_that_is_behind(
    kafka: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has read changes that are not done yet: it asks by the version that it knows, and tasks answer by that one."""
    behind: list[StreamIntakes] = []
    follow = StreamIntakes.follow

    def follow_begun(self: StreamIntakes, snapshot: Snapshot) -> None:
        if self in behind:
            self._exchange.read(snapshot.begun)
        else:
            follow(self, snapshot)

    monkeypatch.setattr(StreamIntakes, "follow", follow_begun)
    with LocalCluster(kafka, tmp_path) as cluster:
        late, front_end = cluster.serve(), cluster.serve()
        cluster.start_units(1)
        define(front_end.client, STREAM)
        fields: dict[str, Any] = {"former": {"as": "amount % 2"}, **TWO}
        changed(front_end, "PATCH", "/v1/streams/s", {"fields": fields})
        by_former = "SELECT count(*) AS by_former FROM s GROUP BY bin, former OVER INFINITE"
        add_all(front_end)
        changed(front_end, "POST", "/v1/streams/s/metrics", {"sql": by_former})
        for number in range(20):
            front_end.score("s", event(number))
        until(lambda: late.backend.place == front_end.backend.place)
        key = {"bin": "1", NAME: "01"}
        before = asked(late, key)
        assert before["n"] > 0
        parts = late.backend.running.parts
        assert parts is not None
        behind.append(parts.intakes)
        # The computed fields of a query stand behind the recorded ones: all of their places change.
        changed(front_end, "DELETE", "/v1/streams/s/metrics/by_former")
        changed(front_end, "PATCH", "/v1/streams/s", {"fields": {"former": None, "more": "long"}})
        assert asked(late, key) == asked(front_end, key) == before
        changed(front_end, "PATCH", "/v1/streams/s", {"fields": {"former": {"as": "card || '!'"}}})
        changed(front_end, "POST", "/v1/streams/s/metrics", {"sql": by_former})
        assert asked(late, key) == asked(front_end, key) == before
        # The metric of this name is another one now. It is passed over, and not answered as null.
        assert asked(late, {"bin": "1", "former": 1}).keys() == {"kinds"}
        until(lambda: asked(front_end, {"bin": "1", "former": "111!"})["by_former"] == 2)
