"""What has to be true of a simulated cluster once it has healed: every reply is the oracle's, all copies are equal."""

from typing import Any

import msgspec

from railgun.catalog import changes
from railgun.messaging.transport import TopicPartition
from railgun.wire.encode import decode_control
from railgun.wire.records import CONTROL, kind_of
from railgun.wire.reply import ReplyFlag
from tests.oracle.definitions import parse_definitions
from tests.oracle.query import parse_query
from tests.oracle.records import AddMetric, Control, DropMetric, Warm
from tests.oracle.stream import Oracle
from tests.oracle.task import Task, TaskReply
from tests.oracle.values import json_value
from tests.simulator.simulation import DEFINITIONS, STREAM, Broken, Simulation

_SEQUENCE, _FRONT_END = 5, 3


def check_replies(simulation: Simulation) -> int:
    """Compare every reply with what the oracle makes of the tasks' logs. Returns how many. Raises Broken."""
    reader, compared = Oracle(DEFINITIONS).streams[STREAM], 0
    stream = parse_definitions(DEFINITIONS).streams[STREAM]
    sent = {each.number: [event for event, _ in each.sent] for each in simulation.front_ends}
    by_id = {event["tx"]: event for event in simulation.events}
    answers = {each.number: each.answers for each in simulation.front_ends}
    for task in simulation.tasks:
        oracle = Task(stream)
        where = TopicPartition(simulation.topics.tasks(task.stream, task.partitioner), task.partition)
        for offset, (record, _) in enumerate(simulation.broker.logs[where].records):
            if kind_of(record) == CONTROL:
                control = _control(record, oracle, task.partitioner)
                if control is not None:
                    oracle.apply(control)
                continue
            fields = msgspec.msgpack.decode(record[1:])
            number, sequence = fields[_FRONT_END], fields[_SEQUENCE]
            event = by_id[sent[number][sequence]["id"]]
            reply = oracle.apply(reader.read(event, ""))
            assert reply is not None
            answer = answers[number].get((sequence, task.partitioner))
            if answer is None:
                raise Broken(f"{task}: the event at offset {offset} was not answered")
            found = _of_answer(answer)
            if answer["offset"] == offset and found != _of_oracle(reply):
                raise Broken(f"{task} at offset {offset}: {found}, and by the oracle {_of_oracle(reply)}")
            compared += 1
    return compared


def check_copies(simulation: Simulation) -> None:
    """Compare the digests of the copies that have caught up, which is all that are not being made. Raises Broken."""
    for task in simulation.tasks:
        hosts = [(name, host) for name, state, host in simulation.hosts(task) if state.is_caught_up]
        digests = {name: (host.position, host.task.digest()) for name, host in hosts}
        if len(set(digests.values())) > 1:
            raise Broken(f"copies of {task} differ: {digests}")


def _of_answer(answer: dict[str, Any]) -> dict[str, Any]:
    flags = answer["flags"]
    late = None
    if flags & ReplyFlag.REWRITTEN:
        late = "rewritten"
    elif flags & ReplyFlag.DISCARDED:
        late = "discarded"
    return {
        "values": answer["values"],
        "late": late,
        "duplicate": bool(flags & ReplyFlag.DUPLICATE),
        "warming": sorted(answer["warming"]),
        "partial": answer["partial"],
    }


def _of_oracle(reply: TaskReply) -> dict[str, Any]:
    return {
        "values": {name: json_value(value) for name, value in reply.values.items()},
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
