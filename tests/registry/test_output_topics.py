"""Replies and dead letters go where nothing else of the cluster is written or read."""

from typing import Any

import pytest

from railgun.catalog.changes import Change, DropStream, PutStream
from railgun.catalog.model import StreamDefinition
from railgun.catalog.stream_reading import stream_from_json
from railgun.registry.errors import DefinitionsError
from railgun.registry.output_topics import check_outputs
from railgun.registry.topics import Topics

TOPICS = Topics("p")


def stream(name: str, **output: Any) -> StreamDefinition:
    return stream_from_json(
        {"name": name, "partitioners": ["x", "*"], "fields": {"x": "long"}, "output": output or None}
    )


def refusal(*changes: Change | StreamDefinition, known: tuple[StreamDefinition, ...] = ()) -> str | None:
    made = [PutStream(1, each, 1) if isinstance(each, StreamDefinition) else each for each in changes]
    try:
        check_outputs(made, {each.name: each for each in known}, TOPICS)
    except DefinitionsError as error:
        return str(error)
    return None


OTHER = stream("other", topic="scored", dead="rejected")


@pytest.mark.parametrize(
    ("output", "why"),
    [
        ({"topic": "scored"}, "scored cannot be the output topic: it is the output topic of another stream"),
        ({"topic": "rejected"}, "it is the topic of dead letters of another stream"),
        ({"dead": "scored"}, "scored cannot be the topic of dead letters: it is the output topic of another"),
        ({"topic": "p.other.in"}, "it is an input topic of another stream"),
        ({"topic": "p.s.in"}, "it is an input topic of this stream"),
        ({"dead": "p.s.in"}, "it is an input topic of this stream"),
        ({"topic": "p.s.by.x"}, "it is a topic of the tasks of this stream"),
        ({"topic": "p.other.all"}, "it is a topic of the tasks of another stream"),
        ({"dead": "p.other.ask.x"}, "it is a topic of the tasks of another stream"),
        # Units write there, whatever the definition says.
        ({"topic": "p.other.dead"}, "it is the topic of dead letters of another stream"),
        ({"topic": "p.s.dead", "dead": "d"}, "it is the topic of dead letters of this stream"),
        ({"topic": "p.catalog"}, "p.catalog cannot be the output topic: it is one of Railgun's own"),
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
