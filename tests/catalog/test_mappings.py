"""Paths, units and conditions that change: what may, from which record on, and what the catalogue keeps of it."""

import json
from dataclasses import replace
from typing import Any

import pytest

from railgun.catalog.catalog import Catalog
from railgun.catalog.changes import PutStream, change_to_json
from railgun.catalog.definitions import parse_definitions
from railgun.catalog.errors import CatalogError, DefinitionError
from railgun.catalog.model import StreamDefinition
from railgun.catalog.stream_reading import definition_to_json
from railgun.registry.entries import CatalogState, begin_entry, topic_entry
from railgun.registry.evolution import changed_stream
from railgun.registry.input_topics import PARTITIONS_MAX, InputTopic, MappedFrom
from railgun.registry.origin import Made

STREAM = parse_definitions("""
[streams.s]
id = "tx"
partitioners = ["bin"]
[streams.s.fields]
tx = "string"
card = "string"
bin = { as = "SUBSTR(card, 1, 6)" }
n = { type = "long", from = "a.n" }
seen = { type = "timestamp", unit = "us" }
""").streams["s"]


def put_of(catalog: Catalog, **settings: Any) -> PutStream:
    (change,) = changed_stream(catalog, "s", settings)
    assert isinstance(change, PutStream)
    return change


def places(stream: StreamDefinition) -> dict[str, Any]:
    """What a definition says of the fields that may change, and the condition."""
    fields = definition_to_json(stream)["fields"]
    where = stream.input.where
    return {name: fields.get(name) for name in ("n", "seen", "more")} | {"where": where and where.text}


MOVED = {"type": "long", "from": "b[0]"}
MORE = {"type": "long", "from": "deep.more"}


def test_a_field_is_found_elsewhere_from_a_change_on() -> None:
    catalog = Catalog([PutStream(1, STREAM, 1)])
    entry = catalog.streams["s"]
    at_first = {"n": {"type": "long", "from": "a.n"}, "seen": {"type": "timestamp", "unit": "us"}}
    nothing = {"more": None, "where": None}
    assert (entry.mapped, places(entry.mapped_at(0))) == (0, at_first | nothing)
    # What is added is there in both.
    catalog.apply(put_of(catalog, fields={"more": MORE}))
    assert list(entry.mappings) == [0]
    moved = put_of(catalog, fields={"n": MOVED, "seen": "timestamp"}, input={"where": "n > 1"})
    assert (moved.place, moved.schema_version) == (3, 2)
    assert change_to_json(moved)["stream"] == change_to_json(PutStream(1, entry.stream, 2))["stream"]
    catalog.apply(moved)
    catalog.apply(put_of(catalog, lateness="9s"))
    now = {"n": MOVED, "seen": "timestamp", "more": MORE, "where": "n > 1"}
    assert (entry.mapped, places(entry.stream)) == (3, now)
    assert places(entry.mapped_at(3)) == now
    assert places(entry.mapped_at(0)) == {**at_first, "more": MORE, "where": None}
    # All else is as it is now.
    assert entry.mapped_at(0).lateness_ms == 9_000
    assert catalog.copy().streams["s"] == entry
    # What is taken back is another change.
    catalog.apply(put_of(catalog, fields=at_first, input=None))
    assert (list(entry.mappings), places(entry.mapped_at(5))) == (
        [0, 3, 5],
        {**at_first, "more": MORE, "where": None},
    )
    assert not changed_stream(catalog, "s", {"fields": at_first})


def test_what_a_computed_partitioner_reads_stays() -> None:
    catalog = Catalog([PutStream(1, STREAM, 1)])
    with pytest.raises(
        DefinitionError, match="cannot be changed: it is string, not string from pan; it is what the"
    ) as said:
        changed_stream(catalog, "s", {"fields": {"card": {"type": "string", "from": "pan"}}})
    assert "it is what the partitioner bin reads of events" in str(said.value)


@pytest.mark.parametrize("said", ["double", {"type": "double", "from": "b"}, {"as": "1"}])
def test_another_type_is_refused(said: object) -> None:
    with pytest.raises(DefinitionError, match="s has a field n already: long from"):
        changed_stream(Catalog([PutStream(1, STREAM, 1)]), "s", {"fields": {"n": said}})


def test_fields_stay_in_their_order() -> None:
    wrong = replace(STREAM, fields=(*STREAM.fields[:2], *STREAM.fields[:1:-1]))
    with pytest.raises(CatalogError, match="not removed, retyped or reordered"):
        Catalog([PutStream(1, STREAM, 1)]).apply(PutStream(2, wrong, 2))


def test_an_earlier_release_refuses_the_entry() -> None:
    state = CatalogState("place")
    state.take(0, begin_entry(PutStream(1, STREAM, 1), Made()))
    change = put_of(state.catalog, fields={"n": "long", "seen": "timestamp"}, input={"where": "n > 1"})
    entry = begin_entry(change, Made(), before=STREAM)
    assert json.loads(entry)["version"] == 5
    # An entry without places takes them back.
    assert "fields" not in json.loads(entry)
    state.take(1, entry)
    assert state.catalog.streams["s"].stream == change.stream
    assert state.catalog.streams["s"].mappings == {0: STREAM, 2: change.stream}
    assert state.log.newest(1)[0].what == (
        "input unset -> where n > 1; field n long from a.n -> long; field seen timestamp unit us -> timestamp"
    )
    # Others can be read by it.
    later = put_of(state.catalog, lateness="9s")
    assert json.loads(begin_entry(later, Made(), before=change.stream))["version"] == 4


TOPIC = InputTopic("t", "id", 1)


def test_each_record_has_the_mapping_of_its_offset() -> None:
    assert [TOPIC.mapping_at(0, offset) for offset in (0, 5)] == [0, 0]
    two = TOPIC.mapped_from(7, [10, 0]).mapped_from(9, [15, 4, 3])
    assert (TOPIC.mapped, two.mapped) == (0, 9)
    assert [two.mapping_at(0, offset) for offset in (0, 9, 10, 14, 15, 99)] == [0, 0, 7, 7, 9, 9]
    assert [two.mapping_at(1, offset) for offset in (0, 3, 4)] == [7, 7, 9]
    # It came between the two changes, and the next one after both.
    assert [two.mapping_at(2, offset) for offset in (0, 2, 3)] == [7, 7, 9]
    assert two.mapping_at(3, 0) == 9
    assert [two.mapping_starts(each) for each in range(4)] == [[10, 15], [0, 4], [0, 3], [0, 0]]


def test_a_later_mapping_never_begins_before_an_earlier_one() -> None:
    """As where a broker has lost the end of a partition."""
    found = TOPIC.mapped_from(7, [10, 20]).mapped_from(9, [4])
    assert found.mappings[-1] == MappedFrom(9, (10, 20))
    assert found.mapping_at(0, 9) == 0


def test_of_many_mappings_the_oldest_are_forgotten() -> None:
    found = TOPIC
    for place in range(1, 5):
        found = found.mapped_from(place, [place] * PARTITIONS_MAX)
    assert [(each.place, len(each.starts)) for each in found.mappings] == [
        (2, 0),
        (3, PARTITIONS_MAX),
        (4, PARTITIONS_MAX),
    ]
    assert [found.mapping_at(0, offset) for offset in (0, 3, 4)] == [2, 3, 4]


def test_mappings_of_topics_are_kept() -> None:
    state = CatalogState("place")
    for topic in (TOPIC, TOPIC.mapped_from(7, [3, 4]), replace(TOPIC, id="new", mappings=(MappedFrom(7),))):
        state.take(0, topic_entry(1, topic)[1])
        assert state.topics[1][topic.id] == topic
    assert "mapped" not in json.loads(topic_entry(1, TOPIC)[1])["input_topic"]
