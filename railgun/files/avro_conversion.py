"""Turns the stored values of Avro's logical types into values for the validator, wherever fields are in a record.

The reader of Avro files and input topics use it. It does no I/O.
"""

from collections.abc import Callable, Mapping, Sequence
from decimal import Context, Decimal
from typing import Any

import fastavro

from railgun.files.errors import ColumnError
from railgun.wire.finding import steps_of
from railgun.wire.path import Step
from railgun.wire.schema import Field, Schema, WireKind
from railgun.wire.values import Milliseconds

Convert = Callable[[Any], Any]

_TICKS_PER_MS = {"millis": 1, "micros": 1_000, "nanos": 1_000_000}
_TIMESTAMPS = {
    f"{prefix}timestamp-{unit}": ticks for unit, ticks in _TICKS_PER_MS.items() for prefix in ("", "local-")
}
# Logical types that events take as the type that is stored.
_PLAIN = ("uuid",)
_EXACT = Context(prec=100)


def without_logical_types(schema: Any) -> Any:
    """Return a schema for the same bytes with only primitive and complex types."""
    if isinstance(schema, list):
        return [without_logical_types(branch) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: value for key, value in schema.items() if key not in ("logicalType", "precision", "scale")}
    for key in ("type", "items", "values"):
        if key in kept:
            kept[key] = without_logical_types(kept[key])
    if "fields" in kept:
        kept["fields"] = [{**field, "type": without_logical_types(field["type"])} for field in kept["fields"]]
    return kept


class Conversions:
    """Converts the values of a schema's fields in records, where they are.

    place: what errors call the file or schema.
    written: the schema of the records, with logical types.
    Raises ColumnError for a logical type that a field cannot have, and what fastavro raises for a schema.
    """

    def __init__(self, place: str, written: Any, schema: Schema) -> None:
        named: dict[str, Any] = {}
        # What fastavro has parsed before, and has marked so, it would not look into.
        plain = {key: each for key, each in written.items() if not key.startswith("__")}
        parsed = fastavro.parse_schema(plain, named_schemas=named)
        found: dict[tuple[Step, ...], Convert] = {}
        for field in schema.fields:
            steps = steps_of(field)
            convert = _converter(place, field, _types_at(parsed, steps, named)) if steps else None
            if convert is not None:
                # Fields that read one place have one conversion: no logical type is of two kinds of fields.
                found[steps] = convert
        self._found = list(found.items())

    def convert(self, record: Any) -> None:
        """Convert the values in a record that was decoded without logical types."""
        for steps, convert in self._found:
            within: Any = record
            for step in steps[:-1]:
                within = _step(within, step)
            value = _step(within, steps[-1])
            if value is not None:
                within[steps[-1]] = convert(value)


def _step(value: Any, step: Step) -> Any:
    """Return what a step meets. What it cannot meet is left to the validator."""
    if isinstance(step, str):
        return value.get(step) if isinstance(value, dict) else None
    return value[step] if isinstance(value, list) and step < len(value) else None


def _types_at(schema: Any, steps: Sequence[Step], named: Mapping[str, Any]) -> list[Any]:
    """Return the types, other than null, that values at a path have."""
    types = _branches(schema, named)
    for step in steps:
        types = [inner for each in types for inner in _branches(_within(each, step), named)]
    return types


def _branches(schema: Any, named: Mapping[str, Any]) -> list[Any]:
    branches = schema if isinstance(schema, list) else [schema]
    return [_resolved(each, named) for each in branches if each not in ("null", None)]


def _resolved(schema: Any, named: Mapping[str, Any]) -> Any:
    """Return the type that a name stands for, or that a type wraps."""
    while True:
        if isinstance(schema, str) and schema in named:
            schema = named[schema]
        elif isinstance(schema, dict) and isinstance(schema.get("type"), dict | list):
            schema = schema["type"]
        else:
            return schema


def _within(schema: Any, step: Step) -> Any:
    """Return the type of what a step meets in values of a type; None for nothing."""
    if not isinstance(schema, dict):
        return None
    kind = schema.get("type")
    if isinstance(step, int):
        return schema["items"] if kind == "array" else None
    if kind == "map":
        return schema["values"]
    fields = schema["fields"] if kind in ("record", "error") else []
    return next((field["type"] for field in fields if field["name"] == step), None)


def _converter(place: str, field: Field, branches: Sequence[Any]) -> Convert | None:
    """Return the function that turns a field's stored values into those for the validator; None if none is needed.

    Raises ColumnError for a logical type that the field cannot have.
    """
    logical = [branch for branch in branches if isinstance(branch, dict) and branch.get("logicalType")]
    logical = [branch for branch in logical if branch["logicalType"] not in _PLAIN]
    if not logical:
        return None
    name = str(logical[0]["logicalType"])
    if len(branches) == 1 and field.type.kind is WireKind.TIMESTAMP and name in _TIMESTAMPS:
        ticks = _TIMESTAMPS[name]
        return lambda value: Milliseconds(value // ticks)
    if len(branches) == 1 and field.type.kind is WireKind.DECIMAL and name == "decimal":
        scale = int(logical[0].get("scale", 0))
        return lambda value: Decimal(int.from_bytes(value, "big", signed=True)).scaleb(-scale, _EXACT)
    types = " or ".join(_describe(branch) for branch in branches)
    raise ColumnError(place, f"column {field.place} is {types} and cannot be {field.type}; convert it before")


def _describe(branch: Any) -> str:
    if isinstance(branch, dict):
        return str(branch.get("logicalType") or branch.get("name") or branch.get("type"))
    return str(branch)
