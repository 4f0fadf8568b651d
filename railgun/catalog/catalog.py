"""The catalogue: streams, their schemas and metrics, as the outcome of a log of changes. Does no I/O."""

import dataclasses
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from railgun.catalog.changes import (
    AddDerived,
    AddHistory,
    AddMetric,
    BeginDeepening,
    Change,
    Deepen,
    DropMetric,
    DropStream,
    PutStream,
)
from railgun.catalog.derivations import derived_from_sql
from railgun.catalog.errors import CatalogError, DefinitionError
from railgun.catalog.model import Definitions, MetricDefinition, StreamDefinition
from railgun.catalog.registrations import Registered, Registrations
from railgun.catalog.stream_reading import check_partitioner_names, stream_to_json
from railgun.catalog.task_key import TaskKey
from railgun.language.derive import Known, ResolvedDerived
from railgun.wire.schema import Schema

FIRST_VERSION = 1


@dataclass(slots=True)
class StreamEntry:
    """A stream in the catalogue.

    created: the place of its first PutStream.  schemas: by version, the newest last.  metrics: by name, in
    the order added; each with the place of its `add`.  history: what its tasks have from before
    their logs; None: nothing.  registered: all metrics and derived metrics that there ever were.
    """

    stream: StreamDefinition
    created: int
    schemas: dict[int, Schema]
    metrics: dict[str, AddMetric] = field(default_factory=dict)
    history: AddHistory | Deepen | None = None
    registered: Registrations = field(default_factory=Registrations)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the metrics and derived metrics that are there, in the order added."""
        return self.registered.names

    @property
    def derived(self) -> dict[str, ResolvedDerived]:
        """The derived metrics that are there, by name, in the order added."""
        return self.registered.derived

    @property
    def known(self) -> Known:
        """What a DERIVE may read beside fields."""
        return {name: add.metric.resolved.result_type for name, add in self.metrics.items()} | self.derived

    def sql(self, name: str) -> str | None:
        """The text of the metric, or derived one, of a name; None where there is none."""
        if name in self.metrics:
            return self.metrics[name].metric.sql
        return self.derived[name].sql if name in self.derived else None

    def check_new(self, name: str) -> None:
        """Raise CatalogError where a metric, or a derived one, of a name is there."""
        sql = self.sql(name)
        if sql is not None:
            raise CatalogError(
                f"{self.stream.name} has a metric {name} already: {sql}; give the new one another name with AS, or "
                "drop the old one"
            )

    @property
    def task_keys(self) -> list[TaskKey]:
        """The keys of the stream's tasks."""
        return [TaskKey(self.stream.name, self.created, *task) for task in self.stream.tasks]

    @property
    def schema(self) -> Schema:
        """The schema that new events are recorded under."""
        return self.schemas[max(self.schemas)]


@dataclass(frozen=True, slots=True)
class Difference:
    """Where a definition differs from what is registered and cannot, or shall not, be changed by `apply`."""

    stream: str
    what: str
    registered: str
    wanted: str

    def __str__(self) -> str:
        return f"{self.stream}: {self.what} is {self.registered}, the definition says {self.wanted}"


class Catalog:
    """Streams by name, in the order created. Changed by `apply` alone, one change at a time.

    last_place: of the last change ever made, where `changes` lacks later ones because they undid each other.
    """

    def __init__(self, changes: Iterable[Change] = (), last_place: int = 0) -> None:
        self.streams: dict[str, StreamEntry] = {}
        self.last_place = 0
        for change in changes:
            self.apply(change)
        self.last_place = max(self.last_place, last_place)

    def copy(self) -> "Catalog":
        """One that later changes of this one do not reach."""
        copied = Catalog(last_place=self.last_place)
        for name, entry in self.streams.items():
            copied.streams[name] = StreamEntry(
                entry.stream,
                entry.created,
                dict(entry.schemas),
                dict(entry.metrics),
                entry.history,
                entry.registered.copy(),
            )
        return copied

    @property
    def definitions(self) -> dict[str, StreamDefinition]:
        """The streams' definitions by name."""
        return {name: entry.stream for name, entry in self.streams.items()}

    @property
    def task_keys(self) -> Iterator[TaskKey]:
        """The keys of all tasks, stream by stream."""
        for entry in self.streams.values():
            yield from entry.task_keys

    @property
    def histories(self) -> dict[tuple[str, int], str]:
        """By name and first place of a stream, the id of what its tasks have from before their logs; streams without
        are left out.
        """
        return {
            (name, entry.created): entry.history.history
            for name, entry in self.streams.items()
            if entry.history is not None
        }

    def entry(self, stream: str) -> StreamEntry:
        """A stream's entry. Raises CatalogError where there is none."""
        entry = self.streams.get(stream)
        if entry is None:
            raise CatalogError(f"there is no stream {stream[:80]!r}")
        return entry

    def apply(self, change: Change) -> None:
        """Make one change, whose place must be above all before it. Raises CatalogError, changing nothing."""
        if change.place <= self.last_place:
            raise CatalogError(f"change {change.place} comes after change {self.last_place}")
        match change:
            case PutStream():
                self._put(change)
            case DropStream():
                self.entry(change.name)
                del self.streams[change.name]
            case AddMetric():
                entry = self.entry(change.metric.stream)
                _check_free(entry, change.metric.name)
                entry.metrics[change.metric.name] = change
                entry.registered.add(Registered(change.name, change.place, change.metric.home))
            case AddDerived():
                entry = self.entry(change.stream)
                _check_free(entry, change.name)
                zones = {zone.name: zone for zone in change.zones}
                derived = derived_from_sql(change.sql, entry.stream, entry.known, zones.get)
                if derived.name != change.name:
                    raise CatalogError(
                        f"{change.stream}: {change.sql} makes {derived.name}, not {change.name}"
                    )
                entry.registered.add(Registered(change.name, change.place, None, derived))
            case DropMetric():
                _drop(self.entry(change.stream), change)
            case AddHistory():
                entry = self.entry(change.stream)
                if entry.history is not None:
                    raise CatalogError(f"{change.stream} has a history already, {entry.history.history}")
                entry.history = change
            case BeginDeepening():
                self.entry(change.stream)
            case Deepen():
                self.entry(change.stream).history = change
        self.last_place = change.place

    def _put(self, change: PutStream) -> None:
        stream, schema = change.stream, change.stream.schema(change.schema_version)
        entry = self.streams.get(stream.name)
        if entry is None:
            self.streams[stream.name] = StreamEntry(stream, change.place, {change.schema_version: schema})
            return
        check_evolution(entry.stream, stream)
        _check_fields(entry, stream)
        expected = next_version(entry, stream)
        if change.schema_version != expected:
            raise CatalogError(f"{stream.name}: schema version {change.schema_version} should be {expected}")
        entry.stream = stream
        entry.schemas[change.schema_version] = schema

    def changes(self) -> Iterator[Change]:
        """The shortest log that makes the streams and metrics of now, in the order of places.

        Streams have their first place and newest definition; schemas of the past are not in it.
        """
        made: list[Change] = []
        for entry in self.streams.values():
            made.append(PutStream(entry.created, entry.stream, entry.schema.version))
            made += entry.metrics.values()
            made += [
                AddDerived(each.added, entry.stream.name, each.name, each.derived.sql, each.derived.zones)
                for each in entry.registered
                if each.derived is not None and each.dropped is None
            ]
            made += [] if entry.history is None else [entry.history]
        yield from sorted(made, key=lambda change: change.place)


def _check_free(entry: StreamEntry, name: str) -> None:
    """Raise CatalogError where a new metric cannot be called so."""
    entry.check_new(name)
    readers = entry.registered.readers(name)
    if readers:
        raise CatalogError(
            f"{entry.stream.name}: the derived metric {readers[0]} reads the field {name}: a metric needs another name"
        )


def _check_fields(entry: StreamEntry, stream: StreamDefinition) -> None:
    """Raise CatalogError where a new field has the name of a metric that a derived one reads."""
    for each in stream.fields[len(entry.stream.fields) :]:
        readers = entry.registered.readers(each.name)
        if readers:
            raise CatalogError(
                f"{stream.name}: the derived metric {readers[0]} reads the metric {each.name}: a field needs another "
                "name"
            )


def _drop(entry: StreamEntry, change: DropMetric) -> None:
    """Take out a metric or a derived one. Raises CatalogError."""
    registered = entry.registered.find(change.name)
    if registered is None or registered.added != change.added:
        raise CatalogError(f"{change.stream} has no metric {change.name} of place {change.added}")
    readers = [] if change.name in entry.stream.types else entry.registered.readers(change.name)
    if readers:
        what = (
            f"the derived metrics {', '.join(readers)}: drop these"
            if len(readers) > 1
            else (f"the derived metric {readers[0]}: drop that")
        )
        raise CatalogError(f"{change.stream}: {change.name} is read by {what} first")
    entry.registered.drop(change.name, change.place)
    entry.metrics.pop(change.name, None)


def next_version(entry: StreamEntry, stream: StreamDefinition) -> int:
    """The schema version of a changed definition: the same where its fields are."""
    version = entry.schema.version
    return version if entry.schema == stream.schema(version) else version + 1


def check_evolution(old: StreamDefinition, new: StreamDefinition) -> None:
    """Raise CatalogError where a stream cannot become what the new definition says."""
    registered, wanted = stream_to_json(old), stream_to_json(new)
    for what in ("time", "id", "partitioners", "partitions", "dedup_events"):
        before, after = registered.get(what), wanted.get(what)
        if before != after:
            raise CatalogError(
                f"{old.name}: {what} is fixed at creation: {_describe(before)}, not {_describe(after)}"
            )
    if new.fields[: len(old.fields)] != old.fields:
        raise CatalogError(f"{old.name}: fields can be added at the end, not removed, retyped or reordered")


def missing_changes(catalog: Catalog, definitions: Definitions) -> tuple[list[Change], list[Difference]]:
    """What `apply` of a file does: the changes that create what is missing, and what differs.

    A metric of a stream that the definitions lack is typed over the registered one already.
    Streams and metrics that the file lacks are left alone, and so is what differs; a field that a registered
    stream lacks is added at its end.  Places follow the catalogue's last one.

    Raises DefinitionError for a metric that does not fit its stream as registered, and for partitioners of a new stream
    whose tasks could not be told apart.
    """
    place = catalog.last_place
    changes: list[Change] = []
    differences: list[Difference] = []
    streams = catalog.definitions
    for name, wanted in definitions.streams.items():
        entry = catalog.streams.get(name)
        if entry is None:
            check_partitioner_names(wanted, ())
            place += 1
            changes.append(PutStream(place, wanted, FIRST_VERSION))
            streams[name] = wanted
            continue
        grown, differing = _grown(entry.stream, wanted)
        differences += differing
        if grown != entry.stream:
            place += 1
            changes.append(PutStream(place, grown, next_version(entry, grown)))
            streams[name] = grown
    for metric in definitions.metrics:
        entry = catalog.streams.get(metric.stream)
        registered = None if entry is None else entry.sql(metric.name)
        if registered is None:
            place += 1
            if metric.stream not in streams:
                raise DefinitionError(("metrics",), f"{metric.name}: there is no stream {metric.stream!r}")
            if metric.stream in definitions.streams:
                _check_types(metric, definitions.streams[metric.stream], streams[metric.stream])
            changes.append(AddMetric(place, metric))
        elif registered != metric.sql:
            differences.append(Difference(metric.stream, f"metric {metric.name}", registered, metric.sql))
    for derived in definitions.derived:
        entry = catalog.streams.get(derived.stream)
        registered = None if entry is None else entry.sql(derived.name)
        if registered is None:
            place += 1
            if derived.stream in definitions.streams:
                _check_types(derived, definitions.streams[derived.stream], streams[derived.stream])
            changes.append(AddDerived(place, derived.stream, derived.name, derived.sql, derived.zones))
        elif registered != derived.sql:
            differences.append(Difference(derived.stream, f"metric {derived.name}", registered, derived.sql))
    return changes, differences


def _check_types(
    metric: MetricDefinition | ResolvedDerived, wanted: StreamDefinition, registered: StreamDefinition
) -> None:
    """Raise DefinitionError where a metric reads a field that has another type in the registered stream."""
    read = metric.fields if isinstance(metric, ResolvedDerived) else metric.resolved.fields
    for name in sorted(read):
        before, after = registered.types[name], wanted.types[name]
        if before != after:
            message = f"{metric.name} reads {name}, which is {before} in the registered stream, not {after}"
            raise DefinitionError(("metrics",), message, "give the field the registered type")


def _grown(old: StreamDefinition, wanted: StreamDefinition) -> tuple[StreamDefinition, list[Difference]]:
    """The registered stream with the wanted one's new fields, and what else differs."""
    before, after = stream_to_json(old), stream_to_json(wanted)
    differences = [
        Difference(old.name, what, _describe(before.get(what)), _describe(after.get(what)))
        for what in {**before, **after}
        if what != "fields" and before.get(what) != after.get(what)
    ]
    types = old.types
    for each in wanted.fields:
        if each.name in types and types[each.name] != each.type:
            what = f"field {each.name}"
            differences.append(Difference(old.name, what, str(types[each.name]), str(each.type)))
    added = tuple(each for each in wanted.fields if each.name not in types)
    return dataclasses.replace(old, fields=old.fields + added), differences


def _describe(value: object) -> str:
    """A key's value as a definition says it."""
    if value is None:
        return "not set"
    if isinstance(value, list):
        return ", ".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)
