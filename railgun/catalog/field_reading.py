"""Converts the fields of a stream's definition from and to plain tables: types, paths and units."""

from collections.abc import Mapping
from typing import Any

from railgun.catalog.errors import DefinitionError, Location
from railgun.catalog.model import FieldDefinition
from railgun.catalog.names import check_name
from railgun.catalog.tables import Table
from railgun.language.types import Kind, Type, TypeTextError, parse_type
from railgun.wire.path import TIMESTAMP, Path, PathTextError, parse_path

FIELDS_LIMIT = 1_000
UNITS = ("s", "ms", "us", "ns")
_KEYS = ("type", "from", "unit")


def fields_from_table(body: object, loc: Location) -> tuple[FieldDefinition, ...]:
    """Reads fields from a table, in which each is its type or a table with more. Raises DefinitionError."""
    if not isinstance(body, Mapping):
        raise DefinitionError(loc, "a table of field types by name belongs here")
    if len(body) > FIELDS_LIMIT:
        raise DefinitionError(loc, f"a stream has at most {FIELDS_LIMIT} fields, not {len(body)}")
    return tuple(_field(name, said, (*loc, str(name)[:80])) for name, said in body.items())


def field_to_json(field: FieldDefinition) -> str | dict[str, str]:
    """Returns what a definition says of a field: its type, or a table with path and unit too."""
    if not field.says_where:
        return str(field.type)
    return {"type": str(field.type), **place_to_json(field)}


def place_to_json(field: FieldDefinition) -> dict[str, str]:
    """Returns the path and the unit that a definition says."""
    path = {} if field.path is None else {"from": field.path.text}
    return path | ({"unit": field.unit} if field.unit else {})


def field_text(field: FieldDefinition) -> str:
    """Returns a field in words, without its name: `timestamp from header.created unit s`."""
    return " ".join([str(field.type), *(f"{key} {said}" for key, said in place_to_json(field).items())])


def with_place(field: FieldDefinition, body: object, loc: Location) -> FieldDefinition:
    """Returns a field with the path and the unit that `place_to_json` has said. Raises DefinitionError."""
    return _placed(field.name, field.type, Table(body, loc, _KEYS[1:]))


def _field(name: object, said: object, loc: Location) -> FieldDefinition:
    checked = check_name(name, "field", loc)
    if not isinstance(said, Mapping):
        return FieldDefinition(checked, said_type(said, loc))
    table = Table(said, loc, _KEYS)
    return _placed(checked, said_type(table.required("type", "the field's type"), table.at("type")), table)


def _placed(name: str, type_: Type, table: Table) -> FieldDefinition:
    unit = table.choice("unit", UNITS, "")
    if unit and type_.kind is not Kind.TIMESTAMP:
        raise DefinitionError(table.at("unit"), f"{name} is {type_}; a unit is of a timestamp's numbers")
    text = table.text("from")
    if text is None:
        return FieldDefinition(name, type_, None, unit)
    try:
        path = parse_path(text)
    except PathTextError as error:
        raise DefinitionError(table.at("from"), error.message, error.hint) from None
    if path.of_record == TIMESTAMP and type_.kind is not Kind.TIMESTAMP:
        raise DefinitionError(table.at("from"), f"{name} is {type_}; {TIMESTAMP} is a timestamp")
    return FieldDefinition(name, type_, None if path == Path(text, (name,)) else path, unit)


def said_type(text: Any, loc: Location) -> Type:
    """Reads a type. Raises DefinitionError."""
    if not isinstance(text, str):
        raise DefinitionError(loc, "a field's type is text", 'as in "string" or "decimal(12,2)"')
    try:
        return parse_type(text)
    except TypeTextError as error:
        raise DefinitionError(loc, error.message, error.hint) from None
