"""Fields with paths and units in definitions: what is read, what is refused, what may change."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from railgun.catalog.catalog import Catalog, missing_changes
from railgun.catalog.changes import PutStream, change_from_json, change_to_json
from railgun.catalog.definitions import parse_definitions
from railgun.catalog.errors import CatalogError, DefinitionError
from railgun.catalog.model import Definitions, StreamDefinition
from railgun.catalog.stream_reading import definition_to_json, stream_from_json, stream_to_json
from railgun.catalog.version import CATALOG_VERSION
from railgun.registry.entries import CatalogState, begin_entry
from railgun.registry.errors import CatalogVersionError
from railgun.registry.evolution import added_field, changed_stream, evolved
from railgun.registry.origin import Made
from railgun.wire.path import Path, PathTextError, parse_path, text_of

TEXT = """
[streams.s]
time = "ts"
id = "tx"
partitioners = ["card"]
[streams.s.fields]
tx = { type = "string", from = "header.id" }
ts = { type = "timestamp", from = "header['created-at']", unit = "s" }
card = { type = "string", from = "card" }
at = { type = "timestamp", from = "@timestamp" }
seen = { type = "timestamp", unit = "us" }
n = "long"
"""
STREAM = parse_definitions(TEXT).streams["s"]


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("a", ("a",)),
        ("a.b_2.C", ("a", "b_2", "C")),
        ("a[0][15].b", ("a", 0, 15, "b")),
        ("['a b']", ("a b",)),
        ("a['it''s'].c", ("a", "it's", "c")),
        ("['']['x']", ("", "x")),
        ("['@key']", ("@key",)),
        ("['ü.[0]']", ("ü.[0]",)),
        (".".join("a" * 16), ("a",) * 16),
    ],
)
def test_paths(text: str, steps: tuple[str | int, ...]) -> None:
    assert parse_path(text) == Path(text, steps)
    assert parse_path(text_of(steps)) == Path(text, steps)


@pytest.mark.parametrize(
    ("text", "of_record", "header"),
    [
        ("@key", "@key", ""),
        ("@timestamp", "@timestamp", ""),
        ("@header.origin", "@header", "origin"),
        ("@header['content-type']", "@header", "content-type"),
    ],
)
def test_paths_of_records(text: str, of_record: str, header: str) -> None:
    assert parse_path(text) == Path(text, (), of_record, header)


@pytest.mark.parametrize(
    "text",
    ["", "[0]", "a.", ".a", "a..b", "a[16]", "a[-1]", "a[x]", "a['b", "a[b]", "a b", "1a", "a.1", "ü", "a[0]b", "a.[0]",
     "a['b']c", "@", "@value", "@header", "@header.", "@header['']", "@key.a", "$.a", ".".join("a" * 17), "['\ud800']",
     "x" * 1_001],
)  # fmt: skip
def test_what_is_no_path(text: str) -> None:
    with pytest.raises(PathTextError):
        parse_path(text)


def _fields(stream: StreamDefinition) -> Mapping[str, Any]:
    return dict(definition_to_json(stream)["fields"])


def test_definitions_are_read_back() -> None:
    assert stream_from_json(json.loads(json.dumps(definition_to_json(STREAM)))) == STREAM
    assert _fields(STREAM) == {
        "tx": {"type": "string", "from": "header.id"},
        "ts": {"type": "timestamp", "from": "header['created-at']", "unit": "s"},
        # A path of the field's own name says nothing.
        "card": "string",
        "at": {"type": "timestamp", "from": "@timestamp"},
        "seen": {"type": "timestamp", "unit": "us"},
        "n": "long",
    }


def test_tasks_know_fields_alone() -> None:
    plain = stream_from_json(stream_to_json(STREAM))
    assert not any(field.says_where for field in plain.fields)
    assert STREAM.schema(3) == plain.schema(3) == plain.incoming(3)
    told = change_to_json(PutStream(1, STREAM, 1))
    assert told == change_to_json(PutStream(1, plain, 1))
    assert change_from_json(told, {}) == PutStream(1, plain, 1)


@pytest.mark.parametrize(
    ("field", "loc", "words"),
    [
        ({"from": "a"}, (), "the key type is missing"),
        ({"type": "long", "form": "a"}, ("form",), "unknown key; did you mean from?"),
        ({"type": "text"}, ("type",), "text"),
        ({"type": 5}, ("type",), "text"),
        ({"type": "long", "from": 5}, ("from",), "text belongs here"),
        ({"type": "long", "from": "a["}, ("from",), "'a[' is no path, from its character 2 on"),
        ({"type": "long", "from": "[0]"}, ("from",), "begins with a key"),
        ({"type": "long", "from": "a[16]"}, ("from",), "there is no [16] in paths"),
        ({"type": "long", "from": ".".join("a" * 17)}, ("from",), "at most 16 steps"),
        ({"type": "long", "from": "@value"}, ("from",), "nothing that a record has"),
        ({"type": "long", "from": "@timestamp"}, ("from",), "x is long; @timestamp is a timestamp"),
        ({"type": "long", "unit": "s"}, ("unit",), "x is long; a unit is of a timestamp's numbers"),
        ({"type": "timestamp", "unit": "m"}, ("unit",), "no 'm' here"),
        ({"type": "timestamp", "unit": 1}, ("unit",), "text belongs here"),
    ],
)
def test_what_is_refused(field: object, loc: tuple[str, ...], words: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        stream_from_json({"name": "s", "fields": {"x": field}})
    assert caught.value.loc == ("fields", "x", *loc)
    assert words in str(caught.value)


def _catalog() -> Catalog:
    return Catalog([PutStream(1, STREAM, 1)])


def test_a_new_field_may_have_a_path() -> None:
    said = {"type": "string", "from": "payment.card"}
    change = added_field(_catalog(), "s", "bin", said)
    assert isinstance(change, PutStream)
    assert _fields(change.stream)["bin"] == said
    assert change.schema_version == 2
    (again,) = changed_stream(
        _catalog(), "s", {"fields": {"bin": said, "n": "long", "ts": _fields(STREAM)["ts"]}}
    )
    assert again == change
    assert _fields(evolved(_catalog(), "s", {"lateness": "9s"}).stream) == _fields(STREAM)
    grown = parse_definitions(TEXT + 'more = { type = "long", from = "a[1]" }')
    (change,), differences = missing_changes(_catalog(), grown)
    assert not differences
    assert isinstance(change, PutStream)
    assert change.stream == grown.streams["s"]


@pytest.mark.parametrize(
    ("name", "said", "words"),
    [
        ("tx", "string", "it is string from header.id, not string;"),
        ("tx", {"type": "string", "from": "a"}, "not string from a; it is the id of events, and a record"),
        (
            "ts",
            {"type": "timestamp", "from": "header['created-at']", "unit": "ms"},
            "it is the time of events,",
        ),
        ("card", {"type": "string", "from": "pan"}, "it is string, not string from pan; it is a partitioner"),
    ],
)
def test_what_tells_events_apart_stays_where_it_is(name: str, said: object, words: str) -> None:
    with pytest.raises(DefinitionError, match="cannot be changed") as caught:
        changed_stream(_catalog(), "s", {"fields": {name: said}})
    assert words in str(caught.value)
    wanted = stream_from_json({**definition_to_json(STREAM), "fields": {**_fields(STREAM), name: said}})
    with pytest.raises(CatalogError, match="cannot be changed") as refused:
        _catalog().apply(PutStream(2, wanted, 1))
    assert words in str(refused.value)
    catalog = _catalog()
    changes, differences = missing_changes(catalog, Definitions({"s": wanted}))
    assert not changes
    assert [each.what for each in differences] == [f"field {name}"]


def test_paths_stand_beside_the_change_in_the_catalogue() -> None:
    entry = json.loads(begin_entry(PutStream(1, STREAM, 1), Made(7)))
    assert entry["version"] == 2
    assert entry["change"] == change_to_json(PutStream(1, STREAM, 1))
    assert entry["fields"]["ts"] == {"from": "header['created-at']", "unit": "s"}
    state = CatalogState("the log")
    state.take(0, json.dumps(entry).encode())
    assert state.catalog.streams["s"].stream == STREAM
    plain = stream_from_json(stream_to_json(STREAM))
    assert json.loads(begin_entry(PutStream(1, plain, 1), Made(7)))["version"] == 1
    with pytest.raises(CatalogVersionError):
        CatalogState("the log").take(0, json.dumps({**entry, "version": CATALOG_VERSION + 1}).encode())


@pytest.mark.parametrize("role", ["time", "id", "partitioners"])
def test_streams_that_take_events_from_their_topic_alone(role: str) -> None:
    path = "@timestamp" if role == "time" else "@key"
    type_ = "timestamp" if role == "time" else "string"
    body = {
        "name": "s",
        role: ["x"] if role == "partitioners" else "x",
        "fields": {"x": {"type": type_, "from": path}},
    }
    why = stream_from_json(body).of_records_alone
    assert why is not None
    assert f"x is the {path} of a record" in why
    assert STREAM.of_records_alone is None
