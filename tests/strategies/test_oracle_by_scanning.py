"""The oracle once more, read off the page with nothing kept: every reply by a scan over what was accepted."""

from collections.abc import Mapping

from tests.oracle.aggregates import Aggregate
from tests.oracle.definitions import with_field, without_field
from tests.oracle.expressions import evaluate, holds
from tests.oracle.inference import infer
from tests.oracle.records import (
    AddField,
    AddMetric,
    DropField,
    DropMetric,
    EventRecord,
    SetLateness,
    SetRetention,
)
from tests.oracle.syntax import Metric, Window
from tests.oracle.types import Type, Value
from tests.oracle.values import Result, json_value
from tests.strategies.case import TaskLog, task_logs
from tests.strategies.generate import Profile
from tests.strategies.seeded import case

Event = tuple[int, Mapping[str, Value]]


def is_in(window: Window, clock: int, time: int) -> bool:
    """The table of windows, word for word."""
    t = clock - window.delay_ms
    if window.kind == "sliding":
        return t - window.size_ms < time <= t
    if window.kind == "tumbling":
        return t // window.size_ms * window.size_ms <= time <= t
    return time <= t


def value(
    metric: Metric, fields: Mapping[str, Type], accepted: list[Event], clock: int, own: Mapping[str, Value]
) -> Result:
    """A metric's value for an event with these fields of its own. accepted: before it, where it is excluded."""
    where = None if metric.where is None else infer(metric.where, fields)
    argument = None if metric.argument is None else infer(metric.argument, fields)
    aggregate = Aggregate(metric.aggregator, None if argument is None else argument.type)
    chosen: list[Value] = []
    for time, event in sorted(accepted, key=lambda pair: pair[0]):
        row = dict(event)
        alike = all(row.get(name) == own.get(name) for name in metric.group_by)
        if alike and is_in(metric.window, clock, time) and holds(where, row):
            chosen.append(True if argument is None else evaluate(argument, row))
    return aggregate.result([aggregate.prepare(v) for v in chosen if v is not None])


def check_task(log: TaskLog) -> int:
    """Play a task's log again and compare every value; the number of values compared."""
    stream = log.stream
    lateness, retention = log.stream.lateness_ms, log.stream.retention_ms
    clock, floor, bound = float("-inf"), float("-inf"), float("-inf")
    # As they were recorded, and with the computed fields of now.
    recorded: list[Event] = []
    accepted: list[Event] = []
    added: dict[str, tuple[Metric, float]] = {}
    compared = 0
    for record, reply in log.records:
        if isinstance(record, EventRecord) and reply is not None:
            if not reply.duplicate and reply.late != "discarded":
                time = record.time if record.time >= floor else int(floor)
                recorded.append((time, record.fields))
                accepted.append((time, stream.row(record.fields)))
                clock = max(clock, time)
                current = 1
            else:
                current = 0
            for name, got in reply.values.items():
                metric, since = added[name]
                others = accepted[: len(accepted) - current] if metric.excludes_current else accepted
                seen = [event for event in others if event[0] > since]
                if name not in reply.warming:
                    expected = value(metric, stream.types, seen, int(clock), stream.row(record.fields))
                    assert repr(json_value(got)) == repr(json_value(expected)), (name, record)
                    compared += 1
        elif isinstance(record, AddMetric):
            added[record.metric.name] = record.metric, bound
        elif isinstance(record, DropMetric):
            del added[record.name]
        elif isinstance(record, AddField):
            stream = with_field(stream, record.name, record.declared)
            accepted = [(time, stream.row(fields)) for time, fields in recorded]
        elif isinstance(record, DropField):
            stream = without_field(stream, record.name)
        elif isinstance(record, SetLateness):
            lateness = record.lateness_ms
        elif isinstance(record, SetRetention):
            retention = record.retention_ms
        floor = max(floor, clock - lateness)
        bound = bound if retention is None else max(bound, clock - retention)
    return compared


def test_every_value_is_what_a_scan_finds() -> None:
    compared = 0
    for seed in range(120):
        drawn = case(seed, 40, Profile(spread=seed % 2 == 0, explicit_warm=seed % 3 == 0))
        for log in task_logs(drawn):
            compared += check_task(log)
    assert compared > 10_000
