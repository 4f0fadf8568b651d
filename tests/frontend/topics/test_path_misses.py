"""In which share of a topic's records the paths of fields meet nothing."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from frontend.topics import path_misses
from frontend.topics.path_misses import PathMisses
from railgun.ingest.intake import EventText, ParsedEvent, RecordEvent
from railgun.wire.finding import EventRecord
from railgun.wire.path import parse_path
from railgun.wire.schema import LONG, STRING, TIMESTAMP, Field, Schema
from tests.frontend.kafka.cluster import LocalCluster, define
from tests.frontend.serving import until
from tests.frontend.topics.input_topic import InputTopic
from tests.frontend.topics.test_named_topics import scraped

SCHEMA = Schema(
    1,
    (
        Field("plain", STRING),
        Field("deep", LONG, parse_path("a.b[1]")),
        Field("key", STRING, parse_path("@key")),
        Field("origin", STRING, parse_path("@header.origin")),
        Field("stamp", TIMESTAMP, parse_path("@timestamp")),
    ),
)
_RECORD = EventRecord(b"k", {"origin": b"o"}, 1)


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call looks at a record."""
    monkeypatch.setattr(path_misses, "_PAUSE_S", 0.0)
    monkeypatch.setattr(path_misses, "_SHARE", 0)


def missed(text: EventText) -> set[str] | None:
    """The fields whose paths met nothing; None if the record was not counted."""
    found = PathMisses()
    found.look("t", [text], SCHEMA)
    assert found.shares("t") == {name: 1.0 for _, name in found.missed}
    return {name for _, name in found.missed} if found.sampled["t"] else None


def text(event: object) -> bytes:
    return json.dumps(event).encode()


@pytest.mark.parametrize(
    ("event", "found"),
    [
        ({"a": {"b": [0, 1]}}, set()),
        ({"a": {"b": [0, "no number"]}}, set()),
        # Something is in the way: the record is refused for it.
        ({"a": "x"}, set()),
        ({"a": {"b": [0, None]}}, {"deep"}),
        ({"a": {"b": [0]}}, {"deep"}),
        ({"a": None}, {"deep"}),
        ({"plain": "x"}, {"deep"}),
        ([], None),
    ],
)
def test_what_paths_meet_in_documents(event: Any, found: set[str] | None) -> None:
    assert missed(RecordEvent(text(event), _RECORD)) == found
    if isinstance(event, Mapping):
        assert missed(RecordEvent(ParsedEvent(event, 0), _RECORD)) == found


@pytest.mark.parametrize(
    ("record", "found"),
    [
        (EventRecord(None, {"origin": b"o"}, 1), {"key"}),
        (EventRecord(b"", {"origin": b""}, 0), set()),
        (EventRecord(b"k", {"origin": None}, 1), {"origin"}),
        (EventRecord(b"k", {"other": b"o"}), {"origin", "stamp"}),
        (EventRecord(b"k"), {"origin", "stamp"}),
    ],
)
def test_what_paths_meet_in_records(record: EventRecord, found: set[str]) -> None:
    assert missed(RecordEvent(text({"a": {"b": [0, 1]}}), record)) == found


def test_what_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    assert missed(b"no JSON") is None
    assert missed(b"[" * 2_000) is None
    found = PathMisses()
    found.look("t", [], SCHEMA)
    found.look("t", [b"{}"], Schema(1, SCHEMA.fields[:1]))
    assert (found.sampled["t"], found.shares("t")) == (0, {})
    monkeypatch.setattr(path_misses, "_PAUSE_S", 60.0)
    for _ in range(3):
        found.look("t", [b"{}"] * 100, SCHEMA)
    assert found.sampled["t"] == 1


def test_shares_are_of_the_newest_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(path_misses, "_NEWEST", 4)
    found = PathMisses()
    for _ in range(8):
        found.look("t", [RecordEvent(b"{}", _RECORD)], SCHEMA)
    for _ in range(3):
        found.look("t", [RecordEvent(text({"a": {"b": [0, 1]}}), _RECORD)], SCHEMA)
    assert found.shares("t") == {"deep": 0.25}
    assert (found.sampled["t"], found.missed["t", "deep"]) == (11, 8)


DEFINITIONS = """
[streams.s]
partitioners = ["card"]
[streams.s.fields]
card = "string"
amount = { type = "long", from = "payment.amount" }
shop = { type = "string", from = "payment.shop" }
[[metrics]]
sql = "SELECT sum(amount) AS spent FROM s GROUP BY card OVER INFINITE"
"""


def test_shares_in_status_and_metrics(kafka: str, tmp_path: Path) -> None:
    with LocalCluster(kafka, tmp_path) as cluster, InputTopic(kafka, cluster.prefix, "s") as topic:
        served = cluster.serve()
        define(served.client, DEFINITIONS)
        cluster.start_units(1)
        for n in range(1, 13):
            payment = {"shop": "x"} if n % 2 else {"amount": 1, "shop": "x"}
            topic.send([{"card": "c", "payment": payment}])
            # They are read one by one.
            topic.await_replies(n)
        labels = f'stream="s",topic="{topic.input}"'
        until(lambda: scraped(served, f"railgun_input_sampled_records_total{{{labels}}}") == "12.0")
        # The labels are in the order of their names.
        sample = f'railgun_input_path_misses_total{{field="amount",{labels}}}'
        assert scraped(served, sample) == "6.0"
        assert "shop" not in served.client.get("/metrics").text
        (stream,) = served.client.get("/v1/status").json()["streams"]
        assert stream["input"][0]["missed"] == {"amount": 0.5}
