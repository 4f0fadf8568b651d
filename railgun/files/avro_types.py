"""Avro schemas without logical types, so that values come as stored; and what is made of stored values."""

from collections.abc import Callable
from decimal import Context, Decimal
from typing import Any

from railgun.files.errors import ColumnError
from railgun.wire.schema import Field, Kind

Convert = Callable[[Any], Any]

_TICKS_PER_MS = {"millis": 1, "micros": 1_000, "nanos": 1_000_000}
_TIMESTAMPS = {
    f"{prefix}timestamp-{unit}": ticks for unit, ticks in _TICKS_PER_MS.items() for prefix in ("", "local-")
}
# Logical types that are the same thing to an event as what they are stored as.
_PLAIN = ("uuid",)
_EXACT = Context(prec=100)


def without_logical_types(schema: Any) -> Any:
    """The schema of the same bytes in which every type is a primitive or complex one."""
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


def converter(file: str, field: Field, schema: Any) -> Convert | None:
    """What makes a column's stored values what the door takes; None where they are so already.

    Raises ColumnError for a logical type that the field cannot be.
    """
    branches = [branch for branch in (schema if isinstance(schema, list) else [schema]) if branch != "null"]
    logical = [branch for branch in branches if isinstance(branch, dict) and branch.get("logicalType")]
    logical = [branch for branch in logical if branch["logicalType"] not in _PLAIN]
    if not logical:
        return None
    name = str(logical[0]["logicalType"])
    if len(branches) == 1 and field.type.kind is Kind.TIMESTAMP and name in _TIMESTAMPS:
        ticks = _TIMESTAMPS[name]
        return lambda value: value // ticks
    if len(branches) == 1 and field.type.kind is Kind.DECIMAL and name == "decimal":
        scale = int(logical[0].get("scale", 0))
        return lambda value: Decimal(int.from_bytes(value, "big", signed=True)).scaleb(-scale, _EXACT)
    said = " or ".join(_said(branch) for branch in branches)
    raise ColumnError(file, f"column {field.name} is {said} and cannot be {field.type}; convert it before")


def _said(branch: Any) -> str:
    if isinstance(branch, dict):
        return str(branch.get("logicalType") or branch.get("name") or branch.get("type"))
    return str(branch)
