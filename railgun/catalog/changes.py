"""Changes of the catalogue. The catalogue is a log of them, and control records carry them in the logs of tasks.

Every change has a *place*: a number that only grows, one for each change. A task that has applied place p skips changes
with places up to p. So a copy, a replica and a rebuilt task agree on which metrics were in force at which record.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from railgun.catalog.computed_reading import zones_from_json, zones_to_json
from railgun.catalog.definitions import define_metric
from railgun.catalog.errors import DefinitionError
from railgun.catalog.model import MetricDefinition, StreamDefinition
from railgun.catalog.stream_reading import stream_from_record, stream_to_json
from railgun.language.errors import QueryError
from railgun.language.parser import parse_query
from railgun.language.resolve import resolve
from railgun.language.zones import Zone


@dataclass(frozen=True, slots=True)
class PutStream:
    """Creates a stream, or changes its fields or settings. It has the whole definition.

    Its body is what tasks know of the definition (`stream_to_json`).

    schema_version: of its fields. It is above the stream's previous version if the fields differ, else equal to it.
    """

    kind: ClassVar[str] = "stream"
    place: int
    stream: StreamDefinition
    schema_version: int

    def body(self) -> dict[str, Any]:
        return {"stream": stream_to_json(self.stream), "schema_version": self.schema_version}


@dataclass(frozen=True, slots=True)
class DropStream:
    """Drops a stream with all its metrics."""

    kind: ClassVar[str] = "drop_stream"
    place: int
    name: str

    def body(self) -> dict[str, Any]:
        return {"name": self.name}


@dataclass(frozen=True, slots=True)
class AddMetric:
    """Adds a metric, which begins to warm. Its place distinguishes it from an earlier metric of the same name."""

    kind: ClassVar[str] = "add"
    place: int
    metric: MetricDefinition

    @property
    def name(self) -> str:
        """The metric's name."""
        return self.metric.name

    def body(self) -> dict[str, Any]:
        metric = self.metric
        body = {"stream": metric.stream, "name": metric.name, "sql": metric.sql, "home": metric.home}
        return {**body, **zones_to_json(metric.resolved.zones)}


@dataclass(frozen=True, slots=True)
class AddDerived:
    """Adds a derived metric.

    sql: the canonical text of a DERIVE that makes this metric alone.  zones: the time zones that it names.

    The metrics that it reads are not listed here. A task knows only its own partitioner's metrics and does not need
    the list.
    """

    kind: ClassVar[str] = "derive"
    place: int
    stream: str
    name: str
    sql: str
    zones: tuple[Zone, ...] = ()

    def body(self) -> dict[str, Any]:
        return {"stream": self.stream, "name": self.name, "sql": self.sql, **zones_to_json(self.zones)}


@dataclass(frozen=True, slots=True)
class DropMetric:
    """Drops the metric or derived metric that was added at the place `added`."""

    kind: ClassVar[str] = "drop"
    place: int
    stream: str
    name: str
    added: int

    def body(self) -> dict[str, Any]:
        return {"stream": self.stream, "name": self.name, "added": self.added}


@dataclass(frozen=True, slots=True)
class _Past:
    """A change that gives a stream's tasks events from before their logs (history).

    history: its id.  cut_ms: the time before which its events lie.
    """

    place: int
    stream: str
    history: str
    cut_ms: int

    def body(self) -> dict[str, Any]:
        return {"stream": self.stream, "history": self.history, "cut_ms": self.cut_ms}


@dataclass(frozen=True, slots=True)
class AddHistory(_Past):
    """Gives a stream's tasks the history of a backfill, before the first record of their logs.

    known_place: the number of the last change that the tasks know from their beginning; None if the program that wrote
    this change did not record it.
    """

    kind: ClassVar[str] = "history"
    known_place: int | None = None

    def body(self) -> dict[str, Any]:
        # `super()` fails here: `dataclass(slots=True)` makes another class than the one that it refers to.
        found = _Past.body(self)
        return found if self.known_place is None else {**found, "known_place": self.known_place}


@dataclass(frozen=True, slots=True)
class Deepen(_Past):
    """From this record on, the tasks that were built with older history replace the stream's tasks.

    They have processed the log up to this record.
    """

    kind: ClassVar[str] = "deepen"


@dataclass(frozen=True, slots=True)
class BeginDeepening:
    """Makes the tasks of a stream export the events accepted up to this record. They are built again from these events
    and from older ones.

    history: the id of the history that will be built.
    """

    kind: ClassVar[str] = "begin_deepening"
    place: int
    stream: str
    history: str

    def body(self) -> dict[str, Any]:
        return {"stream": self.stream, "history": self.history}


Change = PutStream | DropStream | AddMetric | AddDerived | DropMetric | AddHistory | BeginDeepening | Deepen


@dataclass(frozen=True, slots=True)
class Warm:
    """Says that the metric added at the place `added` has filled in one task.

    This is not a change of the catalogue and has no place. The task's active copy writes it to the task's own log.
    """

    kind: ClassVar[str] = "warm"
    stream: str
    name: str
    added: int


def change_to_json(change: Change | Warm) -> dict[str, Any]:
    """Converts a change to JSON values: an entry of the catalogue, or the map of a control record."""
    if isinstance(change, Warm):
        return {"kind": change.kind, "stream": change.stream, "name": change.name, "added": change.added}
    return {"kind": change.kind, "place": change.place, **change.body()}


def change_from_json(body: Mapping[str, Any], streams: Mapping[str, StreamDefinition]) -> Change | Warm:
    """Returns the change that `change_to_json` wrote. streams: as they are before it.

    Raises DefinitionError for a damaged entry or one of another version. The caller must then read no further.
    """
    try:
        match body["kind"]:
            case PutStream.kind:
                return PutStream(
                    _whole(body["place"]), stream_from_record(body["stream"]), _whole(body["schema_version"])
                )
            case DropStream.kind:
                return DropStream(_whole(body["place"]), str(body["name"]))
            case AddMetric.kind:
                return AddMetric(_whole(body["place"]), _metric(body, streams))
            case AddDerived.kind:
                return AddDerived(
                    _whole(body["place"]),
                    str(body["stream"]),
                    str(body["name"]),
                    str(body["sql"]),
                    tuple(zones_from_json(body).values()),
                )
            case DropMetric.kind:
                return DropMetric(
                    _whole(body["place"]), str(body["stream"]), str(body["name"]), _whole(body["added"])
                )
            case AddHistory.kind:
                known = body.get("known_place")
                return AddHistory(*_past(body), None if known is None else _whole(known))
            case Deepen.kind:
                return Deepen(*_past(body))
            case BeginDeepening.kind:
                return BeginDeepening(_whole(body["place"]), str(body["stream"]), str(body["history"]))
            case Warm.kind:
                return Warm(str(body["stream"]), str(body["name"]), _whole(body["added"]))
            case unknown:
                raise DefinitionError(
                    ("kind",), f"unknown kind of change {unknown!r}", "written by a newer version of Railgun?"
                )
    except KeyError as error:
        raise DefinitionError((str(error.args[0]),), "the key is missing from a change") from None


def _past(body: Mapping[str, Any]) -> tuple[int, str, str, int]:
    return _whole(body["place"]), str(body["stream"]), str(body["history"]), int(body["cut_ms"])


def _whole(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise DefinitionError((), f"{value!r} is no place or version of a change")
    return value


def _metric(body: Mapping[str, Any], streams: Mapping[str, StreamDefinition]) -> MetricDefinition:
    name = str(body["stream"])
    stream = streams.get(name)
    if stream is None:
        raise DefinitionError(("stream",), f"there is no stream {name!r}")
    try:
        # The zones are those of the metric's own record. The tables of this program may differ from them.
        resolved = resolve(
            parse_query(str(body["sql"])), stream.readable, stream.name, zones_from_json(body).get
        )
    except QueryError as error:
        raise DefinitionError(("sql",), str(error)) from error
    if len(resolved) != 1:
        raise DefinitionError(("sql",), f"one metric belongs here, not {len(resolved)}")
    metric = define_metric(resolved[0], stream, ("sql",))
    if (metric.name, metric.home) != (body["name"], body["home"]):
        raise DefinitionError(
            ("sql",),
            f"it makes {metric.name} at home at {metric.home}, not {body['name']} at {body['home']}",
        )
    return metric
