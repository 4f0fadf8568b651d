"""Requests to changes of the catalogue: what is asked for in words, checked against what is registered."""

from collections.abc import Iterable, Mapping
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
from railgun.catalog.definitions import definitions_from_sql, load_definitions, parse_definitions
from railgun.catalog.errors import CatalogError, DefinitionError, meant
from railgun.catalog.model import Definitions, StreamDefinition
from railgun.catalog.stream_reading import stream_from_json, stream_to_json
from railgun.registry.errors import (
    DefinitionsError,
    DifferentDefinitionsError,
    UnknownNameError,
    UnknownStreamError,
)


def read_definitions(source: Definitions | Path | str) -> Definitions:
    """Definitions, the file that a path names, or a text of several lines. Raises DefinitionError, OSError."""
    if isinstance(source, Definitions):
        return source
    if isinstance(source, str) and "\n" in source:
        return parse_definitions(source)
    return load_definitions(source)


def stream_entry(catalog: Catalog, stream: str) -> StreamEntry:
    """A stream's entry. Raises UnknownNameError."""
    entry = catalog.streams.get(stream)
    if entry is None:
        raise UnknownStreamError(unknown_name("stream", stream, catalog.streams), stream, catalog.streams)
    return entry


def missing(catalog: Catalog, definitions: Definitions) -> list[Change]:
    """What creates what is missing. Raises DifferentDefinitionsError, DefinitionError."""
    changes, differences = missing_changes(catalog, definitions)
    if differences:
        raise DifferentDefinitionsError(differences)
    return changes


def new_stream(catalog: Catalog, requested: StreamDefinition) -> list[Change]:
    """What creates a stream; nothing where it is registered just so. Raises DifferentDefinitionsError."""
    changes = missing(catalog, Definitions({requested.name: requested}))
    entry = catalog.streams.get(requested.name)
    if entry is not None and entry.stream.fields != requested.fields:
        registered, asked = (", ".join(each.name for each in of.fields) for of in (entry.stream, requested))
        raise DifferentDefinitionsError([Difference(requested.name, "fields", registered, asked)])
    return changes


def metrics_of_query(catalog: Catalog, stream: str, sql: str) -> Definitions:
    """The metrics that a query makes, or the derived ones that a DERIVE makes, registered or not.

    Raises DefinitionError, UnknownNameError.
    """
    entry = stream_entry(catalog, stream)
    return definitions_from_sql(sql, entry.stream, entry.known)


def new_metrics(catalog: Catalog, stream: str, sql: str) -> list[AddMetric | AddDerived]:
    """The metrics of a query or a DERIVE. Raises DefinitionError, DefinitionsError, UnknownNameError."""
    entry = stream_entry(catalog, stream)
    made = metrics_of_query(catalog, stream, sql)
    try:
        for name in made.names:
            entry.check_new(name)
    except CatalogError as error:
        raise DefinitionsError(str(error)) from error
    return [each for each in missing_changes(catalog, made)[0] if isinstance(each, AddMetric | AddDerived)]


def dropped_metric(catalog: Catalog, stream: str, name: str) -> Change:
    """The end of a metric. Raises UnknownNameError."""
    registered = stream_entry(catalog, stream).registered
    found = registered.find(name)
    if found is None:
        raise UnknownNameError(unknown_name("metric", name, registered.names, stream))
    return DropMetric(catalog.last_place + 1, stream, name, found.added)


def dropped_stream(catalog: Catalog, stream: str) -> Change:
    """The end of a stream. Raises UnknownNameError."""
    stream_entry(catalog, stream)
    return DropStream(catalog.last_place + 1, stream)


def added_field(catalog: Catalog, stream: str, name: str, type_: str) -> Change:
    """A stream with one field more, at its end. Raises DefinitionError, UnknownNameError."""
    fields = stream_to_json(stream_entry(catalog, stream).stream)["fields"]
    if name in fields:
        raise DefinitionError(("fields", name), f"{stream} has a field {name} already: {fields[name]}")
    return evolved(catalog, stream, {"fields": {**fields, name: type_}})


def changed_stream(catalog: Catalog, stream: str, settings: Mapping[str, Any]) -> list[Change]:
    """A stream with other settings and more fields; nothing where it is so already. Raises as `evolved` does."""
    entry = stream_entry(catalog, stream)
    fields = stream_to_json(entry.stream)["fields"]
    added = settings.get("fields", {})
    for name in added if isinstance(added, Mapping) else ():
        if name in fields and fields[name] != added[name]:
            raise DefinitionError(("fields", name), f"{stream} has a field {name} already: {fields[name]}")
    requested = {**settings, "fields": {**fields, **added} if isinstance(added, Mapping) else added}
    change = evolved(catalog, stream, requested)
    return [] if change.stream == entry.stream else [change]


def evolved(catalog: Catalog, stream: str, settings: Mapping[str, Any]) -> PutStream:
    """A stream with other settings, by the keys of definitions files.

    Raises DefinitionError, CatalogError (what is fixed at creation), UnknownNameError.
    """
    entry = stream_entry(catalog, stream)
    requested = stream_from_json({**stream_to_json(entry.stream), **settings})
    check_evolution(entry.stream, requested)
    return PutStream(catalog.last_place + 1, requested, next_version(entry, requested))


def unknown_name(what: str, name: str, known: Iterable[str], of: str | None = None) -> str:
    """What is said of a name that there is not, with the nearest that there is. of: the stream, of a metric."""
    hint = meant(name, known)
    of_it = "" if of is None else f" of {of}"
    return f"there is no {what} {name[:80]!r}{of_it}" + (f"; {hint}" if hint else "")
