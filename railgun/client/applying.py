"""`railgun apply`: compares definitions with a server, reports differences, and creates the missing parts."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from railgun.catalog.catalog import FIRST_VERSION, Catalog, Difference, missing_changes
from railgun.catalog.changes import AddDerived, AddMetric, Change, PutStream
from railgun.catalog.definitions import METRICS_AT_ONCE_LIMIT, REQUEST_LIMIT_BYTES, definitions_from_sql
from railgun.catalog.errors import CatalogError, DefinitionError
from railgun.catalog.model import Definitions, StreamDefinition
from railgun.catalog.stream_reading import definition_to_json, stream_from_json
from railgun.client.client import Client
from railgun.registry.entries import change_stream
from railgun.registry.errors import DefinitionsError
from railgun.registry.topic_uses import check_topics
from railgun.registry.topics import Topics

_METRIC = AddMetric | AddDerived


@dataclass(frozen=True, slots=True)
class Plan:
    """The changes that a definitions file needs on a server. Nothing is done about `differences`.

    unread: the streams of the file that name input topics, if the server has no broker to read them from.
    registered: the streams that were there, by name.
    """

    changes: tuple[Change, ...]
    differences: tuple[Difference, ...]
    unread: tuple[str, ...] = ()
    registered: Mapping[str, StreamDefinition] = field(default_factory=dict)


def plan(client: Client, definitions: Definitions) -> Plan:
    """Compare definitions with the registered streams and metrics. Raises ClientError, DefinitionError."""
    server = client.whoami()
    known = _known(client, definitions)
    registered = _registered(client, [known[name] for name in definitions.streams if name in known])
    changes, differences = missing_changes(registered, definitions)
    if not differences:
        _check(registered, changes)
        if prefix := server.get("topic_prefix"):
            _check_topics(changes, known, Topics(str(prefix)))
    # A server of an earlier release does not say whether it has a broker.
    has_none = "topic_prefix" in server and server["topic_prefix"] is None
    unread = [name for name, stream in definitions.streams.items() if stream.input.topics]
    return Plan(tuple(changes), tuple(differences), tuple(unread) if has_none else (), known)


def _check(registered: Catalog, changes: Sequence[Change]) -> None:
    """Raise DefinitionError if a change does not fit the changes before it. This runs before any change is made."""
    for change in changes:
        try:
            registered.apply(change)
        except CatalogError as error:
            what = ("metrics",) if isinstance(change, _METRIC) else ("streams",)
            raise DefinitionError(what, str(error), "nothing was applied") from error


def _check_topics(changes: Sequence[Change], known: dict[str, StreamDefinition], topics: Topics) -> None:
    """Raise DefinitionError if a topic that is written would have two uses, before any change is made."""
    try:
        check_topics(changes, known, topics)
    except DefinitionsError as error:
        raise DefinitionError(("streams",), str(error), "nothing was applied") from error


def carry_out(client: Client, planned: Plan) -> Iterator[str]:
    """Make the changes of a plan in order, and yield the description of each. Raises ClientError.

    A new stream is made with its metrics by one request: its topics are read from then on, and a reply without a
    metric stays without it. Metrics that one request cannot take come afterwards, one by one. What was yielded before
    an error stays.
    """
    made = dict[str, set[str]]()
    for change in planned.changes:
        stream = change_stream(change)
        match change:
            case PutStream() if _is_new_stream(change):
                metrics = [
                    each
                    for each in planned.changes
                    if isinstance(each, _METRIC) and change_stream(each) == stream
                ]
                body, taken = _with_metrics(definition_to_json(change.stream), metrics)
                client.create_stream(body)
                made[stream] = {each.name for each in metrics[:taken]}
                yield f"stream {stream}"
                yield from (f"metric {stream}.{each.name}" for each in metrics[:taken])
            case PutStream():
                # Another field may have got another place since the plan was made, and keeps it.
                known = planned.registered[stream].types
                fields = definition_to_json(change.stream)["fields"]
                added = {name: said for name, said in fields.items() if name not in known}
                client.evolve_stream(stream, {"fields": added})
                yield f"stream {stream}, fields"
            case AddMetric() | AddDerived() if change.name not in made.get(stream, ()):
                client.add_metrics(stream, _sql(change))
                yield f"metric {stream}.{change.name}"


def _with_metrics(
    definition: dict[str, Any], metrics: Sequence[AddMetric | AddDerived]
) -> tuple[dict[str, Any], int]:
    """Return the body that makes a stream with the first of its metrics, and how many it has.

    Those are as many as a request may have, in number and in bytes. None reads one that comes later.
    """
    texts = list[str]()
    left = REQUEST_LIMIT_BYTES - len(msgspec.json.encode(definition | {"metrics": texts}))
    for each in metrics[:METRICS_AT_ONCE_LIMIT]:
        # A comma stands between two.
        left -= len(msgspec.json.encode(_sql(each))) + 1
        if left < 0:
            break
        texts.append(_sql(each))
    return definition | ({"metrics": texts} if texts else {}), len(texts)


def _is_new_stream(change: Change) -> bool:
    return isinstance(change, PutStream) and change.schema_version == FIRST_VERSION


def _sql(change: AddMetric | AddDerived) -> str:
    return change.metric.sql if isinstance(change, AddMetric) else change.sql


def filled(client: Client, stream: str) -> tuple[float, list[str]]:
    """Return the average progress of a stream's warming metrics, from 0 to 1, and their names."""
    warming = [metric for metric in client.metrics(stream) if metric.get("warming")]
    shares = [float(metric.get("filled") or 0.0) for metric in warming]
    return (sum(shares) / len(shares) if shares else 1.0), [str(metric["name"]) for metric in warming]


def _known(client: Client, definitions: Definitions) -> dict[str, StreamDefinition]:
    """Return the streams of the server that the token may read, by name. Raises ClientError, DefinitionError."""
    known: dict[str, StreamDefinition] = {}
    for body in client.streams():
        name = str(body.get("name"))
        # A stream that the file does not name may have what only a newer release reads.
        with contextlib.suppress(*(() if name in definitions.streams else (DefinitionError,))):
            known[name] = stream_from_json(body)
    return known


def _registered(client: Client, streams: Sequence[StreamDefinition]) -> Catalog:
    """Make a catalogue of streams of the server, with their metrics."""
    catalog = Catalog()
    for stream in streams:
        catalog.apply(PutStream(catalog.last_place + 1, stream, FIRST_VERSION))
        for metric in client.metrics(stream.name):
            entry = catalog.streams[stream.name]
            made = definitions_from_sql(str(metric["sql"]), stream, entry.known)
            for change in missing_changes(catalog, made)[0]:
                catalog.apply(change)
    return catalog
