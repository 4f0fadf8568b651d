"""What definitions say of input topics: what is read, what is refused, what may change, what the catalogue keeps."""

from collections.abc import Mapping
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
from railgun.registry.entries import CatalogState, begin_entry, topic_entry
from railgun.registry.errors import DefinitionsError
from railgun.registry.evolution import changed_stream
from railgun.registry.input_topics import InputTopic, check_inputs, hashed, numbered
from railgun.registry.origin import Made
from railgun.registry.topics import Topics

TEXT = """
[streams.s]
partitioners = ["card"]
[streams.s.fields]
card = "string"
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
        ({"topics": ["kafka-2:9092/payments"]}, "MirrorMaker 2"),
        ({"topics": ["a"], "bootstrap_servers": "kafka-2:9092"}, "MirrorMaker 2"),
    ],
)
def test_what_is_refused(said: object, message: str) -> None:
    body = {**definition_to_json(PLAIN), "input": said}
    with pytest.raises(DefinitionError) as raised:
        stream_from_json(body)
    assert message.removeprefix("streams.s.") in str(raised.value)


def put(stream: StreamDefinition, place: int = 1) -> PutStream:
    return PutStream(place, stream, 1)


def test_tasks_know_nothing_of_topics() -> None:
    assert change_to_json(put(NAMED)) == change_to_json(put(PLAIN))


def test_entries_of_the_catalogue_have_them_beside_the_change() -> None:
    state = CatalogState("place")
    entries = [begin_entry(put(NAMED), Made()), begin_entry(put(PLAIN, 2), Made())]
    assert [msgspec.json.decode(each)["version"] for each in entries] == [4, 1]
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
    assert state.newest_version == 4


def reading(*topics: str, name: str = "s") -> StreamDefinition:
    return replace(PLAIN, name=name, input=InputDefinition(topics))


@pytest.mark.parametrize(
    ("topic", "message"),
    [
        ("p.s.out", "it is its own output; a stream that reads replies could feed itself"),
        ("p.other.out", "it is the stream other's output"),
        ("p.s.dead", "it is its own topic of dead letters"),
        ("p.s.by.card", "it is its own tasks'"),
        ("p.other.ask.card", "it is the stream other's tasks'"),
        ("p.catalog", "names with p. are this cluster's own, but for p.STREAM.in"),
        ("p.later.out", "names with p. are this cluster's own"),
        ("p.later.by.in", "names with p. are this cluster's own"),
        ("p.in", "names with p. are this cluster's own"),
    ],
)
def test_topics_that_the_cluster_writes_are_refused(topic: str, message: str) -> None:
    known: Mapping[str, Any] = {"other": replace(PLAIN, name="other")}
    with pytest.raises(DefinitionsError) as raised:
        check_inputs([put(reading("a", topic))], known, Topics("p"))
    assert str(raised.value).startswith(f"s: {topic} cannot be an input topic: {message}")


def test_any_other_topic_may_feed_several_streams() -> None:
    known = {"other": reading("a", "p.s.in", name="other")}
    check_inputs([put(reading("a", "p.s.in", "p.other.in", "q.s.out", "in"))], known, Topics("p"))
