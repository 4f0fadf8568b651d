"""The catalogue of streams, schemas and metrics: the result of a log of changes. It does no I/O.

Each change has a *place*, its number in that log (`changes.py`). Engines, front-ends, nodes and units each hold a
catalogue, and apply the changes to it as they come. `missing_changes` is for those who bring the definitions of a file,
such as `railgun apply`.
"""

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
from railgun.catalog.computed_reading import computed_text, computed_to_json
from railgun.catalog.definitions import metric_of
from railgun.catalog.derivations import derived_from_sql
from railgun.catalog.errors import CatalogError, DefinitionError
from railgun.catalog.mappings import fixed_place, fixed_roles, is_mapped_otherwise, mapped_as
from railgun.catalog.model import Definitions, MetricDefinition, StreamDefinition
from railgun.catalog.registrations import Registered, Registrations
from railgun.catalog.stream_reading import (
    EVOLVABLE,
    check_partitioner_names,
    definition_to_json,
    field_texts,
    shown_definition,
    stream_from_json,
    stream_to_json,
    value_text,
)
from railgun.catalog.task_key import TaskKey
from railgun.language.computed import ComputedField
from railgun.language.derive import Known, ResolvedDerived
from railgun.wire.schema import Schema

FIRST_VERSION = 1


@dataclass(slots=True)
class StreamEntry:
    """A stream in the catalogue.

    created: the place of its first PutStream.
    schemas: by version, the newest last.
    metrics: by name, in the order added; each with the place of its `add`.
    history: the change that gave its tasks older events than their logs have; None if they have none.
    registered: all present and dropped metrics, with derived ones.
    computed: the computed fields of each version of the schema.
    mappings: the newest definition under each mapping, by the place of the change that has brought it; the first at 0.
    """

    stream: StreamDefinition
    created: int
    schemas: dict[int, Schema]
    metrics: dict[str, AddMetric] = field(default_factory=dict)
    history: AddHistory | Deepen | None = None
    registered: Registrations = field(default_factory=Registrations)
    computed: dict[int, tuple[ComputedField, ...]] = field(default_factory=dict)
    mappings: dict[int, StreamDefinition] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the present metrics and derived metrics, in the order added."""
        return self.registered.names

    @property
    def derived(self) -> dict[str, ResolvedDerived]:
        """The present derived metrics by name, in the order added."""
        return self.registered.derived

    @property
    def known(self) -> Known:
        """The metrics that a DERIVE may read beside fields, with their types."""
        return {name: add.metric.resolved.result_type for name, add in self.metrics.items()} | self.derived

    def sql(self, name: str) -> str | None:
        """Returns the SQL of the metric or derived metric with this name; None if there is none."""
        if name in self.metrics:
            return self.metrics[name].metric.sql
        return self.derived[name].sql if name in self.derived else None

    def check_new(self, name: str) -> None:
        """Raises CatalogError if a metric or derived metric has this name."""
        sql = self.sql(name)
        if sql is not None:
            raise CatalogError(
                f"{self.stream.name} has a metric {name} already: {sql}; give the new one another name with AS, or "
                "drop the old one"
            )

    @property
    def mapped(self) -> int:
        """The place of the present mapping."""
        return max(self.mappings)

    def mapped_at(self, place: int) -> StreamDefinition:
        """The present definition with the mapping of a place."""
        return mapped_as(self.stream, self.mappings[place])

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
    """A difference between a definition and the registered one that `missing_changes` leaves as it is.

    stream: the name of the stream.
    what: the key, field or metric that differs.
    registered, wanted: its value in the catalogue and in the definition, as text.
    can_change: whether the registered stream can be changed to what is wanted.
    """

    stream: str
    what: str
    registered: str
    wanted: str
    can_change: bool = False

    def __str__(self) -> str:
        return f"{self.stream}: {self.what} is {self.registered}, the definition says {self.wanted}"


class Catalog:
    """Streams by name, in the order created. Only the method `apply` changes them, one change at a time.

    last_place: the place of the last change ever made. It may be above those in `changes`, which lacks changes that
    undid each other.
    """

    def __init__(self, changes: Iterable[Change] = (), last_place: int = 0) -> None:
        self.streams: dict[str, StreamEntry] = {}
        self.last_place = 0
        for change in changes:
            self.apply(change)
        self.last_place = max(self.last_place, last_place)

    def copy(self) -> "Catalog":
        """Returns a copy that later changes of this catalogue do not affect."""
        copied = Catalog(last_place=self.last_place)
        for name, entry in self.streams.items():
            copied.streams[name] = StreamEntry(
                entry.stream,
                entry.created,
                dict(entry.schemas),
                dict(entry.metrics),
                entry.history,
                entry.registered.copy(),
                dict(entry.computed),
                dict(entry.mappings),
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
        """The id of each stream's history, by (name, first place) of the stream.

        The tasks of these streams have events from before their logs. Streams without history are left out.
        """
        return {
            (name, entry.created): entry.history.history
            for name, entry in self.streams.items()
            if entry.history is not None
        }

    def entry(self, stream: str) -> StreamEntry:
        """Returns a stream's entry. Raises CatalogError if there is none."""
        entry = self.streams.get(stream)
        if entry is None:
            raise CatalogError(f"there is no stream {stream[:80]!r}")
        return entry

    def apply(self, change: Change) -> None:
        """Makes one change, whose place must be above all earlier ones. Raises CatalogError, changing nothing."""
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
            entry = StreamEntry(stream, change.place, {change.schema_version: schema})
            entry.computed[change.schema_version] = stream.computed
            entry.mappings[0] = stream
            self.streams[stream.name] = entry
            return
        check_evolution(entry.stream, stream)
        _check_fields(entry, stream)
        expected = next_version(entry, stream)
        if change.schema_version != expected:
            raise CatalogError(f"{stream.name}: schema version {change.schema_version} should be {expected}")
        mapped = change.place if is_mapped_otherwise(entry.stream, stream) else entry.mapped
        entry.mappings[mapped] = entry.stream = stream
        entry.schemas[change.schema_version] = schema
        entry.computed[change.schema_version] = stream.computed

    def changes(self) -> Iterator[Change]:
        """Yields the shortest log that results in the present streams and metrics, in the order of places.

        Each stream has its first place and newest definition. Earlier schemas are not in the log.
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
    """Raises CatalogError if a new metric cannot have this name."""
    entry.check_new(name)
    readers = entry.registered.readers(name)
    if readers:
        raise CatalogError(
            f"{entry.stream.name}: the derived metric {readers[0]} reads the field {name}: a metric needs another name"
        )


def _check_fields(entry: StreamEntry, stream: StreamDefinition) -> None:
    """Raises CatalogError if a new field has the name of a metric that a derived metric reads, or if anything reads a
    computed field that goes.
    """
    before = entry.stream.types
    for name in before.keys() - stream.types.keys():
        readers = _field_readers(entry, name)
        if readers:
            raise CatalogError(f"{stream.name}: the field {name} is read by {', '.join(readers)}")
    for name in [name for name in stream.types if name not in before]:
        readers = entry.registered.readers(name)
        if readers:
            raise CatalogError(
                f"{stream.name}: the derived metric {readers[0]} reads the metric {name}: a field needs another name"
            )


def _field_readers(entry: StreamEntry, name: str) -> list[str]:
    """Returns the metrics and derived metrics that read a field, in words."""
    metrics = [each.name for each in entry.metrics.values() if name in each.metric.resolved.names]
    derived = entry.registered.readers(name)
    return [*(f"the metric {each}" for each in metrics), *(f"the derived metric {each}" for each in derived)]


def _drop(entry: StreamEntry, change: DropMetric) -> None:
    """Removes a metric or derived metric. Raises CatalogError."""
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
    """Returns the schema version of a changed definition. It stays the same if the fields do.

    Records have no computed fields. Those of value queries do (`StreamDefinition.of_queries`).
    """
    version = entry.schema.version
    same = entry.schema == stream.schema(version) and entry.stream.computed == stream.computed
    return version if same else version + 1


def check_evolution(old: StreamDefinition, new: StreamDefinition) -> None:
    """Raises CatalogError if a stream cannot be changed to the new definition."""
    registered, wanted = stream_to_json(old), stream_to_json(new)
    for what in ("time", "id", "partitioners", "partitions", "dedup_events"):
        before, after = registered.get(what), wanted.get(what)
        if before != after:
            raise CatalogError(
                f"{old.name}: {what} is fixed at creation: {value_text(before)}, not {value_text(after)}"
            )
    roles = fixed_roles(old)
    for before, after in zip(old.fields, new.fields):
        is_same = (before.name, before.type) == (after.name, after.type)
        if is_same and before != after and before.name in roles:
            raise CatalogError(f"{old.name}: {fixed_place(before, after, roles[before.name])}")
    if list(new.recorded_types.items())[: len(old.fields)] != list(old.recorded_types.items()):
        raise CatalogError(f"{old.name}: fields can be added at the end, not removed, retyped or reordered")
    wanted_computed, names = {each.name: each for each in new.computed}, new.types.keys()
    for each in old.computed:
        after = wanted_computed.get(each.name, each)
        if each.name in names and after != each:
            raise CatalogError(f"{old.name}: {fixed_expression(each, after)}")


def fixed_expression(registered: ComputedField, wanted: ComputedField) -> str:
    """Returns the error about a computed field that is to have another expression than is registered."""
    return (
        f"the expression of the field {registered.name} cannot be changed: it is {computed_text(registered)}, not "
        f"{computed_text(wanted)}; add a field with another name, or drop this one first"
    )


def missing_changes(catalog: Catalog, definitions: Definitions) -> tuple[list[Change], list[Difference]]:
    """Returns the changes that create what a file has and the catalogue lacks, and the differences that stay.

    Streams and metrics that the file lacks stay as they are, and so do those that differ. If a registered stream lacks
    a field, the field is added at its end. The places of the changes follow the catalogue's last one.

    A metric may be about a registered stream that the file lacks. Its types already come from the registered stream.

    Raises DefinitionError for a metric that does not fit its stream as registered, and for a new stream with two
    partitioners whose tasks would have the same name.
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
            changes.append(AddMetric(place, metric_of(metric, streams[metric.stream])))
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
    """Raises DefinitionError if a metric reads a field that has another type in the registered stream."""
    read = metric.event_fields if isinstance(metric, ResolvedDerived) else metric.resolved.names
    before_texts, after_texts = field_texts(registered, places=False), field_texts(wanted, places=False)
    for name in sorted(read):
        before, after = before_texts[name], after_texts[name]
        if before != after:
            message = f"{metric.name} reads {name}, which is {before} in the registered stream, not {after}"
            raise DefinitionError(("metrics",), message, "give the field the registered type")


def _grown(old: StreamDefinition, wanted: StreamDefinition) -> tuple[StreamDefinition, list[Difference]]:
    """Returns the registered stream with the wanted one's new fields, and all other differences."""
    before, after = shown_definition(old), shown_definition(wanted)
    # A definition that does not say how long logs are kept has no opinion.
    after.setdefault("log_retention", before.get("log_retention"))
    differences = [
        Difference(
            old.name, what, value_text(before.get(what)), value_text(after.get(what)), what in EVOLVABLE
        )
        for what in {**before, **after}
        if what != "fields" and before.get(what) != after.get(what)
    ]
    before_texts, after_texts = field_texts(old), field_texts(wanted)
    types = old.recorded_types
    movable = types.keys() - fixed_roles(old).keys()
    for name, text in after_texts.items():
        registered = before_texts.get(name, text)
        if registered != text:
            can_change = name in movable and types[name] == wanted.recorded_types.get(name)
            differences.append(Difference(old.name, f"field {name}", registered, text, can_change))
    fields = old.fields + tuple(each for each in wanted.fields if each.name not in before_texts)
    if not (old.computed or wanted.computed):
        return dataclasses.replace(old, fields=fields), differences
    body = definition_to_json(dataclasses.replace(old, fields=fields))
    body["fields"] |= {
        each.name: computed_to_json(each) for each in wanted.computed if each.name not in before_texts
    }
    return stream_from_json(body, old), differences
