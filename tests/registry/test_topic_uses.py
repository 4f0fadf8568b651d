"""What a cluster writes, nothing of it reads, and nothing else of it writes."""

from typing import Any

import pytest

from railgun.catalog.changes import Change, DropStream, PutStream
from railgun.catalog.model import StreamDefinition
from railgun.catalog.stream_reading import stream_from_json
from railgun.registry.errors import DefinitionsError
from railgun.registry.topic_uses import check_topics
from railgun.registry.topics import Topics

TOPICS = Topics("p")


def stream(name: str, *inputs: str, **output: Any) -> StreamDefinition:
    body = {"name": name, "partitioners": ["x", "*"], "fields": {"x": "long"}, "output": output or None}
    return stream_from_json(body | ({"input": {"topics": list(inputs)}} if inputs else {}))


def refusal(*changes: Change | StreamDefinition, known: tuple[StreamDefinition, ...] = ()) -> str | None:
    made = [PutStream(1, each, 1) if isinstance(each, StreamDefinition) else each for each in changes]
    try:
        check_topics(made, {each.name: each for each in known}, TOPICS)
    except DefinitionsError as error:
        return str(error)
    return None


OTHER = stream("other", "fed", topic="scored", dead="rejected")


@pytest.mark.parametrize(
    ("output", "why"),
    [
        ({"topic": "scored"}, "scored cannot be the output topic: it is the output topic of another stream"),
        ({"topic": "rejected"}, "it is the topic of dead letters of another stream"),
        ({"dead": "scored"}, "scored cannot be the topic of dead letters: it is the output topic of another"),
        ({"topic": "p.other.in"}, "it is an input topic of another stream"),
        ({"topic": "fed"}, "fed cannot be the output topic: it is an input topic of another stream"),
        ({"dead": "fed"}, "it is an input topic of another stream"),
        ({"topic": "p.s.in"}, "it is an input topic of this stream"),
        ({"dead": "p.s.in"}, "it is an input topic of this stream"),
        ({"topic": "p.s.by.x"}, "it is a topic of the tasks of this stream"),
        ({"topic": "p.other.all"}, "it is a topic of the tasks of another stream"),
        ({"dead": "p.other.ask.x"}, "it is a topic of the tasks of another stream"),
        # Units write there, whatever the definition says.
        ({"topic": "p.other.dead"}, "it is the topic of dead letters of another stream"),
        ({"topic": "p.s.dead", "dead": "d"}, "it is the topic of dead letters of this stream"),
        ({"topic": "p.catalog"}, "p.catalog cannot be the output topic: it is one of Railgun's own"),
        ({"topic": "p.inputs"}, "it is one of Railgun's own"),
        ({"dead": "p.replies.17"}, "it is one of Railgun's own"),
    ],
)
def test_a_second_use_is_refused(output: dict[str, str], why: str) -> None:
    said = refusal(stream("s", **output), known=(OTHER,))
    assert said is not None
    assert said.startswith("s: ")
    assert why in said
    assert said.endswith("; name another one")
    assert refusal(OTHER, stream("s", **output)) is not None


@pytest.mark.parametrize(
    ("topic", "why"),
    [
        ("mine", "it is the output topic of this stream"),
        ("gone", "it is the topic of dead letters of this stream"),
        ("scored", "it is the output topic of another stream"),
        ("rejected", "it is the topic of dead letters of another stream"),
        ("p.s.dead", "it is the topic of dead letters of this stream"),
        ("p.s.by.x", "it is a topic of the tasks of this stream"),
        ("p.other.ask.x", "it is a topic of the tasks of another stream"),
        ("p.catalog", "names with p. are this cluster's own, but for p.STREAM.in"),
        ("p.s.out", "names with p. are this cluster's own"),
        ("p.later.out", "names with p. are this cluster's own"),
        ("p.later.by.in", "names with p. are this cluster's own"),
        ("p.in", "names with p. are this cluster's own"),
    ],
)
def test_what_the_cluster_writes_is_not_read(topic: str, why: str) -> None:
    said = refusal(stream("s", "a", topic, topic="mine", dead="gone"), known=(OTHER,))
    assert said is not None
    assert said.startswith(f"s: {topic} cannot be an input topic: {why}")


def test_any_other_topic_may_feed_several_streams() -> None:
    several = stream("s", "fed", "p.s.in", "p.other.in", "p.later.in", "q.s.out", "in")
    assert refusal(several, known=(OTHER, stream("third", "p.s.in"))) is None
    # The topic that is named after a stream is kept for its events, whatever it reads now.
    assert refusal(stream("s", topic="p.third.in"), known=(stream("third", "a"),)) is not None
    assert refusal(stream("s", topic="freed"), known=(stream("third", "a"),)) is None


def test_what_is_no_second_use() -> None:
    assert refusal(stream("s"), known=(OTHER,)) is None
    assert refusal(stream("s", topic="mine", dead="rejected"), known=(OTHER,)) is None
    assert refusal(stream("s", dead="p.other.dead"), known=(OTHER,)) is None
    # The other one goes, or gives its topic up.
    assert refusal(DropStream(1, "other"), stream("s", topic="scored"), known=(OTHER,)) is None
    assert refusal(stream("other"), stream("s", topic="scored"), known=(OTHER,)) is None
    # A stream may be changed whatever other streams are like.
    assert refusal(stream("third"), known=(OTHER, stream("s", topic="scored"))) is None


def test_a_new_stream_does_not_take_the_topic_of_another_ones_replies() -> None:
    for topic in ("p.s.in", "p.s.by.x", "p.s.out"):
        said = refusal(stream("s"), known=(stream("other", topic=topic),))
        assert said is not None
        assert f"s: {topic} cannot be " in said
        assert "it is the output topic of another stream" in said
