"""Computed fields in definitions and in the catalogue."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from railgun.catalog.catalog import Catalog, missing_changes
from railgun.catalog.changes import AddMetric, PutStream, change_from_json, change_to_json
from railgun.catalog.definitions import definitions_from_sql, parse_definitions
from railgun.catalog.errors import CatalogError, DefinitionError
from railgun.catalog.model import StreamDefinition
from railgun.catalog.retelling import retold
from railgun.catalog.stream_reading import definition_to_json, stream_from_json
from railgun.language.zones import Zone, zone_of
from railgun.registry.entries import begin_entry
from railgun.registry.evolution import added_field, changed_stream, dropped_field, evolved, new_metrics
from railgun.registry.origin import Made

TEXT = """
[streams.s]
time = "ts"
partitioners = ["bin", "card"]
[streams.s.fields]
night = { as = "hour < 6" }
ts = "timestamp"
card = "string"
hour = { type = "long", as = "hour(ts in 'Europe/Lisbon')" }
bin = { as = "SUBSTR(card, 1, 6)" }
"""
STREAM = parse_definitions(TEXT).streams["s"]
OLD = zone_of("Europe/Lisbon", (0, ((86_400, 7_200),)))


def body(fields: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": "s", "time": "ts", "fields": {"ts": "timestamp", "card": "string", **fields}, **more}


def registered(stream: StreamDefinition = STREAM) -> Catalog:
    return Catalog([PutStream(1, stream, 1)])


def with_old_tables() -> StreamDefinition:
    """The stream as a release with other tables of time zones would have recorded it."""
    change = change_to_json(PutStream(1, STREAM, 1))
    change["stream"]["computed"]["hour"]["zones"] = {"Europe/Lisbon": OLD.to_json()}
    read = change_from_json(json.loads(json.dumps(change)), {})
    assert isinstance(read, PutStream)
    return read.stream


def zones_of(stream: StreamDefinition) -> list[Zone]:
    return [zone for each in stream.computed for zone in each.zones]


def test_they_stand_behind_what_they_read_and_are_not_recorded() -> None:
    assert [each.name for each in STREAM.fields] == ["ts", "card"]
    assert [(each.name, str(each.type), each.text) for each in STREAM.computed] == [
        ("hour", "long", "HOUR(ts IN 'Europe/Lisbon')"),
        ("night", "boolean", "hour < 6"),
        ("bin", "string", "SUBSTR(card, 1, 6)"),
    ]
    assert [each.name for each in STREAM.schema(1).fields] == ["ts", "card"]
    assert [each.name for each in STREAM.incoming(1).fields] == ["ts", "card"]
    assert [each.name for each in STREAM.of_queries(1).fields] == ["ts", "card", "hour", "night", "bin"]


def test_bodies_and_records_are_read_back() -> None:
    assert stream_from_json(json.loads(json.dumps(definition_to_json(STREAM)))) == STREAM
    change = PutStream(1, STREAM, 1)
    assert change_from_json(json.loads(json.dumps(change_to_json(change))), {}) == change


def test_an_entry_with_one_has_a_version_of_its_own() -> None:
    plain = replace(STREAM, computed=(), partitioners=("card",))
    assert json.loads(begin_entry(PutStream(1, STREAM, 1), Made(7)))["version"] == 3
    assert json.loads(begin_entry(PutStream(1, plain, 1), Made(7)))["version"] == 1


@pytest.mark.parametrize(
    ("fields", "more", "said"),
    [
        (
            {"a": {"as": "b"}, "b": {"as": "a"}},
            {},
            "fields.a: computed fields in a circle: a reads b reads a",
        ),
        ({"a": {"as": "a || 'x'"}}, {}, "fields.a: computed fields in a circle: a reads a"),
        (
            {"a": {"as": "car"}},
            {},
            "fields.a.as: line 1, column 1: stream s has no field 'car'; did you mean card?",
        ),
        ({"a": {"as": "card ||"}}, {}, "fields.a.as: line 1, column 8: "),
        ({"a": {"as": "NULL"}}, {}, "fields.a.as: it is nothing but NULL"),
        ({"a": {"type": "long", "as": "card"}}, {}, "fields.a.type: card is string, not long"),
        ({"a": {"as": "card", "from": "x"}}, {}, "fields.a.from: unknown key"),
        ({"a": {"as": "card", "zones": {}}}, {}, "fields.a.zones: unknown key"),
        (
            {"a": {"as": "CAST(1 AS timestamp)"}},
            {"time": "a"},
            "time: a is computed; time is a recorded field",
        ),
        ({"a": {"as": "card"}}, {"id": "a"}, "id: a is computed; id is a recorded field"),
        (
            {"a": {"as": "ts"}},
            {"partitioners": ["a"]},
            "partitioners: a is timestamp; a partitioner is string or long",
        ),
    ],
)
def test_what_is_refused(fields: Mapping[str, Any], more: Mapping[str, Any], said: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        stream_from_json(body(fields, **more))
    assert str(caught.value).startswith(said)


def test_tables_of_zones_are_not_taken_from_requests() -> None:
    with pytest.raises(DefinitionError, match="computed: unknown key"):
        stream_from_json({**body({}), "computed": {}})


def test_what_grows_without_end_is_refused() -> None:
    fields: dict[str, Any] = {"f0": {"as": "card || card"}}
    fields |= {f"f{n}": {"as": f"f{n - 1} || f{n - 1}"} for n in range(1, 40)}
    with pytest.raises(DefinitionError, match="too large once computed fields are written out"):
        stream_from_json(body(fields))
    stream = stream_from_json(body({f"f{n}": fields[f"f{n}"] for n in range(12)}))
    with pytest.raises(DefinitionError, match="too large once computed fields are written out"):
        definitions_from_sql("SELECT count(f11 || f11 || f11) AS n FROM s OVER INFINITE", stream, {})


def test_later_records_keep_the_tables_of_their_time_zones() -> None:
    catalog = registered(with_old_tables())
    assert zones_of(catalog.streams["s"].stream) == [OLD]
    changes = [
        evolved(catalog, "s", {"lateness": "9s"}),
        added_field(catalog, "s", "x", "long"),
        added_field(catalog, "s", "minute", {"as": "MINUTE(ts IN 'Europe/Lisbon')"}),
        *changed_stream(catalog, "s", {"retention": "90d"}),
        *missing_changes(catalog, parse_definitions(TEXT + 'more = "long"'))[0],
    ]
    assert len(changes) == 5
    for change in changes:
        assert isinstance(change, PutStream)
        read = change_from_json(json.loads(json.dumps(change_to_json(change))), catalog.definitions)
        assert isinstance(read, PutStream)
        assert read == change
        assert read.stream.computed[0].zones == (OLD,)
        assert read.stream.computed[0].zones[0].offsets == OLD.offsets
    assert len(zones_of(changes[2].stream)) == 2
    assert zones_of(changes[2].stream)[1] != OLD


def test_a_metric_reads_the_registered_tables_and_its_own() -> None:
    catalog = registered(with_old_tables())
    sql = "SELECT count(*) AS n FROM s WHERE hour = HOUR(ts IN 'Europe/Lisbon') GROUP BY bin OVER INFINITE"
    made = parse_definitions(TEXT + f'[[metrics]]\nsql = "{sql}"')
    for change in (*missing_changes(catalog, made)[0], *new_metrics(catalog, "s", sql)):
        assert isinstance(change, AddMetric)
        read = change_from_json(json.loads(json.dumps(change_to_json(change))), catalog.definitions)
        assert read == change
        resolved = change.metric.resolved
        assert [zone == OLD for zone in resolved.zones] == [False]
        assert resolved.outdated_zones == ("Europe/Lisbon",)
        assert resolved.fields == {"ts", "card"}


def test_only_what_nothing_reads_is_dropped() -> None:
    catalog = registered()
    for sql in (
        "SELECT count(*) AS n FROM s WHERE night GROUP BY card OVER INFINITE",
        "DERIVE bin AS b FROM s",
    ):
        for change in new_metrics(catalog, "s", sql):
            catalog.apply(change)
    for name, said in (
        ("hour", "the computed field night"),
        ("night", "the metric n"),
        ("bin", "partitioner"),
    ):
        with pytest.raises((CatalogError, DefinitionError), match=said):
            catalog.apply(dropped_field(catalog, "s", name))
    for name in ("card", "none"):
        with pytest.raises(DefinitionError):
            dropped_field(catalog, "s", name)


def test_a_change_of_computed_fields_is_a_version_of_the_schema() -> None:
    catalog = registered()
    catalog.apply(added_field(catalog, "s", "x", "long"))
    catalog.apply(added_field(catalog, "s", "y", {"as": "x + 1"}))
    catalog.apply(dropped_field(catalog, "s", "night"))
    entry = catalog.streams["s"]
    assert {version: len(schema.fields) for version, schema in entry.schemas.items()} == {
        1: 2,
        2: 3,
        3: 3,
        4: 3,
    }
    told = [change.stream for change in retold(entry) if isinstance(change, PutStream)]
    assert [[each.name for each in stream.computed] for stream in told] == [
        ["hour", "night", "bin"],
        ["hour", "night", "bin"],
        ["hour", "night", "bin", "y"],
        ["hour", "bin", "y"],
    ]
    assert Catalog(catalog.changes(), catalog.last_place).definitions == catalog.definitions


def test_a_file_with_another_expression_differs() -> None:
    changes, differences = missing_changes(registered(), parse_definitions(TEXT.replace("1, 6", "1, 8")))
    assert changes == []
    assert [str(each) for each in differences] == [
        "s: field bin is string as SUBSTR(card, 1, 6), the definition says string as SUBSTR(card, 1, 8)"
    ]
    with pytest.raises(CatalogError, match="the expression of the field bin cannot be changed"):
        changed_stream(registered(), "s", {"fields": {"bin": {"as": "card"}}})


def test_partitioners_that_read_what_only_records_have() -> None:
    fields = {"key": {"type": "string", "from": "@key"}, "part": {"as": "SUBSTR(key, 1, 2)"}}
    stream = stream_from_json(body(fields, partitioners=["part"]))
    assert stream.of_records_alone == (
        "events of s come from its input topic alone: its partitioner key is the @key of a record"
    )
