"""A stream by the book: the front-end's part, and one task for each partition of each partitioner."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

from tests.oracle.definitions import (
    ALL,
    Catalogue,
    Stream,
    checked,
    parse_definitions,
    placed,
    with_field,
    without_field,
)
from tests.oracle.derived import names_in
from tests.oracle.durations import parse_duration, parse_retention
from tests.oracle.errors import EventRefused, QueryRefused
from tests.oracle.live_metric import LiveMetric
from tests.oracle.murmur2 import partition
from tests.oracle.paths import read_field
from tests.oracle.query import parse_statement
from tests.oracle.records import (
    AddField,
    AddMetric,
    Control,
    DropField,
    DropMetric,
    EventRecord,
    SetLateness,
    SetRetention,
    Warm,
)
from tests.oracle.steps import Reply
from tests.oracle.syntax import Derived, Metric
from tests.oracle.task import Task, TaskReply
from tests.oracle.types import Row, Value
from tests.oracle.values import Result, json_value, read_value
from tests.oracle.windows import MINUS_INFINITY

Json = Any


def home(stream: Stream, metric: Metric) -> str:
    """The partitioner at which a metric lives; raises QueryRefused where there is none."""
    for partitioner in stream.partitioners:
        if partitioner in metric.group_by:
            return partitioner
    if ALL in stream.partitioners:
        return ALL
    raise QueryRefused(f"{metric.name}: group by one of {', '.join(stream.partitioners)}")


def _only(reply: Reply, names: Collection[str]) -> Reply:
    """A reply about these metrics alone."""
    found = {**reply, "metrics": {name: value for name, value in reply["metrics"].items() if name in names}}
    for key in ("warming", "partial"):
        left = {name for name in found.pop(key, ()) if name in names}
        if left and key == "warming":
            found[key] = [name for name in reply[key] if name in left]
        elif left:
            found[key] = {name: reply[key][name] for name in left}
    return found


class StreamOracle:
    """Answers as the whole product must: events and changes go in one after another.

    A reply has the form that clients get: `{"id", "time", "metrics"}` and, where there is something to say,
    `late`, `duplicate`, `warming`, `partial`.

    `clock_ms`, where set, is the front-end's own clock: it stamps events of a stream without a time field
    and refuses those too far ahead of it. Without it no event is too far ahead.
    """

    def __init__(self, stream: Stream) -> None:
        self.catalogue = Catalogue(stream)
        self.clock_ms: int | None = None
        self.arrived = MINUS_INFINITY
        self.serials: dict[str, int] = {}
        self.fresh_serials, self.made_ids = count(1), count(1)
        self.tasks = {
            partitioner: [Task(stream) for _ in range(1 if partitioner == ALL else stream.partitions)]
            for partitioner in stream.partitioners
        }

    @property
    def stream(self) -> Stream:
        return self.catalogue.stream

    # --- events

    def score(self, event: Mapping[str, Json], made_id: str | None = None) -> Reply:
        """The reply to a client's event; raises EventRefused.

        `made_id` is for a stream without an id field; without it one is made, which the reply does not tell.
        """
        record = self.read(event, made_id or f"made {next(self.made_ids)}")
        values = dict.fromkeys(self.catalogue.metrics)
        results: dict[str, Result] = dict.fromkeys(values)
        known_id = made_id if self.stream.id is None else record.id
        reply: Reply = {"id": known_id, "time": record.time, "metrics": values}
        for partitioner in self.stream.partitioners:
            task = self._task(partitioner, record.fields)
            answer = None if task is None else task.apply(record)
            if answer is not None:
                self._merge(reply, partitioner, answer)
                results.update(answer.values)
        self._derive(reply, self.stream.row(record.fields), results)
        return reply

    def values(self, key: Mapping[str, Json], names: Sequence[str] | None = None) -> Reply:
        """The metrics of a key; raises EventRefused.

        `as_of` has the clock of each task that was asked, None before its first event.
        """
        fields: Row = {}
        grouped = {name for metric in self.catalogue.metrics.values() for name in metric.group_by}
        for name, given in key.items():
            if name not in grouped:
                raise EventRefused(f"no metric groups by {name!r}")
            value = read_value(given, self.stream.types[name], name)
            # A null of a recorded field is absent. That of a computed one stays: nothing computes it anew.
            if value is not None or name in self.stream.computed:
                fields[name] = value
        chosen = self._determined(key.keys(), names)
        operands = {
            operand
            for name in chosen
            for operand in (
                self.catalogue.derived[name].operands if name in self.catalogue.derived else [name]
            )
        }
        whole: Reply = {
            "id": None,
            "time": None,
            "metrics": dict.fromkeys(self.catalogue.metrics),
            "as_of": {},
        }
        results: dict[str, Result] = dict.fromkeys(self.catalogue.metrics)
        for partitioner in self.stream.partitioners:
            task = self._task(partitioner, fields)
            is_needed = any(
                home(self.stream, self.catalogue.metrics[name]) == partitioner for name in operands
            )
            if task is not None and is_needed:
                answer = task.values(fields)
                self._merge(whole, partitioner, answer)
                results.update(answer.values)
                clock = None if task.clock == MINUS_INFINITY else int(task.clock)
                whole["as_of"][partitioner] = clock
        whole.pop("duplicate", None)
        self._derive(whole, fields, results)
        return _only(whole, chosen)

    def _determined(self, given: Collection[str], names: Sequence[str] | None) -> list[str]:
        """The metrics that a key with these fields determines, or those of them that are named."""
        metrics, derived = self.catalogue.metrics, self.catalogue.derived
        determined = [name for name, metric in metrics.items() if set(metric.group_by) <= set(given)]
        if not determined:
            raise EventRefused("the key determines no metric")
        determined += [
            name for name, each in derived.items() if not each.reads_fields and each.operands <= {*determined}
        ]
        if names is None:
            return determined
        for name in names:
            if name not in determined:
                raise EventRefused(f"the key does not determine {name!r}")
        return list(names)

    def _derive(self, reply: Reply, fields: Mapping[str, Value], results: Mapping[str, Result]) -> None:
        """Add the derived metrics. results: of the metrics."""
        warming, partial = set(reply.get("warming", ())), dict(reply.get("partial", {}))
        for name, derived in self.catalogue.derived.items():
            is_warming = bool(warming & derived.operands)
            value = None if is_warming else derived.result(fields, results)
            reply["metrics"][name] = json_value(value)
            if is_warming:
                reply["warming"].append(name)
            bounds = [partial[operand] for operand in derived.operands if operand in partial]
            if bounds:
                reply["partial"][name] = max(bounds)

    def read(self, event: Mapping[str, Json], made_id: str) -> EventRecord:
        """The front-end's part: types checked, id and time found, unknown fields left out."""
        fields: Row = {}
        for name, declared in self.stream.fields.items():
            value = read_field(event, self.stream.source(name), declared, name)
            if value is not None:
                fields[name] = value
        identity = made_id if self.stream.id is None else fields.get(self.stream.id)
        if not isinstance(identity, str | int):
            raise EventRefused("no id")
        return EventRecord(identity, self._time(fields), fields)

    def _time(self, fields: Row) -> int:
        if self.stream.time is None:
            if self.clock_ms is None:
                raise EventRefused("a stream without a time field needs the front-end's clock")
            self.arrived = max(self.arrived, self.clock_ms)
            return int(self.arrived)
        time = fields.get(self.stream.time)
        if not isinstance(time, int):
            raise EventRefused(f"no {self.stream.time}")
        if time == -(2**63):
            raise EventRefused(f"{self.stream.time} is minus infinity")
        if self.clock_ms is not None and time > self.clock_ms + self.stream.future_limit_ms:
            raise EventRefused(f"{self.stream.time} is too far ahead of the front-end's clock")
        return time

    def _task(self, partitioner: str, fields: Mapping[str, Any]) -> Task | None:
        if partitioner == ALL:
            return self.tasks[ALL][0]
        key = self.stream.row(fields).get(partitioner)
        assert key is None or isinstance(key, str | int)
        return None if key is None else self.tasks[partitioner][partition(key, self.stream.partitions)]

    def _merge(self, reply: Reply, partitioner: str, answer: TaskReply) -> None:
        """Take over what a task says of the metrics at home there; a task is never asked about others."""
        for name, value in answer.values.items():
            reply["metrics"][name] = json_value(value)
        if answer.late is not None:
            reply.setdefault("late", {})[partitioner] = answer.late
        if answer.duplicate:
            reply.setdefault("duplicate", []).append(partitioner)
        if answer.warming:
            reply.setdefault("warming", []).extend(answer.warming)
        if answer.partial:
            reply.setdefault("partial", {}).update(answer.partial)

    # --- changes: each is a control record in every partition

    def add_metrics(self, sql: str, *, warm: bool = True) -> list[str]:
        """Register a query's metrics; with `warm` they are filled before anything else happens."""
        items = parse_statement(sql)
        for item in items:
            if item.stream != self.stream.name:
                raise QueryRefused(f"no stream {item.stream!r}")
        derived = [item for item in items if isinstance(item, Derived)]
        if derived:
            changed = self.catalogue.copy()
            changed.derive(derived)
            self.catalogue = changed
            return [item.name for item in derived]
        return self._add([item for item in items if isinstance(item, Metric)], warm=warm)

    def _add(self, metrics: list[Metric], *, warm: bool) -> list[str]:
        trial = self.catalogue.copy()
        for metric in metrics:
            home(self.stream, metric)
            LiveMetric(metric, self.stream, 0, MINUS_INFINITY)
            trial.admit(metric)
            trial.metrics[metric.name] = metric
        for metric in metrics:
            self.catalogue.metrics[metric.name] = metric
            self.serials[metric.name] = next(self.fresh_serials)
            self._tell(home(self.stream, metric), AddMetric(metric, self.serials[metric.name]))
            if warm:
                self.warm(metric.name)
        return [metric.name for metric in metrics]

    def warm(self, name: str) -> None:
        """Write the `warm` record of a metric's newest `add`; of a dropped metric too."""
        for partitioner in self.stream.partitioners:
            self._tell(partitioner, Warm(self.serials[name]))

    def drop_metric(self, name: str) -> None:
        metric = self.catalogue.drop(name)
        if metric is not None:
            self._tell(home(self.stream, metric), DropMetric(name))

    def add_field(self, name: str, declared: Any) -> None:
        self.catalogue.check_unread(name)
        self._evolve(with_field(self.stream, name, declared), AddField(name, declared))

    def place_field(self, name: str, declared: Any) -> None:
        # Tasks hear of nothing: events come to them as they were taken in.
        self.catalogue.stream = placed(self.stream, name, declared)

    def drop_field(self, name: str) -> None:
        self.catalogue.check_no_reader(name)
        self._evolve(without_field(self.stream, name), DropField(name))

    def set_lateness(self, duration: str) -> None:
        lateness_ms = parse_duration(duration, "lateness")
        self._evolve(replace(self.stream, lateness_ms=lateness_ms), SetLateness(lateness_ms))

    def set_retention(self, duration: str) -> None:
        retention_ms = parse_retention(duration)
        self._evolve(replace(self.stream, retention_ms=retention_ms), SetRetention(retention_ms))

    def set_clock(self, clock_ms: int) -> None:
        self.clock_ms = clock_ms

    def _evolve(self, stream: Stream, record: Control) -> None:
        self.catalogue.stream = checked(stream)
        for partitioner in stream.partitioners:
            self._tell(partitioner, record)

    def _tell(self, partitioner: str, record: Control) -> None:
        for task in self.tasks[partitioner]:
            task.apply(record)


class Oracle:
    """All the streams of a definitions file, with its metrics registered."""

    def __init__(self, definitions: str) -> None:
        parsed = parse_definitions(definitions)
        self.streams = {name: StreamOracle(stream) for name, stream in parsed.streams.items()}
        # What others read comes first.
        left = list(parsed.queries)
        while left:
            sql = next((each for each in left if not self._waits(each, left)), left[0])
            self.stream_of(sql).add_metrics(sql)
            left.remove(sql)

    def _waits(self, sql: str, left: list[str]) -> bool:
        """Whether a DERIVE reads what is still to be registered."""
        names = {item.name for other in left if other != sql for item in parse_statement(other)}
        return any(
            names & set(names_in(item.expression))
            for item in parse_statement(sql)
            if isinstance(item, Derived)
        )

    def stream_of(self, sql: str) -> StreamOracle:
        """The stream that a query is about; raises QueryRefused."""
        name = parse_statement(sql)[0].stream
        if name not in self.streams:
            raise QueryRefused(f"no stream {name!r}")
        return self.streams[name]
