"""Schemas of Avro by which a few bytes would end the process, or take all memory, are refused; their like are not."""

import json
from typing import Any

import pytest

from frontend.topics.avro import AvroReader
from frontend.topics.errors import ValueUnreadableError
from railgun.catalog.stream_reading import stream_from_json

FIELDS = stream_from_json({"name": "s", "fields": {"x": "long"}}).incoming(1)


def record(name: str, *types: Any) -> dict[str, Any]:
    fields = [{"name": f"f{at}", "type": each} for at, each in enumerate(types)]
    return {"type": "record", "name": name, "fields": fields}


def array(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def nested(levels: int) -> Any:
    return "long" if levels == 0 else array(nested(levels - 1))


def chain(levels: int) -> list[Any]:
    return [record("T0", "long"), *(record(f"T{at}", f"T{at - 1}") for at in range(1, levels))]


# Each type three times within the next one: what looks at each again does not come to an end.
WIDE = [record("T0", "long"), *(record(f"T{at}", *[f"T{at - 1}"] * 3) for at in range(1, 90))]


@pytest.mark.parametrize(
    ("schema", "references"),
    [
        (record("A", record("B", "string"), "B", ["null", "B"], array("B"), array(["null", "long"])), []),
        (
            record(
                "A", {"type": "map", "values": "null"}, array({"type": "enum", "name": "E", "symbols": ["x"]})
            ),
            [],
        ),
        (record("A", "T50"), chain(51)),
        (record("A", "T89"), [WIDE]),
        (record("A", nested(90)), []),
    ],
)
def test_schemas_that_are_taken(schema: Any, references: list[Any]) -> None:
    AvroReader("it", json.dumps(schema), list(map(json.dumps, references)), FIELDS)


ITSELF, NO_BYTES = "contains itself; such events are not read", "an array whose elements have no bytes"


@pytest.mark.parametrize(
    ("schema", "references", "why"),
    [
        (record("A", ["null", "A"]), [], f"the type A {ITSELF}"),
        ({**record("A", ["null", "n.A"]), "namespace": "n"}, [], f"the type n.A {ITSELF}"),
        (record("A", {"type": "map", "values": record("B", array("A"))}), [], f"the type A {ITSELF}"),
        (record("A", "B"), [record("B", ["null", "B"])], f"the type B {ITSELF}"),
        (record("A", array("null")), [], NO_BYTES),
        (record("A", array(record("B", "null", record("C")))), [], NO_BYTES),
        (record("A", array({"type": "fixed", "name": "F", "size": 0})), [], NO_BYTES),
        (record("A", "T199"), [chain(200)], "its values have more than 100 levels"),
        (record("A", "T4999"), [chain(5_000)], "its values have more than 100 levels"),
        (record("A", nested(120)), [], "its values have more than 100 levels"),
        (record("A", nested(450)), [], "recursion"),
    ],
)
def test_schemas_that_are_not(schema: Any, references: list[Any], why: str) -> None:
    with pytest.raises(ValueUnreadableError, match=why):
        AvroReader("it", json.dumps(schema), list(map(json.dumps, references)), FIELDS)
