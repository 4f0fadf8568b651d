"""Where a changed mapping begins in topics is in the catalogue, on a real broker: the first record of it counts."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from railgun.catalog.definitions import parse_definitions
from railgun.messaging.kafka.settings import KafkaSettings
from railgun.registry.evolution import changed_stream, missing
from railgun.registry.input_topics import MappedFrom
from railgun.registry.kafka_registry import KafkaRegistry
from tests.broker.own_topics import own_prefix

STREAM = """
[streams.s]
id = "id"
[streams.s.fields]
id = "string"
n = "long"
"""


@pytest.fixture
def two(kafka: str) -> Iterator[tuple[KafkaRegistry, KafkaRegistry]]:
    """Two registries of one cluster, as two front-ends have them."""
    prefix, settings = own_prefix("r"), KafkaSettings(kafka, pass_through={"fetch.wait.max.ms": 10})
    with ExitStack() as stack:
        one, other = (stack.enter_context(KafkaRegistry(settings, prefix)) for _ in range(2))
        yield one, other


def test_where_a_mapping_begins_is_recorded_once(two: tuple[KafkaRegistry, KafkaRegistry]) -> None:
    one, other = two
    one.change(lambda catalog: missing(catalog, parse_definitions(STREAM)))
    created = one.snapshot().catalog.streams["s"].created
    assert other.mapped() == {created: 0}
    (first,) = one.number_topics(created, [("t", "id-1")], lambda _: [5])
    (change,) = one.change(
        lambda catalog: changed_stream(catalog, "s", {"fields": {"n": {"type": "long", "from": "a.n"}}})
    )
    assert other.mapped() == {created: change.place}

    expected = (MappedFrom(change.place, (7, 0)),)
    assert one.map_topics(created, change.place, {"id-1": [7, 0]})["id-1"].mappings == expected
    assert other.map_topics(created, change.place, {"id-1": [9, 9]})["id-1"].mappings == expected
    # All else of the topic stays, and a later mapping is not taken back.
    later = other.map_topics(created, change.place + 2, {"id-1": [8, 1]})["id-1"]
    assert (later.name, later.number, later.starts) == (first.name, first.number, (5,))
    assert later.mappings == (*expected, MappedFrom(change.place + 2, (8, 1)))
    assert one.map_topics(created, change.place + 1, {"id-1": [9, 9]}) == {"id-1": later}
    # A topic that comes later has one mapping from its beginning on.
    known, new = one.number_topics(created, [("t", "id-1"), ("u", "id-2")], lambda _: [], change.place + 2)
    assert (known, new.mappings, new.mapping_at(0, 0)) == (
        later,
        (MappedFrom(change.place + 2),),
        change.place + 2,
    )
