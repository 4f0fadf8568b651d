"""Value queries of front-ends that know an earlier version of a stream: answered as by that version, or passed over."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from railgun.catalog.catalog import Catalog, StreamEntry
from railgun.catalog.changes import AddMetric, Change, DropMetric, PutStream, Warm, change_to_json
from railgun.catalog.definitions import parse_definitions
from railgun.catalog.retelling import retold
from railgun.ingest.accepted import Correlation
from railgun.ingest.routing import Router
from railgun.ingest.value_queries import QueryReader, ValueRequest
from railgun.registry import evolution
from railgun.task import key_reader
from railgun.task.processor import TaskProcessor
from railgun.task.recovery import open_task
from railgun.wire.control_records import encode_control
from railgun.wire.encode import encode_event
from railgun.wire.records import Records
from reservoir.files import DiskFiles
from tests.task.player import TINY
from tests.task.small_log import IDENTITY

DEFINITIONS = """
[streams.s]
time = "t"
partitioners = ["k"]
[streams.s.fields]
t = "timestamp"
k = "string"
z = { as = "SUBSTR(k, 1, 2)" }
a = { as = "LENGTH(k)" }
[[metrics]]
sql = "SELECT count(*) AS n FROM s GROUP BY k OVER INFINITE"
[[metrics]]
sql = "SELECT count(*) AS by_z FROM s GROUP BY k, z OVER INFINITE"
[[metrics]]
sql = "SELECT count(*) AS by_a FROM s GROUP BY k, a OVER INFINITE"
"""
KEY = "4111"


class Told:
    """A stream whose changes are told to a task.

    first, entries: as front-ends know it at first, and at last by the version of the schema.
    """

    def __init__(self) -> None:
        self.catalog, self.records = Catalog(), list[bytes]()
        self.entries: dict[int, StreamEntry] = {}
        self.change(lambda catalog: evolution.missing(catalog, parse_definitions(DEFINITIONS)))
        self.first = self.entries[1]

    @property
    def entry(self) -> StreamEntry:
        return self.catalog.streams["s"]

    def change(self, request: Callable[[Catalog], Iterable[Change]]) -> None:
        for each in request(self.catalog):
            self.catalog.apply(each)
            self.records.append(encode_control(change_to_json(each)))
            if isinstance(each, AddMetric):
                warm = Warm("s", each.metric.name, each.place)
                self.records.append(encode_control(change_to_json(warm)))
        self.entries[self.entry.schema.version] = self.catalog.copy().streams["s"]

    def fields(self, changed: Mapping[str, Any]) -> None:
        self.change(lambda catalog: evolution.changed_stream(catalog, "s", {"fields": changed}))

    def event(self, *later: Any) -> None:
        self.records.append(
            encode_event(self.entry.schema.version, str(len(self.records)), 5, [5, KEY, *later])
        )

    def task(self, folder: Path, records: list[bytes]) -> TaskProcessor:
        task = open_task(folder, IDENTITY, DiskFiles(), lambda *_: (), TINY)
        task.process(Records.of(records), 0, lambda _: None)
        return task


def asked(task: TaskProcessor, entry: StreamEntry, key: Mapping[str, Any]) -> dict[str, Any]:
    """What a task answers to a front-end that knows this entry."""
    query = QueryReader(entry, Router(entry.stream)).read(ValueRequest([key]))
    assert query.batch.schema.version in task.schemas
    replies = task.answer(query.batch.records(Correlation(3, 9, 7)))
    assert replies.n == 1
    assert replies.decoded.status[0] == 0
    found = replies.metrics(0)
    return {name: found.get(name, "absent") for name in query.names[0]}


def grown() -> Told:
    """A stream of four versions: `z` stays; `a` is dropped, and another one comes behind it, of another type."""
    told = Told()
    told.event()
    told.change(lambda catalog: [evolution.dropped_metric(catalog, "s", "by_a")])
    told.fields({"a": None})
    told.fields({"x": "long"})
    told.event(5)
    told.fields({"a": {"as": "'of ' || CAST(x AS string)"}})
    told.change(
        lambda catalog: evolution.new_metrics(
            catalog, "s", "SELECT count(*) AS by_a FROM s GROUP BY k, a OVER INFINITE"
        )
    )
    return told


def _later(change: Change) -> Change:
    if isinstance(change, PutStream):
        return replace(change, place=change.schema_version)
    if isinstance(change, DropMetric):
        return replace(change, place=change.place + 10, added=change.added + 10)
    return replace(change, place=change.place + 10)


@pytest.mark.parametrize("again", [False, True], ids=["told", "retold"])
def test_every_version_is_read_as_it_was(again: bool, tmp_path: Path) -> None:
    told = grown()
    records = told.records
    if again:
        # As behind a gap: all versions at once, and the events that the log still has. A log's places only grow.
        definitions = [encode_control(change_to_json(_later(each))) for each in retold(told.entry)]
        records = definitions + [each for each in records if each[0] == 1]
    task = told.task(tmp_path / "t", records)
    try:
        assert sorted(told.entries) == [1, 2, 3, 4]
        for version, entry in told.entries.items():
            found = asked(task, entry, {"k": KEY, "z": "41"})
            assert found == {"n": 2, "by_z": 2}, version
            assert asked(task, entry, {"k": KEY, "z": "42"}) == {"n": 2, "by_z": 0}, version
        assert asked(task, told.entries[4], {"k": KEY, "a": "of 5"})["by_a"] == 1
        # `by_a` is a newer metric than that of the first version, whose front-ends pass over it. No number is read as
        # the place of a text.
        assert asked(task, told.first, {"k": KEY, "a": (1 << 62) + 12345})["n"] == 2
    finally:
        task.close()


def test_a_definition_of_the_newest_version_alone_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: earlier versions are read with the computed fields of the newest one."""
    told = grown()
    original = key_reader._of_types
    newest = told.entry.stream.of_queries(4)

    def of_types(schema: Any, types: Any) -> Any:
        return original(type(newest)(schema.version, newest.fields), types)

    monkeypatch.setattr(key_reader, "_of_types", of_types)
    task = told.task(tmp_path / "t", told.records)
    try:
        with pytest.raises(AssertionError):
            assert asked(task, told.entries[1], {"k": KEY, "z": "41"}) == {"n": 2, "by_z": 2}
    finally:
        task.close()
