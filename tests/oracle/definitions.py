"""Streams and metrics as plain data, and the definitions file (TOML) that states them."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from tests.oracle.computed import typed_fields, with_computed
from tests.oracle.derived import DerivedMetric, names_in
from tests.oracle.durations import parse_duration, parse_retention
from tests.oracle.errors import DefinitionRefused
from tests.oracle.inference import Typed
from tests.oracle.paths import Source, parse_field
from tests.oracle.query import parse_expression
from tests.oracle.syntax import Derived, Metric
from tests.oracle.types import Row, Type, Value, parse_type

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,62}")
ALL = "*"
_RESERVED_STREAMS = ("replies", "catalog", "positions")
_KEYS = {
    "time", "id", "partitioners", "lateness", "late_policy", "max_future", "retention", "partitions",
    "record_replies", "dedup_events", "fields",
}  # fmt: skip


@dataclass(frozen=True)
class Stream:
    """One stream; `retention_ms` None is for ever, `max_future_ms` None is the default of its lateness.

    fields: those that are recorded.  computed: the other ones, each its expression and the type that is said of it.
    """

    name: str
    fields: Mapping[str, Type]
    time: str | None = None
    id: str | None = None
    partitioners: tuple[str, ...] = (ALL,)
    lateness_ms: int = 5_000
    late_policy: str = "rewrite"
    max_future_ms: int | None = None
    retention_ms: int | None = 30 * 86_400_000
    partitions: int = 1
    dedup_events: int = 1_000_000
    sources: Mapping[str, Source] = field(default_factory=dict)
    computed: Mapping[str, tuple[str, str | None]] = field(default_factory=dict)

    def source(self, name: str) -> Source:
        """Where a field lies in an event: under its own name where nothing else is said."""
        return self.sources.get(name, Source((name,), None))

    @cached_property
    def expressions(self) -> Mapping[str, Typed]:
        """The computed fields, each behind those that it reads."""
        return typed_fields(self.computed, self.fields)

    @property
    def types(self) -> Mapping[str, Type]:
        """The types of all fields."""
        return {**self.fields, **{name: typed.type for name, typed in self.expressions.items()}}

    def row(self, recorded: Mapping[str, Value]) -> Row:
        """All fields of an event with these recorded ones."""
        return with_computed(recorded, self.expressions)

    @property
    def future_limit_ms(self) -> int:
        return min(1_000, self.lateness_ms) if self.max_future_ms is None else self.max_future_ms


@dataclass(frozen=True)
class Definitions:
    """A definitions file: its streams by name and the texts of its metrics, in order."""

    streams: Mapping[str, Stream]
    queries: tuple[str, ...] = ()


@dataclass
class Catalogue:
    """What is registered of one stream: its definition, its metrics and its derived metrics by name, in order."""

    stream: Stream
    metrics: dict[str, Metric] = field(default_factory=dict)
    derived: dict[str, DerivedMetric] = field(default_factory=dict)

    def copy(self) -> "Catalogue":
        return Catalogue(self.stream, dict(self.metrics), dict(self.derived))

    def admit(self, metric: Metric | Derived) -> None:
        """Check a name against the rules of the stream; raises DefinitionRefused."""
        name = metric.name
        if not NAME.fullmatch(name) or name.startswith(("late_", "duplicate_")) or name == self.stream.id:
            raise DefinitionRefused(f"{name!r} cannot name a metric")
        if name in self.metrics or name in self.derived:
            raise DefinitionRefused(f"{name!r} is taken")
        self.check_unread(name)

    def check_unread(self, name: str) -> None:
        """Raise DefinitionRefused where a derived metric reads something else of this name."""
        if name in self._read():
            raise DefinitionRefused(f"a derived metric reads {name!r}")

    def derive(self, items: list[Derived]) -> None:
        """Register the items of one DERIVE, which may read each other; raises QueryRefused, DefinitionRefused."""
        if len({each.name for each in items}) < len(items):
            raise DefinitionRefused("one name twice")
        for each in items:
            self.admit(each)
        made: dict[str, DerivedMetric] = {}
        left = list(items)
        while left:
            ready = [
                each for each in left if not any(other.name in names_in(each.expression) for other in left)
            ]
            if not ready:
                raise DefinitionRefused("derived metrics in a circle")
            for each in ready:
                made[each.name] = DerivedMetric(each, self.stream.types, self.metrics, self.derived | made)
            left = [each for each in left if each not in ready]
        self.derived |= {each.name: made[each.name] for each in items}

    def drop(self, name: str) -> Metric | None:
        """Drop a metric, and return it; None of a derived one. Raises DefinitionRefused."""
        if name in self._read() and name not in self.stream.types:
            raise DefinitionRefused(f"a derived metric reads {name!r}")
        if name in self.derived:
            del self.derived[name]
            return None
        if name not in self.metrics:
            raise DefinitionRefused(f"no metric {name!r}")
        return self.metrics.pop(name)

    def check_no_reader(self, name: str) -> None:
        """Raise DefinitionRefused where anything reads a computed field."""
        if name in self.stream.partitioners or name in self._read():
            raise DefinitionRefused(f"{name!r} is read")
        for metric in self.metrics.values():
            if name in {*metric.group_by, *names_in((metric.argument, metric.where))}:
                raise DefinitionRefused(f"{metric.name} reads {name!r}")
        for other, (text, _) in self.stream.computed.items():
            if name in names_in(parse_expression(text)):
                raise DefinitionRefused(f"{other} reads {name!r}")

    def _read(self) -> set[str]:
        return {name for each in self.derived.values() for name in names_in(each.definition.expression)}


def parse_definitions(text: str) -> Definitions:
    """Read a definitions file; raises DefinitionRefused."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise DefinitionRefused(str(error)) from error
    if set(table) - {"streams", "metrics"}:
        raise DefinitionRefused(f"unknown keys {sorted(set(table) - {'streams', 'metrics'})}")
    streams = {name: checked(_stream(name, body)) for name, body in table.get("streams", {}).items()}
    return Definitions(streams, tuple(metric["sql"] for metric in table.get("metrics", [])))


def _stream(name: str, body: Mapping[str, object]) -> Stream:
    if set(body) - _KEYS:
        raise DefinitionRefused(f"{name}: unknown keys {sorted(set(body) - _KEYS)}")
    fields = body.get("fields", {})
    partitioners = body.get("partitioners", [ALL])
    partitions, dedup_events = body.get("partitions", 1), body.get("dedup_events", 1_000_000)
    if not isinstance(fields, dict) or not isinstance(partitioners, list):
        raise DefinitionRefused(f"{name}: fields are a table, partitioners a list")
    if not isinstance(partitions, int) or not isinstance(dedup_events, int):
        raise DefinitionRefused(f"{name}: partitions and dedup_events are integers")
    computed = {key: parse_computed(key, value) for key, value in fields.items() if is_computed(value)}
    declared = {key: parse_field(key, value) for key, value in fields.items() if key not in computed}
    return Stream(
        name=name,
        fields={key: parse_type(type_) for key, (type_, _) in declared.items()},
        sources={key: source for key, (_, source) in declared.items()},
        computed=computed,
        time=_optional_text(body, "time"),
        id=_optional_text(body, "id"),
        partitioners=tuple(partitioners),
        lateness_ms=parse_duration(body.get("lateness", "5s"), "lateness"),
        late_policy=str(body.get("late_policy", "rewrite")),
        max_future_ms=parse_duration(body["max_future"], "max_future") if "max_future" in body else None,
        retention_ms=parse_retention(body.get("retention", "30d")),
        partitions=partitions,
        dedup_events=dedup_events,
    )


def is_computed(body: object) -> bool:
    """Whether what a definition says of a field has an expression."""
    return isinstance(body, Mapping) and "as" in body


def parse_computed(name: str, body: object) -> tuple[str, str | None]:
    """The expression of a computed field, and the type that is said of it; raises DefinitionRefused."""
    assert isinstance(body, Mapping)
    if set(body) - {"type", "as"} or not isinstance(body["as"], str):
        raise DefinitionRefused(f"{name}: an expression, and perhaps a type")
    return body["as"], body.get("type")


def _optional_text(body: Mapping[str, object], key: str) -> str | None:
    return str(body[key]) if key in body else None


def checked(stream: Stream) -> Stream:
    """The stream itself where it can be registered; raises DefinitionRefused."""
    for name in (stream.name, *stream.fields, *stream.computed):
        if not NAME.fullmatch(name):
            raise DefinitionRefused(f"{name!r} is no name")
    if stream.name in _RESERVED_STREAMS:
        raise DefinitionRefused(f"stream {stream.name!r} is reserved")
    _check_roles(stream)
    if stream.late_policy not in ("rewrite", "discard"):
        raise DefinitionRefused(f"late_policy {stream.late_policy!r}")
    if stream.partitions < 1 or stream.dedup_events < 1:
        raise DefinitionRefused("partitions and dedup_events are at least 1")
    if stream.future_limit_ms > stream.lateness_ms:
        raise DefinitionRefused("max_future is above lateness")
    if stream.retention_ms is not None and stream.retention_ms < stream.lateness_ms:
        raise DefinitionRefused("retention is below lateness")
    return stream


def _check_roles(stream: Stream) -> None:
    types = stream.types
    if stream.time is not None and stream.fields.get(stream.time) != Type("timestamp"):
        raise DefinitionRefused(f"time {stream.time!r} is no timestamp field")
    if stream.id is not None and (
        stream.id not in stream.fields or stream.fields[stream.id].kind not in ("string", "long")
    ):
        raise DefinitionRefused(f"id {stream.id!r} is no string or long field")
    if not stream.partitioners or len(set(stream.partitioners)) != len(stream.partitioners):
        raise DefinitionRefused("partitioners are some, each once")
    for name in stream.partitioners:
        if name != ALL and (name not in types or types[name].kind not in ("string", "long")):
            raise DefinitionRefused(f"partitioner {name!r} is no string or long field")


def with_field(stream: Stream, name: str, declared: object) -> Stream:
    """The stream with one field more; raises DefinitionRefused. declared: its type, or a table with it."""
    if name in stream.types:
        raise DefinitionRefused(f"field {name!r} is taken")
    if is_computed(declared):
        return checked(replace(stream, computed={**stream.computed, name: parse_computed(name, declared)}))
    type_, source = parse_field(name, declared)
    fields = {**stream.fields, name: parse_type(type_)}
    return checked(replace(stream, fields=fields, sources={**stream.sources, name: source}))


def placed(stream: Stream, name: str, declared: object) -> Stream:
    """The stream with a field that is found elsewhere, or in another unit; raises DefinitionRefused.

    Not if events would get another time or id, or go to other tasks.
    """
    type_, source = parse_field(name, declared)
    if name not in stream.fields or parse_type(type_) != stream.fields[name]:
        raise DefinitionRefused(f"no field {name!r} of this type")
    if name in (stream.time, stream.id, *stream.partitioners):
        raise DefinitionRefused(f"{name!r} stays where it is")
    return checked(replace(stream, sources={**stream.sources, name: source}))


def without_field(stream: Stream, name: str) -> Stream:
    """The stream without a computed field; raises DefinitionRefused."""
    if name not in stream.computed:
        raise DefinitionRefused(f"no computed field {name!r}")
    left = {each: said for each, said in stream.computed.items() if each != name}
    return checked(replace(stream, computed=left))
