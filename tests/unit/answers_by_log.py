"""What the oracle makes of a task's log, in which metrics come and go, beside the answers that a front-end got."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from railgun.catalog import changes
from railgun.catalog.task_key import TaskKey
from railgun.ingest.result_table import LATE_WORDS
from railgun.wire.control_records import decode_control
from railgun.wire.records import CONTROL, kind_of
from railgun.wire.reply import ReplyFlag
from tests.oracle.compare import metric_differences
from tests.oracle.query import parse_query
from tests.oracle.records import AddMetric, Control, DropMetric, Warm
from tests.oracle.stream import Oracle
from tests.oracle.task import Task, TaskReply
from tests.oracle.values import json_value, read_value
from tests.oracle.windows import MINUS_INFINITY
from tests.unit.front_end import Answer

_FRONT_END, _SEQUENCE = 3, 5


def check_answers(
    definitions: str,
    task: TaskKey,
    records: Iterable[bytes],
    event_of: Callable[[int, int], Mapping[str, Any]],
    answer_of: Callable[[int, int], Answer | None],
    *,
    has_lost_records: bool = False,
) -> int:
    """Compare the answer to every event of a task with the oracle's, and return how many there were.

    Values are compared with their types; and with each answer, the place of the newest change that the task had read:
    by it front-ends know which derived metrics a reply names.

    definitions: of the stream.
    records: the task's whole log.
    event_of, answer_of: return the event of a front-end and a sequence number, and what the task answered.
    has_lost_records: whether events of the log may have been answered at other offsets, before records were lost.
    Raises AssertionError.
    """
    reader, compared, newest = Oracle(definitions).streams[task.stream], 0, 0
    oracle = Task(reader.stream)
    for offset, record in enumerate(records):
        if kind_of(record) == CONTROL:
            # Of `warm` records there is none.
            newest = max(newest, decode_control(record).get("place", 0))
            control = _control(record, oracle, task.partitioner)
            if control is not None:
                oracle.apply(control)
            continue
        fields = msgspec.msgpack.decode(record[1:])
        place = fields[_FRONT_END], fields[_SEQUENCE]
        reply, answer = oracle.apply(reader.read(event_of(*place), "")), answer_of(*place)
        assert reply is not None
        assert answer is not None, f"{task}: the event at offset {offset} was not answered"
        if has_lost_records and answer["offset"] != offset:
            continue
        assert answer["offset"] == offset, (
            f"{task}: the event at {offset} was answered as that at {answer['offset']}"
        )
        wrong = list(metric_differences(_values(reply), answer["values"]))
        assert not wrong, f"{task} at offset {offset}: {wrong}"
        found, expected = _of_answer(answer), _of_oracle(reply) | {"place": newest}
        assert found == expected, f"{task} at offset {offset}: {found}, and by the oracle {expected}"
        compared += 1
    return compared


@dataclass(frozen=True)
class AskedValues:
    """What a task answered about a key. time: its clock, None before its first event."""

    offset: int
    key: Mapping[str, Any]
    metrics: Mapping[str, Any]
    time: int | None


def check_values(
    definitions: str,
    task: TaskKey,
    records: Iterable[bytes],
    event_of: Callable[[int, int], Mapping[str, Any]],
    asked: Iterable[AskedValues],
) -> int:
    """Compare what a task was asked with what the oracle makes of its log up to the offset that the answer names.

    The rest is as in `check_answers`. Returns how many answers there were. Raises AssertionError.
    """
    reader, compared = Oracle(definitions).streams[task.stream], 0
    oracle, left = Task(reader.stream), sorted(asked, key=lambda each: -each.offset)
    types = reader.stream.fields
    for offset, record in enumerate(records):
        if kind_of(record) == CONTROL:
            control = _control(record, oracle, task.partitioner)
            if control is not None:
                oracle.apply(control)
        else:
            fields = msgspec.msgpack.decode(record[1:])
            oracle.apply(reader.read(event_of(fields[_FRONT_END], fields[_SEQUENCE]), ""))
        while left and left[-1].offset == offset:
            each = left.pop()
            typed = {name: read_value(value, types[name], name) for name, value in each.key.items()}
            row = {name: value for name, value in typed.items() if value is not None}
            wrong = list(metric_differences(_values(oracle.values(row)), each.metrics))
            assert not wrong, f"{task} at offset {offset}: {each}: {wrong}"
            assert each.time == (None if oracle.clock == MINUS_INFINITY else oracle.clock)
            compared += 1
    assert not left, f"{task}: answered at offsets that its log does not have: {left[:3]}"
    return compared


def _of_answer(answer: Answer) -> dict[str, Any]:
    flags = answer["flags"]
    return {
        "place": answer["place"],
        "late": LATE_WORDS.get(flags & (ReplyFlag.REWRITTEN | ReplyFlag.DISCARDED)),
        "duplicate": bool(flags & ReplyFlag.DUPLICATE),
        "warming": sorted(answer["warming"]),
        "partial": answer["partial"],
    }


def _values(reply: TaskReply) -> dict[str, Any]:
    return {name: json_value(value) for name, value in reply.values.items()}


def _of_oracle(reply: TaskReply) -> dict[str, Any]:
    return {
        "late": reply.late,
        "duplicate": reply.duplicate,
        "warming": sorted(reply.warming),
        "partial": reply.partial,
    }


def _control(record: bytes, task: Task, partitioner: str) -> Control | None:
    """The oracle's word for a control record, if it concerns a task, which is one of a partitioner."""
    body = decode_control(record)
    if body["kind"] == changes.AddMetric.kind:
        if body["home"] != partitioner:
            return None
        [metric] = [each for each in parse_query(body["sql"]) if each.name == body["name"]]
        return AddMetric(metric, body["place"])
    if body["kind"] == changes.DropMetric.kind and body["name"] in task.metrics:
        return DropMetric(body["name"])
    if body["kind"] == changes.Warm.kind:
        return Warm(body["added"])
    return None
