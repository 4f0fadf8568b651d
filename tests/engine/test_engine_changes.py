"""Changes that a crash cuts anywhere are brought to their end when the folder is opened again."""

from collections.abc import Callable
from pathlib import Path

import pytest

import railgun
from railgun.catalog.catalog import Catalog
from railgun.catalog.model import MetricDefinition, StreamDefinition
from railgun.engine.engine_streams import EngineStreams
from railgun.engine.folder import DataFolder
from railgun.engine.live_stream import LiveStream
from railgun.engine.stream_hosts import StreamHosts
from railgun.messaging.embedded.log import EmbeddedLog
from railgun.registry import evolution
from railgun.registry.catalog_log import CatalogLog
from railgun.registry.errors import UnknownNameError
from railgun.wire.records import Records

DEFINITIONS = """
[streams.s]
time = "ts"
id = "id"
partitioners = ["card", "*"]
partitions = 2
[streams.s.fields]
id = "long"
ts = "timestamp"
card = "string"
[[metrics]]
sql = "SELECT count(*) AS n FROM s GROUP BY card OVER INFINITE"
"""


class Crash(Exception):
    """Where the test stops the process."""


def crash(*_: object, **__: object) -> None:
    raise Crash


def half_told(hosts: StreamHosts, those: list, records: Records) -> None:
    """Only the first task gets the records."""
    told(hosts, those[:1], records)
    raise Crash


told = StreamHosts.control


def stopped(
    engine: railgun.Engine, patch: pytest.MonkeyPatch, where: type, name: str, change: Callable
) -> None:
    """A change that stops at a place; the engine is then let go as a dying process would."""
    patch.setattr(where, name, half_told if where is StreamHosts else crash)
    with pytest.raises(Crash):
        change(engine)
    patch.undo()
    engine.close(checkpoint=False)


def cold(folder: Path) -> railgun.Engine:
    """It writes no `warm` record, so that what is stopped is the change itself."""
    return railgun.Engine(folder, may_warm=lambda warm: False)


TELLING = [(LiveStream, "tell"), (StreamHosts, "control"), (CatalogLog, "finish")]


@pytest.mark.parametrize(
    ("where", "name"), [(EngineStreams, "_open"), (EmbeddedLog, "create_topic"), *TELLING]
)
def test_a_new_stream(where: type, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped(railgun.Engine(tmp_path / "d"), monkeypatch, where, name, lambda e: e.apply(DEFINITIONS))
    with railgun.Engine(tmp_path / "d") as engine:
        assert [metric.name for metric in engine.metrics("s")] == ["n"]
        assert engine.apply(DEFINITIONS) == []
        assert engine.score("s", {"id": 1, "ts": 5, "card": "a"})["metrics"] == {"n": 1}


@pytest.mark.parametrize(("where", "name"), TELLING)
def test_a_new_metric_field_and_setting(
    where: type, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "d"
    with railgun.Engine(folder) as engine:
        engine.apply(DEFINITIONS)
        for number in range(6):
            engine.score("s", {"id": number, "ts": 1000 + number, "card": "abc"[number % 3]})
    sql = "SELECT max(ts) AS newest FROM s OVER INFINITE"
    stopped(cold(folder), monkeypatch, where, name, lambda e: e.add_metrics("s", sql, wait=False))
    stopped(cold(folder), monkeypatch, where, name, lambda e: e.add_field("s", "x", "long"))
    stopped(cold(folder), monkeypatch, where, name, lambda e: e.set_lateness("s", "0ms"))
    stopped(cold(folder), monkeypatch, where, name, lambda e: e.drop_metric("s", "n"))
    with railgun.Engine(folder) as engine:
        engine.wait_until_warm("s")
        engine.add_metrics("s", "SELECT last(x) AS x FROM s OVER INFINITE")
        reply = engine.score("s", {"id": 9, "ts": 1004, "card": "c", "x": 7})
        assert reply["metrics"] == {"newest": 1005, "x": 7}
        assert reply["late"] == {"card": "rewritten", "*": "rewritten"}


@pytest.mark.parametrize(
    ("where", "name"),
    [
        (EngineStreams, "_remove"),
        (EmbeddedLog, "delete_topic"),
        (DataFolder, "remove_stream"),
        (CatalogLog, "finish"),
    ],
)
def test_a_dropped_stream(where: type, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "d"
    engine = railgun.Engine(folder)
    engine.apply(DEFINITIONS)
    engine.score("s", {"id": 1, "ts": 5, "card": "a"})
    stopped(engine, monkeypatch, where, name, lambda e: e.drop_stream("s"))
    with railgun.Engine(folder) as engine:
        assert engine.streams() == []
        assert not (folder / "streams" / "s").exists()
        engine.apply(DEFINITIONS)
        assert engine.score("s", {"id": 1, "ts": 5, "card": "a"})["metrics"] == {"n": 1}


def test_a_query_is_made_out_anew_where_its_stream_became_another_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What it means is found out before anyone waits; another thread may change the stream then."""
    made_out = evolution.metrics_of_query
    of: list[StreamDefinition] = []

    def meanwhile(catalog: Catalog, stream: str, sql: str) -> list[MetricDefinition]:
        found = made_out(catalog, stream, sql)
        of.append(catalog.streams[stream].stream)
        if len(of) == 1:
            engine.drop_stream("s")
            engine.apply(DEFINITIONS.replace('card = "string"', 'card = "long"'))
        return found

    with railgun.Engine(now_ms=lambda: 1_000) as engine:
        engine.apply(DEFINITIONS)
        monkeypatch.setattr(evolution, "metrics_of_query", meanwhile)
        sql = "SELECT last(card) AS newest FROM s GROUP BY card OVER INFINITE"
        assert engine.register_metrics("s", sql) == (["newest"], True)
        assert [each.fields[-1].type.kind.value for each in of] == ["string", "long"]
        engine.wait_until_warm("s")
        reply = engine.score("s", {"id": 1, "ts": 1, "card": 7})
        assert reply["metrics"] == {"n": 1, "newest": 7}


def test_a_query_of_a_stream_that_is_dropped_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    made_out = evolution.metrics_of_query

    def meanwhile(catalog: Catalog, stream: str, sql: str) -> list[MetricDefinition]:
        engine.drop_stream("s")
        return made_out(catalog, stream, sql)

    with railgun.Engine() as engine:
        engine.apply(DEFINITIONS)
        monkeypatch.setattr(evolution, "metrics_of_query", meanwhile)
        with pytest.raises(UnknownNameError, match="no stream 's'"):
            engine.register_metrics("s", "SELECT count(*) AS m FROM s GROUP BY card OVER INFINITE")
