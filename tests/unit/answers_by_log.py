"""What the oracle makes of a task's log, in which metrics come and go, beside the answers that a front-end got."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
    compared = 0
    for expected in expected_answers(definitions, task, records, event_of):
        answer = answer_of(*expected.place)
        assert answer is not None, f"{task}: the event at offset {expected.offset} was not answered"
        if has_lost_records and answer["offset"] != expected.offset:
            continue
        wrong = expected.difference(answer)
        assert not wrong, f"{task} at offset {expected.offset}: {wrong}"
        compared += 1
    return compared


@dataclass(frozen=True)
class Expected:
    """What the oracle makes of an event.

    place: its front-end, and its sequence number.
    newest: the place of the newest change before it.
    """

    offset: int
    place: tuple[int, int]
    reply: TaskReply
    newest: int

    def difference(self, answer: Answer) -> str:
        """Return how an answer differs; empty if it does not."""
        if answer["offset"] != self.offset:
            return f"it was answered as that at {answer['offset']}"
        wrong = list(metric_differences(_values(self.reply), answer["values"]))
        if wrong:
            return str(wrong)
        found, wanted = _of_answer(answer), _of_oracle(self.reply) | {"place": self.newest}
        return "" if found == wanted else f"{found}, and by the oracle {wanted}"


@dataclass(frozen=True)
class Crossing:
    """How a task goes on behind a gap. position: the first record of the gap. offset: the first one behind it.

    appended_ms: when that one was appended.
    max_future_ms: of the stream.
    place: that of the last change that applies at the gap.
    """

    position: int
    offset: int
    appended_ms: int
    max_future_ms: int
    place: int


def expected_answers(
    definitions: str,
    task: TaskKey,
    records: Iterable[bytes],
    event_of: Callable[[int, int], Mapping[str, Any]],
    crossings: Sequence[Crossing] = (),
) -> Iterator[Expected]:
    """Yield what the oracle makes of each event of a log. See `check_answers`.

    crossings: the gaps that the task crosses, in their order.
    """
    reader, newest, log, offset = Oracle(definitions).streams[task.stream], 0, list(records), 0
    oracle, left = Task(reader.stream), list(crossings)
    while offset < len(log):
        if left and offset == left[0].position:
            crossing = left.pop(0)
            for body in _changes(log[offset:], newest, crossing.place):
                control = _control(body, oracle, task.partitioner)
                if control is not None:
                    oracle.apply(control)
            oracle.cross_gap(crossing.appended_ms, crossing.max_future_ms)
            newest, offset = max(newest, crossing.place), crossing.offset
            continue
        record = log[offset]
        if kind_of(record) == CONTROL:
            body = decode_control(record)
            # `warm` records have no place. Definitions are written again for a gap.
            place = body.get("place")
            if place is None or place > newest:
                newest = newest if place is None else place
                control = _control(body, oracle, task.partitioner)
                if control is not None:
                    oracle.apply(control)
        else:
            sender = place_of(record)
            reply = oracle.apply(reader.read(event_of(*sender), ""))
            assert reply is not None
            yield Expected(offset, sender, reply, newest)
        offset += 1


def place_of(record: bytes) -> tuple[int, int]:
    """Return the front-end of an event's record, and the sequence number."""
    fields = msgspec.msgpack.decode(record[1:])
    return fields[_FRONT_END], fields[_SEQUENCE]


def _changes(log: Iterable[bytes], newest: int, last: int) -> list[dict[str, Any]]:
    """Return the changes of some records whose places lie behind one and up to another, once each, by their places."""
    bodies = [decode_control(record) for record in log if kind_of(record) == CONTROL]
    found = {body["place"]: body for body in bodies if newest < body.get("place", 0) <= last}
    return [body for _, body in sorted(found.items())]


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
            control = _control(decode_control(record), oracle, task.partitioner)
            if control is not None:
                oracle.apply(control)
        else:
            oracle.apply(reader.read(event_of(*place_of(record)), ""))
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


def _control(body: Mapping[str, Any], task: Task, partitioner: str) -> Control | None:
    """The oracle's word for a control record, if it concerns a task, which is one of a partitioner."""
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
