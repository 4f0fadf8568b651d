"""`railgun apply`: compares definitions with a server, reports differences, and creates the missing parts."""

from collections.abc import Sequence
from dataclasses import dataclass

from railgun.catalog.catalog import FIRST_VERSION, Catalog, Difference, missing_changes
from railgun.catalog.changes import AddDerived, AddMetric, Change, PutStream
from railgun.catalog.definitions import definitions_from_sql
from railgun.catalog.errors import CatalogError, DefinitionError
from railgun.catalog.model import Definitions
from railgun.catalog.stream_reading import definition_to_json, stream_from_json
from railgun.client.client import Client


@dataclass(frozen=True, slots=True)
class Plan:
    """The changes that a definitions file needs on a server. Nothing is done about `differences`."""

    changes: tuple[Change, ...]
    differences: tuple[Difference, ...]


def plan(client: Client, definitions: Definitions) -> Plan:
    """Compare definitions with the registered streams and metrics. Raises ClientError, DefinitionError."""
    registered = _registered(client, definitions)
    changes, differences = missing_changes(registered, definitions)
    if not differences:
        _check(registered, changes)
    return Plan(tuple(changes), tuple(differences))


def _check(registered: Catalog, changes: Sequence[Change]) -> None:
    """Raise DefinitionError if a change does not fit the changes before it. This runs before any change is made."""
    for change in changes:
        try:
            registered.apply(change)
        except CatalogError as error:
            what = ("metrics",) if isinstance(change, AddMetric | AddDerived) else ("streams",)
            raise DefinitionError(what, str(error), "nothing was applied") from error


def carry_out(client: Client, change: Change) -> str:
    """Make one change of a plan and return its description. Raises ClientError.

    The caller must make the changes in the order of the plan.
    """
    match change:
        case PutStream() if change.schema_version == FIRST_VERSION:
            client.create_stream(definition_to_json(change.stream))
            return f"stream {change.stream.name}"
        case PutStream():
            client.evolve_stream(change.stream.name, {"fields": definition_to_json(change.stream)["fields"]})
            return f"stream {change.stream.name}, fields"
        case AddMetric():
            client.add_metrics(change.metric.stream, change.metric.sql)
            return f"metric {change.metric.stream}.{change.metric.name}"
        case AddDerived():
            client.add_metrics(change.stream, change.sql)
            return f"metric {change.stream}.{change.name}"
    raise AssertionError(change)


def filled(client: Client, stream: str) -> tuple[float, list[str]]:
    """Return the average progress of a stream's warming metrics, from 0 to 1, and their names."""
    warming = [metric for metric in client.metrics(stream) if metric.get("warming")]
    shares = [float(metric.get("filled") or 0.0) for metric in warming]
    return (sum(shares) / len(shares) if shares else 1.0), [str(metric["name"]) for metric in warming]


def _registered(client: Client, definitions: Definitions) -> Catalog:
    """Make a catalogue of those streams of the server that the definitions name."""
    catalog = Catalog()
    for body in client.streams():
        if body.get("name") not in definitions.streams:
            continue
        stream = stream_from_json(body)
        catalog.apply(PutStream(catalog.last_place + 1, stream, FIRST_VERSION))
        for metric in client.metrics(stream.name):
            entry = catalog.streams[stream.name]
            made = definitions_from_sql(str(metric["sql"]), stream, entry.known)
            for change in missing_changes(catalog, made)[0]:
                catalog.apply(change)
    return catalog
