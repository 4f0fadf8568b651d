"""The catalogue as the outcome of its changes: order, evolution, what `apply` of a file makes."""

import dataclasses
import json
from typing import Any

import pytest

from railgun.catalog.catalog import Catalog, missing_changes
from railgun.catalog.changes import (
    AddHistory,
    AddMetric,
    Change,
    Deepen,
    DropMetric,
    DropStream,
    PutStream,
    Warm,
    change_from_json,
    change_to_json,
)
from railgun.catalog.definitions import parse_definitions
from railgun.catalog.errors import CatalogError, DefinitionError
from railgun.catalog.model import Definitions, FieldDefinition
from railgun.language.types import LONG, STRING

TEXT = """
[streams.clicks]
partitioners = ["user", "*"]
[streams.clicks.fields]
user = "string"
n = "long"
[[metrics]]
sql = "SELECT count(*) AS clicks_1h, sum(n) AS n_1h FROM clicks GROUP BY user OVER SLIDING 1 HOUR"
"""
DEFINITIONS = parse_definitions(TEXT)
CLICKS = DEFINITIONS.streams["clicks"]


def applied(definitions: Definitions, catalog: Catalog | None = None) -> Catalog:
    catalog = catalog or Catalog()
    for change in missing_changes(catalog, definitions)[0]:
        catalog.apply(change)
    return catalog


def test_a_file_creates_what_is_missing_once() -> None:
    catalog = applied(DEFINITIONS)
    assert [type(change) for change in catalog.changes()] == [PutStream, AddMetric, AddMetric]
    assert [change.place for change in catalog.changes()] == [1, 2, 3]
    assert missing_changes(catalog, DEFINITIONS) == ([], [])
    entry = catalog.entry("clicks")
    assert (entry.stream, entry.schema, list(entry.metrics)) == (
        CLICKS,
        CLICKS.schema(1),
        ["clicks_1h", "n_1h"],
    )


def test_what_differs_is_said_and_left_alone() -> None:
    catalog = applied(DEFINITIONS)
    changed = parse_definitions(
        TEXT.replace('["user", "*"]', '["user"]').replace("1 HOUR", "2 HOURS").replace('"long"', '"double"')
    )
    changes, differences = missing_changes(catalog, changed)
    assert changes == []
    said = [str(difference) for difference in differences]
    assert len(said) == 4
    assert "partitioners" in said[0]
    assert "field n is long, the definition says double" in said[1]
    assert "SLIDING 1 HOUR" in said[2]
    assert "SLIDING 2 HOURS" in said[2]


def test_a_file_that_does_not_say_how_long_logs_are_kept_does_not_differ() -> None:
    def kept(duration: str) -> Definitions:
        return parse_definitions(
            TEXT.replace("[streams.clicks]", f'[streams.clicks]\nlog_retention = "{duration}"', 1)
        )

    catalog = applied(kept("7d"))
    assert missing_changes(catalog, DEFINITIONS) == ([], [])
    assert missing_changes(catalog, kept("7d")) == ([], [])
    changes, (difference,) = missing_changes(catalog, kept("14d"))
    assert changes == []
    assert str(difference) == "clicks: log_retention is 7d, the definition says 14d"
    _, (unset,) = missing_changes(applied(DEFINITIONS), kept("14d"))
    assert str(unset) == "clicks: log_retention is not set, the definition says 14d"


def test_new_fields_make_a_schema_version() -> None:
    catalog = applied(DEFINITIONS)
    grown = parse_definitions(TEXT.replace('n = "long"', 'country = "string"\nn = "long"'))
    applied(grown, catalog)
    entry = catalog.entry("clicks")
    assert entry.stream.fields == (*CLICKS.fields, FieldDefinition("country", STRING))
    assert sorted(entry.schemas) == [1, 2]
    assert entry.schemas[1] == CLICKS.schema(1)
    assert missing_changes(catalog, grown) == ([], [])


def test_a_new_metric_may_use_a_field_of_the_same_file() -> None:
    catalog = applied(DEFINITIONS)
    text = TEXT.replace('n = "long"', 'n = "long"\nm = "long"') + (
        "[[metrics]]\nsql = 'SELECT sum(m) AS m_1h FROM clicks GROUP BY user OVER SLIDING 1 HOUR'"
    )
    changes, _ = missing_changes(catalog, parse_definitions(text))
    assert [change.kind for change in changes] == ["stream", "add"]
    applied(parse_definitions(text), catalog)


def test_a_new_metric_must_fit_the_registered_stream() -> None:
    catalog = applied(DEFINITIONS)
    text = TEXT.replace('n = "long"', 'n = "string"').replace("sum(n) AS n_1h", "max(n) AS n_1h") + (
        "[[metrics]]\nsql = \"SELECT count(*) AS odd FROM clicks WHERE n = 'x' OVER SLIDING 1 HOUR\""
    )
    with pytest.raises(DefinitionError):
        missing_changes(catalog, parse_definitions(text))


def test_a_new_stream_is_checked_and_one_in_a_catalogue_is_read() -> None:
    """Such as one that an earlier version registered."""
    fields = (FieldDefinition("all", STRING),)
    stream = dataclasses.replace(CLICKS, fields=fields, partitioners=("all", "*"))
    with pytest.raises(DefinitionError, match="cannot be a partitioner beside") as caught:
        missing_changes(Catalog(), Definitions({"clicks": stream}))
    assert caught.value.loc == ("partitioners",)
    change = change_from_json(change_to_json(PutStream(1, stream, 1)), {})
    catalog = Catalog([change])  # type: ignore[list-item]
    assert missing_changes(catalog, Definitions({"clicks": stream})) == ([], [])
    catalog.apply(DropStream(2, "clicks"))
    assert not catalog.streams


def test_settings_change_without_a_schema_version() -> None:
    catalog = applied(DEFINITIONS)
    later = dataclasses.replace(CLICKS, lateness_ms=60_000)
    catalog.apply(PutStream(4, later, 1))
    assert catalog.entry("clicks").stream.lateness_ms == 60_000
    assert list(catalog.entry("clicks").schemas) == [1]


@pytest.mark.parametrize(
    "changed",
    [
        dataclasses.replace(CLICKS, partitions=2),
        dataclasses.replace(CLICKS, partitioners=("user",)),
        dataclasses.replace(CLICKS, id="user"),
        dataclasses.replace(CLICKS, fields=CLICKS.fields[:1]),
        dataclasses.replace(CLICKS, fields=CLICKS.fields[::-1]),
        dataclasses.replace(CLICKS, fields=(FieldDefinition("user", LONG), *CLICKS.fields[1:])),
    ],
)
def test_what_is_fixed_at_creation(changed: Any) -> None:
    catalog = applied(DEFINITIONS)
    with pytest.raises(CatalogError):
        catalog.apply(PutStream(4, changed, 2))
    assert catalog.entry("clicks").stream == CLICKS
    assert catalog.last_place == 3


def test_changes_that_do_not_fit_change_nothing() -> None:
    catalog = applied(DEFINITIONS)
    added = catalog.entry("clicks").metrics["n_1h"]
    grown = dataclasses.replace(CLICKS, fields=(*CLICKS.fields, FieldDefinition("x", LONG)))
    bad: list[Change] = [
        dataclasses.replace(added, place=4),
        dataclasses.replace(added, place=3),
        DropMetric(4, "clicks", "n_1h", 2),
        DropMetric(4, "clicks", "nothing", 3),
        DropMetric(4, "nothing", "n_1h", 3),
        DropStream(4, "nothing"),
        PutStream(4, grown, 1),
        PutStream(4, grown, 3),
        PutStream(4, CLICKS, 2),
    ]
    before = list(catalog.changes())
    for change in bad:
        with pytest.raises(CatalogError):
            catalog.apply(change)
    assert list(catalog.changes()) == before


def test_dropping_and_adding_again_gives_another_place() -> None:
    catalog = applied(DEFINITIONS)
    catalog.apply(DropMetric(4, "clicks", "n_1h", 3))
    applied(DEFINITIONS, catalog)
    assert catalog.entry("clicks").metrics["n_1h"].place == 5
    catalog.apply(DropStream(6, "clicks"))
    assert list(catalog.changes()) == []
    rebuilt = Catalog(catalog.changes(), catalog.last_place)
    assert applied(DEFINITIONS, rebuilt).last_place == 9


def test_a_log_of_changes_rebuilds_the_catalogue() -> None:
    catalog = applied(DEFINITIONS)
    applied(parse_definitions(TEXT.replace('n = "long"', 'n = "long"\nx = "double"')), catalog)
    catalog.apply(DropMetric(5, "clicks", "clicks_1h", 2))
    rebuilt = Catalog(catalog.changes(), catalog.last_place)
    assert list(rebuilt.changes()) == list(catalog.changes())
    assert rebuilt.definitions == catalog.definitions


def test_changes_survive_json() -> None:
    catalog = Catalog()
    changes, _ = missing_changes(catalog, DEFINITIONS)
    for change in [
        *changes,
        DropMetric(9, "clicks", "n_1h", 3),
        DropStream(10, "clicks"),
        Warm("clicks", "n", 3),
        AddHistory(11, "clicks", "ab12", 1_000, 9),
        AddHistory(11, "clicks", "ab12", 1_000),
        Deepen(12, "clicks", "ab12", 1_000),
    ]:
        body = json.loads(json.dumps(change_to_json(change)))
        assert change_from_json(body, DEFINITIONS.streams) == change


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"kind": "later"},
        {"kind": "add", "place": 2},
        {"kind": "drop", "place": -2, "stream": "clicks", "name": "n_1h", "added": 1},
        {"kind": "drop", "place": True, "stream": "clicks", "name": "n_1h", "added": 1},
        {"kind": "stream", "place": 1, "stream": {"name": "replies"}, "schema_version": 1},
        {"home": "*"},
        {"name": "other"},
        {"stream": "other"},
        {"sql": "SELECT count(*) FROM clicks"},
        {"sql": "SELECT count(*) AS a, count(n) AS b FROM clicks GROUP BY user OVER SLIDING 1 HOUR"},
    ],
)
def test_broken_changes_say_so(broken: dict[str, Any]) -> None:
    metric = change_to_json(AddMetric(2, DEFINITIONS.metrics[0]))
    body = broken if "kind" in broken or not broken else metric | broken
    with pytest.raises(DefinitionError):
        change_from_json(body, DEFINITIONS.streams)
