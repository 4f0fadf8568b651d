"""Turns requests into changes of the catalogue, after checking them against what is registered.

Engines, front-ends and Spark jobs call it. It does no I/O.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from railgun.catalog.catalog import (
    Catalog,
    Difference,
    StreamEntry,
    check_evolution,
    missing_changes,
    next_version,
)
from railgun.catalog.changes import AddDerived, AddMetric, Change, DropMetric, DropStream, PutStream
from railgun.catalog.computed_reading import is_computed
from railgun.catalog.definitions import definitions_from_sql, load_definitions, parse_definitions
from railgun.catalog.errors import CatalogError, DefinitionError, meant
from railgun.catalog.field_reading import fields_from_table
from railgun.catalog.mappings import fixed_place, fixed_roles
from railgun.catalog.model import Definitions, OutputDefinition, StreamDefinition
from railgun.catalog.stream_reading import definition_to_json, field_texts, stream_from_json
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


def new_stream(catalog: Catalog, requested: Definitions) -> list[Change]:
    """Return the changes that create a stream with metrics; if the same stream is registered, those that add what it
    lacks of the metrics.

    requested: one stream, and metrics of it alone.
    Raises DifferentDefinitionsError, DefinitionError.
    """
    (wanted,) = requested.streams.values()
    entry = catalog.streams.get(wanted.name)
    if entry is not None:
        # What differs of the stream comes first: metrics are made out for the requested one.
        missing(catalog, Definitions(requested.streams))
        if list(entry.stream.types) != list(wanted.types):
            registered, asked = (", ".join(of.types) for of in (entry.stream, wanted))
            raise DifferentDefinitionsError([Difference(wanted.name, "fields", registered, asked)])
    return missing(catalog, requested)


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

    type_: a type, or a table of `type`, `from` and `unit`, or of `type` and `as`.
    """
    known = stream_entry(catalog, stream).stream
    if name in known.types:
        raise _there_already(known, name)
    fields = definition_to_json(known)["fields"]
    return evolved(catalog, stream, {"fields": {**fields, name: type_}})


def dropped_field(catalog: Catalog, stream: str, name: str) -> Change:
    """Return the change that drops a computed field. Raises as `evolved` does."""
    (change,) = changed_stream(catalog, stream, {"fields": {name: None}})
    return change


def changed_stream(catalog: Catalog, stream: str, settings: Mapping[str, Any]) -> list[Change]:
    """Return the changes that give a stream other settings, more fields, other places of fields, and fewer computed
    fields; none if it has them.

    settings: by the keys of definitions files. A computed field that is null goes.
    Raises as `evolved` does.
    """
    entry = stream_entry(catalog, stream)
    # A new output names its fields itself.
    output = OutputDefinition() if "output" in settings else entry.stream.output
    fields = _changed_fields(replace(entry.stream, output=output), settings.get("fields", {}))
    requested = {**settings, "fields": fields}
    change = evolved(catalog, stream, requested)
    return [] if change.stream == entry.stream else [change]


def _changed_fields(stream: StreamDefinition, changed: object) -> object:
    """Return the fields of a definition with the changed ones. Raises DefinitionError."""
    if not isinstance(changed, Mapping):
        return changed
    computed = {each.name for each in stream.computed}
    for name in [name for name, said in changed.items() if said is None and name not in computed]:
        what = (
            "it is recorded; only computed fields can be dropped"
            if name in stream.types
            else "there is no such field"
        )
        raise DefinitionError(("fields", str(name)[:80]), what)
    added = {name: said for name, said in changed.items() if said is not None}
    _check_unread(stream, changed.keys() - added.keys())
    plain = {name: said for name, said in added.items() if not is_computed(said)}
    requested = {field.name: field for field in fields_from_table(plain, ("fields",))}
    roles = fixed_roles(stream)
    for field in stream.fields:
        wanted = requested.get(field.name, field)
        if wanted.type != field.type or field.name in added.keys() - plain.keys():
            raise _there_already(stream, field.name)
        if wanted != field and field.name in roles:
            raise DefinitionError(("fields", field.name), fixed_place(field, wanted, roles[field.name]))
    for name in computed & requested.keys():
        raise _there_already(stream, name)
    fields = definition_to_json(stream)["fields"]
    return {name: said for name, said in (fields | added).items() if name not in changed or name in added}


def _check_unread(stream: StreamDefinition, dropped: Collection[str]) -> None:
    """Raise CatalogError if a field that is to be dropped is a partitioner, or if replies or a computed field that
    stays read it.

    The catalogue checks metrics.
    """
    for name in sorted(dropped):
        if name in stream.partitioners:
            raise CatalogError(f"{stream.name}: the field {name} is a partitioner, and cannot be dropped")
        if name in stream.output.include:
            raise CatalogError(f"{stream.name}: the field {name} is in the include of the output")
        for each in stream.computed:
            if name in each.names and each.name not in dropped:
                raise CatalogError(
                    f"{stream.name}: the field {name} is read by the computed field {each.name}"
                )


def _there_already(stream: StreamDefinition, name: str) -> DefinitionError:
    text = field_texts(stream)[name]
    return DefinitionError(("fields", name), f"{stream.name} has a field {name} already: {text}")


def evolved(catalog: Catalog, stream: str, settings: Mapping[str, Any]) -> PutStream:
    """Return the change that gives a stream other settings. settings: by the keys of definitions files.

    Computed fields that are registered keep the tables of their time zones.
    Raises DefinitionError, UnknownNameError, and CatalogError for a setting that is fixed at creation.
    """
    entry = stream_entry(catalog, stream)
    requested = stream_from_json({**definition_to_json(entry.stream), **settings}, entry.stream)
    check_evolution(entry.stream, requested)
    return PutStream(catalog.last_place + 1, requested, next_version(entry, requested))


def unknown_name(what: str, name: str, known: Iterable[str], of: str | None = None) -> str:
    """Return the message for an unknown name, with the nearest known one. of: the stream, if `name` is a metric's."""
    hint = meant(name, known)
    of_it = "" if of is None else f" of {of}"
    return f"there is no {what} {name[:80]!r}{of_it}" + (f"; {hint}" if hint else "")
