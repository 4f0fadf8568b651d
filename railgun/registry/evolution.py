"""Turns requests into changes of the catalogue, after checking them against what is registered.

Engines, front-ends and Spark jobs call it. It does no I/O.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from railgun.catalog.catalog import (
    Catalog,
    Difference,
    StreamEntry,
    check_evolution,
    fixed_place,
    missing_changes,
    next_version,
)
from railgun.catalog.changes import AddDerived, AddMetric, Change, DropMetric, DropStream, PutStream
from railgun.catalog.definitions import definitions_from_sql, load_definitions, parse_definitions
from railgun.catalog.errors import CatalogError, DefinitionError, meant
from railgun.catalog.field_reading import field_text, field_to_json, fields_from_table
from railgun.catalog.model import Definitions, FieldDefinition, StreamDefinition
from railgun.catalog.stream_reading import definition_to_json, stream_from_json
from railgun.registry.errors import (
    DefinitionsError,
    DifferentDefinitionsError,
    UnknownNameError,
    UnknownStreamError,
)


def read_definitions(source: Definitions | Path | str) -> Definitions:
    """Return definitions, read from a file if `source` is its path, or from a text of several lines.

    Raises DefinitionError, OSError.
    """
    if isinstance(source, Definitions):
        return source
    if isinstance(source, str) and "\n" in source:
        return parse_definitions(source)
    return load_definitions(source)


def stream_entry(catalog: Catalog, stream: str) -> StreamEntry:
    """Return a stream's entry. Raises UnknownNameError."""
    entry = catalog.streams.get(stream)
    if entry is None:
        raise UnknownStreamError(unknown_name("stream", stream, catalog.streams), stream, catalog.streams)
    return entry


def missing(catalog: Catalog, definitions: Definitions) -> list[Change]:
    """Return the changes that create what is missing. Raises DifferentDefinitionsError, DefinitionError."""
    changes, differences = missing_changes(catalog, definitions)
    if differences:
        raise DifferentDefinitionsError(differences)
    return changes


def new_stream(catalog: Catalog, requested: StreamDefinition) -> list[Change]:
    """Return the changes that create a stream; none if the same one is registered. Raises DifferentDefinitionsError."""
    changes = missing(catalog, Definitions({requested.name: requested}))
    entry = catalog.streams.get(requested.name)
    if entry is not None and entry.stream.fields != requested.fields:
        registered, asked = (", ".join(each.name for each in of.fields) for of in (entry.stream, requested))
        raise DifferentDefinitionsError([Difference(requested.name, "fields", registered, asked)])
    return changes


def metrics_of_query(catalog: Catalog, stream: str, sql: str) -> Definitions:
    """Return the metrics of a query, or the derived metrics of a DERIVE, whether they are registered or not.

    Raises DefinitionError, UnknownNameError.
    """
    entry = stream_entry(catalog, stream)
    return definitions_from_sql(sql, entry.stream, entry.known)


def new_metrics(catalog: Catalog, stream: str, sql: str) -> list[AddMetric | AddDerived]:
    """Return the changes that add the metrics of a query or a DERIVE.

    Raises DefinitionError, DefinitionsError, UnknownNameError.
    """
    entry = stream_entry(catalog, stream)
    made = metrics_of_query(catalog, stream, sql)
    try:
        for name in made.names:
            entry.check_new(name)
    except CatalogError as error:
        raise DefinitionsError(str(error)) from error
    return [each for each in missing_changes(catalog, made)[0] if isinstance(each, AddMetric | AddDerived)]


def dropped_metric(catalog: Catalog, stream: str, name: str) -> Change:
    """Return the change that drops a metric. Raises UnknownNameError."""
    registered = stream_entry(catalog, stream).registered
    found = registered.find(name)
    if found is None:
        raise UnknownNameError(unknown_name("metric", name, registered.names, stream))
    return DropMetric(catalog.last_place + 1, stream, name, found.added)


def dropped_stream(catalog: Catalog, stream: str) -> Change:
    """Return the change that drops a stream. Raises UnknownNameError."""
    stream_entry(catalog, stream)
    return DropStream(catalog.last_place + 1, stream)


def added_field(catalog: Catalog, stream: str, name: str, type_: str | Mapping[str, str]) -> Change:
    """Return the change that adds a field at the end of a stream's. Raises DefinitionError, UnknownNameError.

    type_: a type, or a table of `type`, `from` and `unit`.
    """
    known = stream_entry(catalog, stream).stream.fields
    for field in known:
        if field.name == name:
            raise _there_already(stream, field)
    fields = {field.name: field_to_json(field) for field in known}
    return evolved(catalog, stream, {"fields": {**fields, name: type_}})


def changed_stream(catalog: Catalog, stream: str, settings: Mapping[str, Any]) -> list[Change]:
    """Return the changes that give a stream other settings and more fields; none if it has them.

    Raises as `evolved` does.
    """
    entry = stream_entry(catalog, stream)
    fields = {field.name: field_to_json(field) for field in entry.stream.fields}
    added = settings.get("fields", {})
    if isinstance(added, Mapping):
        requested_fields = {field.name: field for field in fields_from_table(added, ("fields",))}
        for field in entry.stream.fields:
            wanted = requested_fields.get(field.name, field)
            if (wanted.name, wanted.type) == (field.name, field.type) and wanted != field:
                raise DefinitionError(("fields", field.name), fixed_place(field, wanted))
            if wanted != field:
                raise _there_already(stream, field)
        added = {**fields, **added}
    requested = {**settings, "fields": added}
    change = evolved(catalog, stream, requested)
    return [] if change.stream == entry.stream else [change]


def _there_already(stream: str, field: FieldDefinition) -> DefinitionError:
    return DefinitionError(
        ("fields", field.name), f"{stream} has a field {field.name} already: {field_text(field)}"
    )


def evolved(catalog: Catalog, stream: str, settings: Mapping[str, Any]) -> PutStream:
    """Return the change that gives a stream other settings. settings: by the keys of definitions files.

    Raises DefinitionError, UnknownNameError, and CatalogError for a setting that is fixed at creation.
    """
    entry = stream_entry(catalog, stream)
    requested = stream_from_json({**definition_to_json(entry.stream), **settings})
    check_evolution(entry.stream, requested)
    return PutStream(catalog.last_place + 1, requested, next_version(entry, requested))


def unknown_name(what: str, name: str, known: Iterable[str], of: str | None = None) -> str:
    """Return the message for an unknown name, with the nearest known one. of: the stream, if `name` is a metric's."""
    hint = meant(name, known)
    of_it = "" if of is None else f" of {of}"
    return f"there is no {what} {name[:80]!r}{of_it}" + (f"; {hint}" if hint else "")
