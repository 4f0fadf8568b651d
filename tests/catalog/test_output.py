"""Where replies go, what keys them and which fields they repeat, as definitions say it."""

from typing import Any

import pytest

from railgun.catalog.catalog import Catalog, missing_changes
from railgun.catalog.changes import PutStream
from railgun.catalog.definitions import parse_definitions
from railgun.catalog.errors import CatalogError, DefinitionError
from railgun.catalog.model import OutputDefinition, ReplyKey, StreamDefinition
from railgun.catalog.stream_reading import definition_to_json, stream_from_json, stream_to_json
from railgun.registry.change_log import logged
from railgun.registry.evolution import changed_stream
from railgun.registry.origin import Made

TEXT = """
[streams.s]
partitioners = ["card"]
[streams.s.fields]
card = "string"
n = "long"
bin = { as = "SUBSTR(card, 1, 6)" }
"""
OUTPUT = """
[streams.s.output]
topic = "prod.payments.scored"
dead = "prod.payments-rejected_1"
key = "input"
include = ["bin", "n"]
"""


def stream_of(text: str) -> StreamDefinition:
    return parse_definitions(text).streams["s"]


def catalog_of(text: str) -> Catalog:
    catalog = Catalog()
    for change in missing_changes(catalog, parse_definitions(text))[0]:
        catalog.apply(change)
    return catalog


def test_an_output() -> None:
    stream = stream_of(TEXT + OUTPUT)
    assert stream.output == OutputDefinition(
        "prod.payments.scored", "prod.payments-rejected_1", ReplyKey.INPUT, ("bin", "n")
    )
    assert stream_from_json(definition_to_json(stream)) == stream
    # Tasks do not know it.
    assert stream_to_json(stream) == stream_to_json(stream_of(TEXT))


@pytest.mark.parametrize("more", ["", "[streams.s.output]\n", '[streams.s.output]\nkey = "id"\n'])
def test_what_says_the_default_says_nothing(more: str) -> None:
    assert stream_of(TEXT + more).output == OutputDefinition()
    assert definition_to_json(stream_of(TEXT + more)) == definition_to_json(stream_of(TEXT))


@pytest.mark.parametrize(
    ("output", "loc", "why"),
    [
        ("prod.scored", (), "a table with dead, include, key, topic belongs here, not text"),
        ({"topik": "a"}, ("topik",), "did you mean topic?"),
        ({"topic": 5}, ("topic",), "text belongs here, not a number"),
        ({"topic": ""}, ("topic",), "'' cannot name a topic"),
        ({"topic": "a/b"}, ("topic",), "letters, digits, '.', '_' and '-' (ASCII), at most 249"),
        ({"topic": "a" * 250}, ("topic",), "cannot name a topic"),
        ({"dead": ".."}, ("dead",), "'..' cannot name a topic"),
        ({"dead": "a\n"}, ("dead",), "cannot name a topic"),
        ({"topic": "a", "dead": "a"}, ("dead",), "a gets the replies"),
        ({"key": "card"}, ("key",), "no 'card' here"),
        ({"include": "card"}, ("include",), "a list of names belongs here, not text"),
        ({"include": []}, ("include",), "at least one is needed"),
        ({"include": ["card", "card"]}, ("include",), "a name stands here twice"),
        ({"include": ["crad"]}, ("include",), "there is no field 'crad'; did you mean card?"),
    ],
)
def test_what_is_no_output(output: Any, loc: tuple[str, ...], why: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        stream_from_json({**definition_to_json(stream_of(TEXT)), "output": output})
    assert caught.value.loc == ("output", *loc)
    assert why in str(caught.value)


def test_an_output_that_differs_is_said_and_left_alone() -> None:
    catalog = catalog_of(TEXT + OUTPUT)
    assert missing_changes(catalog, parse_definitions(TEXT + OUTPUT)) == ([], [])
    changes, (difference,) = missing_changes(catalog, parse_definitions(TEXT))
    assert changes == []
    assert str(difference) == (
        "s: output is topic prod.payments.scored; dead prod.payments-rejected_1; key input; include bin, n, the "
        "definition says not set"
    )
    grown = parse_definitions((TEXT + OUTPUT).replace('n = "long"', 'n = "long"\nmore = "long"'))
    (change,), _ = missing_changes(catalog, grown)
    assert isinstance(change, PutStream)
    assert change.stream.output == stream_of(TEXT + OUTPUT).output


def test_an_output_can_change() -> None:
    catalog = catalog_of(TEXT + OUTPUT)
    (change,) = changed_stream(catalog, "s", {"output": {"include": ["card"]}})
    assert isinstance(change, PutStream)
    assert change.stream.output == OutputDefinition(include=("card",))
    assert change.schema_version == 1
    assert logged(change, Made(), catalog).what.endswith(" -> include card")
    (change,) = changed_stream(catalog, "s", {"output": None})
    assert isinstance(change, PutStream)
    assert change.stream.output == OutputDefinition()
    assert logged(change, Made(), catalog).what.endswith(" -> unset")
    (change,) = changed_stream(catalog, "s", {"retention": "90d", "fields": {"more": "long"}})
    assert isinstance(change, PutStream)
    assert change.stream.output == stream_of(TEXT + OUTPUT).output
    assert (
        changed_stream(catalog, "s", {"output": definition_to_json(stream_of(TEXT + OUTPUT))["output"]}) == []
    )


def test_a_field_that_replies_repeat_stays() -> None:
    catalog = catalog_of(TEXT + OUTPUT)
    with pytest.raises(CatalogError, match="s: the field bin is in the include of the output"):
        changed_stream(catalog, "s", {"fields": {"bin": None}})
    with pytest.raises(DefinitionError, match="there is no field 'bin'"):
        changed_stream(catalog, "s", {"fields": {"bin": None}, "output": {"include": ["bin"]}})
    (change,) = changed_stream(catalog, "s", {"fields": {"bin": None}, "output": {"include": ["n"]}})
    assert isinstance(change, PutStream)
    assert list(change.stream.types) == ["card", "n"]
    # A field that comes with the change can be repeated at once.
    (change,) = changed_stream(catalog, "s", {"fields": {"x": "long"}, "output": {"include": ["x"]}})
    assert isinstance(change, PutStream)
    assert change.stream.output.include == ("x",)
