"""Converts the computed fields of a stream's definition, and tables of time zones, from and to plain tables."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from railgun.catalog.errors import DefinitionError, Location
from railgun.catalog.field_reading import said_type
from railgun.catalog.names import check_name
from railgun.catalog.tables import Table
from railgun.language.computed import ComputedField, ComputedFieldError, resolve_computed
from railgun.language.reading import CircleError
from railgun.language.types import Type
from railgun.language.zones import Zone, Zones, pinned_zone, zone_from_json

EXPRESSION = "as"
_KEYS = ("type", EXPRESSION)
_ZONES = "zones"


def is_computed(said: object) -> bool:
    """Returns whether a definition's field has an expression."""
    return isinstance(said, Mapping) and EXPRESSION in said


def computed_from_table(
    body: Mapping[Any, Any],
    recorded: Mapping[str, Type],
    stream: str,
    loc: Location,
    zones_of: Callable[[str], Zones] = lambda _: pinned_zone,
) -> tuple[ComputedField, ...]:
    """Reads the computed fields among the fields of a table. Raises DefinitionError.

    recorded: the types of the recorded fields.  stream: the stream's name.
    zones_of: by the name of a computed field, what finds its time zones.
    """
    tables = {
        check_name(name, "field", (*loc, str(name)[:80])): Table(said, (*loc, str(name)), _KEYS)
        for name, said in body.items()
        if is_computed(said)
    }
    texts = {name: table.text(EXPRESSION) or "" for name, table in tables.items()}
    try:
        made = resolve_computed(texts, recorded, stream, zones_of)
    except CircleError as error:
        raise DefinitionError(
            (*loc, error.circle[0]), str(error), "take one of these names out of an expression"
        ) from None
    except ComputedFieldError as error:
        raise DefinitionError((*loc, error.name, EXPRESSION), str(error)) from error
    for each in made:
        said = tables[each.name].get("type")
        if said is not None and said_type(said, tables[each.name].at("type")) != each.type:
            raise DefinitionError(
                tables[each.name].at("type"),
                f"{each.text} is {each.type}, not {said}",
                "leave the type out, or CAST",
            )
    return tuple(made)


def kept_zones(known: Iterable[ComputedField]) -> Callable[[str], Zones]:
    """Returns what finds the time zones of computed fields. Known fields keep theirs, others get the pinned tables."""
    tables = {each.name: {zone.name: zone for zone in each.zones} for each in known}

    def zones_of(field: str) -> Zones:
        own = tables.get(field, {})
        return lambda name: own.get(name) or pinned_zone(name)

    return zones_of


def computed_to_json(field: ComputedField) -> dict[str, Any]:
    """Returns what a definition says of a computed field."""
    return {"type": str(field.type), EXPRESSION: field.text}


def computed_text(field: ComputedField) -> str:
    """Returns a computed field in words, without its name: `string as SUBSTR(card, 1, 6)`."""
    return f"{field.type} {EXPRESSION} {field.text}"


def computed_to_record(fields: Sequence[ComputedField]) -> dict[str, Any]:
    """Returns computed fields as a stream's records have them, with the tables of their time zones."""
    return {each.name: {**computed_to_json(each), **zones_to_json(each.zones)} for each in fields}


def computed_from_record(
    body: object, recorded: Mapping[str, Type], stream: str, loc: Location
) -> tuple[ComputedField, ...]:
    """Returns the computed fields that `computed_to_record` wrote. Raises DefinitionError."""
    if not isinstance(body, Mapping):
        raise DefinitionError(loc, "a table of computed fields by name belongs here")
    tables = {name: Table(said, (*loc, str(name)[:80]), (*_KEYS, _ZONES)) for name, said in body.items()}
    zones = {name: zones_from_json(body[name]) for name in tables}
    said = {name: {key: table.get(key) for key in _KEYS} for name, table in tables.items()}
    return computed_from_table(said, recorded, stream, loc, lambda name: zones[name].get)


def zones_to_json(zones: Sequence[Zone]) -> dict[str, Any]:
    """Returns the part of a record that has tables of time zones; nothing if there are none."""
    return {_ZONES: {zone.name: zone.to_json() for zone in zones}} if zones else {}


def zones_from_json(body: Mapping[str, Any]) -> dict[str, Zone]:
    """Returns the time zones of a record by name. Raises DefinitionError."""
    tables = body.get(_ZONES, {})
    if not isinstance(tables, Mapping):
        raise DefinitionError((_ZONES,), "a table of time zones by name belongs here")
    try:
        return {zone: zone_from_json(zone, table) for zone, table in tables.items()}
    except ValueError as error:
        raise DefinitionError((_ZONES,), str(error)) from error
