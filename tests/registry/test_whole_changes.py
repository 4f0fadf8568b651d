"""Followers of a cluster's catalogue see the changes of a request together, once they are done, or not at all."""

import threading

import pytest

from railgun.catalog.catalog import Catalog
from railgun.catalog.changes import Change
from railgun.catalog.definitions import stream_with_metrics
from railgun.catalog.stream_reading import stream_from_json
from railgun.messaging.errors import TransportUnavailableError
from railgun.registry.evolution import new_stream
from railgun.registry.follower import Snapshot
from railgun.registry.kafka_registry import KafkaRegistry
from railgun.registry.telling import Telling
from tests.broker.own_topics import own_prefix
from tests.unit.local_units import quick_settings

_METRICS = 20


def new(name: str) -> list[Change]:
    stream = stream_from_json({"name": name, "partitioners": ["card"], "fields": {"card": "string"}})
    queries = [
        f"SELECT count(*) AS m{each} FROM {name} GROUP BY card OVER INFINITE" for each in range(_METRICS)
    ]
    return new_stream(Catalog(), stream_with_metrics(stream, queries))


def test_a_stream_is_seen_with_all_its_metrics(kafka: str) -> None:
    settings, prefix = quick_settings(kafka), own_prefix("r")
    seen: list[dict[str, int]] = []
    all_seen = threading.Event()

    def note(snapshot: Snapshot) -> None:
        seen.append({name: len(entry.metrics) for name, entry in snapshot.catalog.streams.items()})
        if len(seen[-1]) == 3:
            all_seen.set()

    with KafkaRegistry(settings, prefix) as writer, KafkaRegistry(settings, prefix) as reader:
        reader.follow(note)
        for name in ("a", "b", "c"):
            writer.change(new(name))
        assert all_seen.wait(30)
    assert [each for each in seen if set(each.values()) - {_METRICS}] == []


def test_a_change_that_its_author_did_not_finish_is_not_seen_before_it_is(
    kafka: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, prefix = quick_settings(kafka), own_prefix("r")

    def fail(self: Telling, *told: object) -> None:
        raise TransportUnavailableError("x", "x", "x")

    with KafkaRegistry(settings, prefix) as writer, KafkaRegistry(settings, prefix) as reader:
        with monkeypatch.context() as patched:
            patched.setattr(Telling, "tell", fail)
            with pytest.raises(TransportUnavailableError):
                writer.change(new("a"))
        found = reader.snapshot()
        assert (len(found.pending), dict(found.catalog.streams)) == (1 + _METRICS, {})
        reader.change(())
        assert len(reader.snapshot().catalog.streams["a"].metrics) == _METRICS
