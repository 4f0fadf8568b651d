"""What definitions say of input topics: what is read, what is refused, what may change, what the catalogue keeps."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from railgun.catalog.catalog import Catalog, missing_changes
from railgun.catalog.changes import PutStream, change_to_json
from railgun.catalog.definitions import parse_definitions
from railgun.catalog.errors import DefinitionError
from railgun.catalog.model import Definitions, InputDefinition, StreamDefinition
from railgun.catalog.stream_reading import definition_to_json, stream_from_json
from railgun.language.zones import zone_of
from railgun.registry.entries import CatalogState, begin_entry, topic_entry
from railgun.registry.evolution import changed_stream
from railgun.registry.input_topics import InputTopic, hashed, numbered
from railgun.registry.origin import Made

TEXT = """
[streams.s]
partitioners = ["card"]
[streams.s.fields]
card = "string"
twice = { as = "card || card" }
[streams.s.input]
topics = ["prod.payments.v2", "other_topic"]
"""
PLAIN = parse_definitions(TEXT.partition("[streams.s.input]")[0]).streams["s"]
NAMED = parse_definitions(TEXT).streams["s"]


def test_topics_are_read_and_written_again() -> None:
    assert replace(PLAIN, input=InputDefinition(("prod.payments.v2", "other_topic"))) == NAMED
    body = definition_to_json(NAMED)
    assert body["input"] == {"topics": ["prod.payments.v2", "other_topic"]}
    assert stream_from_json(body) == NAMED
    assert "input" not in definition_to_json(PLAIN)
    assert stream_from_json({**body, "input": None}) == PLAIN


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("x", "streams.s.input: a table with"),
        ({"topics": "x"}, "streams.s.input.topics: a list of names belongs here"),
        ({"topics": []}, "streams.s.input.topics: at least one is needed"),
        ({"topics": ["a", "a"]}, "streams.s.input.topics: a name stands here twice"),
        ({"topics": ["a b"]}, "streams.s.input.topics: 'a b' cannot name a topic"),
        ({"topics": [".."]}, "streams.s.input.topics: '..' cannot name a topic"),
        ({"topics": ["a" * 250]}, "cannot name a topic"),
        ({"topics": [f"t{i}" for i in range(65)]}, "a stream has at most 64 input topics, not 65"),
        ({"topic": "a"}, "streams.s.input.topic: unknown key; did you mean topics?"),
        ({"start": "now"}, "streams.s.input.start: 'now' is no place to start at"),
        (
            {"start": "2026-01-31T00:00:00"},
            "streams.s.input.start: '2026-01-31T00:00:00' is no place to start at",
        ),
        ({"start": "1969-12-31T00:00:00Z"}, "is no place to start at"),
        ({"start": 7}, "is no place to start at"),
        ({"where": "card"}, "streams.s.input.where: card is string; a condition is boolean"),
        ({"where": "crd = 'a'"}, "streams.s.input.where: line 1, column 1: stream s has no field 'crd'"),
        ({"where": "twice = 'a'"}, "streams.s.input.where: line 1, column 1: stream s has no field 'twice'"),
        ({"where": "card ="}, "streams.s.input.where: "),
        ({"where": 1}, "streams.s.input.where: text belongs here"),
        ({"topics": ["kafka-2:9092/payments"]}, "MirrorMaker 2"),
        ({"topics": ["a"], "bootstrap_servers": "kafka-2:9092"}, "MirrorMaker 2"),
    ],
)
def test_what_is_refused(said: object, message: str) -> None:
    body = {**definition_to_json(PLAIN), "input": said}
    with pytest.raises(DefinitionError) as raised:
        stream_from_json(body)
    assert message.removeprefix("streams.s.") in str(raised.value)


@pytest.mark.parametrize(
    ("said", "start", "text"),
    [
        ("earliest", "earliest", None),
        ("latest", "latest", "latest"),
        ("2026-01-31T01:00:00.1239+01:00", 1_769_817_600_123, "2026-01-31T00:00:00.123Z"),
    ],
)
def test_where_topics_are_begun(said: str, start: object, text: str | None) -> None:
    stream = stream_from_json({**definition_to_json(PLAIN), "input": {"start": said}})
    assert stream.input == InputDefinition((), start)  # type: ignore[arg-type]
    assert definition_to_json(stream).get("input", {}).get("start") == text
    assert stream_from_json(definition_to_json(stream)) == stream


def test_a_time_of_toml_may_be_the_start() -> None:
    text = TEXT + "start = 2026-01-31T00:00:00Z\n"
    assert parse_definitions(text).streams["s"].input.start == 1_769_817_600_000


def put(stream: StreamDefinition, place: int = 1) -> PutStream:
    return PutStream(place, stream, 1)


def test_tasks_know_nothing_of_topics() -> None:
    assert change_to_json(put(NAMED)) == change_to_json(put(PLAIN))


def test_entries_of_the_catalogue_have_them_beside_the_change() -> None:
    state = CatalogState("place")
    entries = [begin_entry(put(NAMED), Made()), begin_entry(put(PLAIN, 2), Made())]
    assert [msgspec.json.decode(each)["version"] for each in entries] == [4, 3]
    for entry, expected in zip(entries, (NAMED, PLAIN)):
        state.take(0, entry)
        assert state.catalog.streams["s"].stream == expected
    assert [each.what for each in state.log.newest(9)][:1] == [
        "input topics prod.payments.v2, other_topic -> unset"
    ]


def catalogue(stream: StreamDefinition) -> Catalog:
    return Catalog([put(stream)])


def test_what_may_change() -> None:
    (change,) = changed_stream(
        catalogue(PLAIN), "s", {"input": {"topics": ["prod.payments.v2", "other_topic"]}}
    )
    assert isinstance(change, PutStream)
    assert (change.stream, change.schema_version) == (NAMED, 1)
    (change,) = changed_stream(catalogue(NAMED), "s", {"input": None})
    assert isinstance(change, PutStream)
    assert change.stream == PLAIN
    assert not changed_stream(catalogue(NAMED), "s", {"lateness": "5s"})


def chosen(where: str | None, *topics: str) -> dict[str, Any]:
    said = {"topics": list(topics)} if topics else {}
    return {"input": said | ({} if where is None else {"where": where})}


def test_a_condition_may_change() -> None:
    (change,) = changed_stream(catalogue(PLAIN), "s", chosen("card <> 'x'", "a"))
    assert isinstance(change, PutStream)
    found = change.stream.input.where
    assert found is not None
    assert (found.text, definition_to_json(change.stream)["input"]["where"]) == ("card <> 'x'", "card <> 'x'")
    registered = catalogue(change.stream)
    assert not changed_stream(registered, "s", chosen("card  <> 'x'", "a"))
    for other in (chosen(None, "a"), chosen("card = 'x'", "b", "a"), {"input": None}):
        assert changed_stream(registered, "s", other)


def test_the_time_zones_of_a_condition_stay() -> None:
    condition = {"input": {"topics": ["a"], "where": "HOUR(card_ts IN 'Europe/Lisbon') < 6"}}
    body = {**definition_to_json(PLAIN), "fields": {"card": "string", "card_ts": "timestamp"}, **condition}
    stream = stream_from_json(body)
    old = zone_of("Europe/Lisbon", (0, ((86_400, 7_200),)))
    entry = msgspec.json.decode(begin_entry(put(stream), Made()))
    entry["input"]["zones"] = {"Europe/Lisbon": old.to_json()}
    state = CatalogState("place")
    state.take(0, msgspec.json.encode(entry))
    found = state.catalog.streams["s"].stream.input.where
    assert found is not None
    assert found.zones == (old,)
    (change,) = changed_stream(state.catalog, "s", {**condition, "lateness": "7s"})
    assert isinstance(change, PutStream)
    assert change.stream.input.where == found
    changes, differences = missing_changes(state.catalog, Definitions({"s": stream}))
    assert (changes, differences) == ([], [])


def test_a_file_that_says_something_else_changes_nothing() -> None:
    changes, (difference,) = missing_changes(catalogue(PLAIN), Definitions({"s": NAMED}))
    assert not changes
    assert str(difference) == (
        "s: input is not set, the definition says topics prod.payments.v2, other_topic"
    )


def test_numbers_are_of_the_id_and_differ() -> None:
    (first,) = numbered([("a", "id-1")], ())
    assert first == InputTopic("a", "id-1", hashed("id-1"))
    taken = [InputTopic("b", "other", hashed("id-1")), InputTopic("c", "third", hashed("id-1") + 1)]
    (second,) = numbered([("a", "id-1")], taken)
    assert second.number == hashed("id-1") + 2
    last = InputTopic("b", "other", (1 << 17) - 1)
    assert numbered([("a", "id")], [replace(last, number=hashed("id")), last])[0].number not in (
        hashed("id"),
        last.number,
    )
    assert first.partition_number(5) == hashed("id-1") * 16_384 + 5
    assert first.partition_number((1 << 14) - 1) < 1 << 31


def test_numbers_are_kept() -> None:
    state = CatalogState("place")
    state.take(0, begin_entry(put(NAMED), Made()))
    topics = [InputTopic("a", "id-1", 5), InputTopic("a", "id-2", 9)]
    entries = dict(topic_entry(1, each) for each in topics)
    assert list(entries) == [b"input_topic 1 id-1", b"input_topic 1 id-2"]
    for entry in entries.values():
        state.take(0, entry)
    assert state.topics == {1: {each.id: each for each in topics}}
    # A release that does not know them reads nothing else of them than this.
    assert {(each["version"], each["done"]) for each in map(msgspec.json.decode, entries.values())} == {
        (1, 0)
    }
