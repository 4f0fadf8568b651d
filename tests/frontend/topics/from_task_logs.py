"""What every event of an input topic must be answered, by the order that the tasks' topics have."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np

from railgun.ingest.ids import PositionIds
from railgun.messaging.kafka.settings import KafkaSettings
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.registry.topics import Topics
from tests.oracle.errors import EventRefused
from tests.oracle.records import EventRecord, Position
from tests.oracle.stream import Oracle, StreamOracle
from tests.strategies.case import STREAM

Sent = Mapping[tuple[int, int], Mapping[str, Any]]
"""Events by partition and offset."""
_PARTITION_MASK = (1 << 14) - 1
_EVENT = b"\x01"


def canonical(reply: Mapping[str, Any]) -> str:
    """Its text: equal for equal replies, lists whose order means nothing in order."""
    ordered = {key: sorted(value) if isinstance(value, list) else value for key, value in reply.items()}
    return json.dumps(ordered, sort_keys=True)


class Expected:
    """replies: by the id's text, what the oracle says of each event of that id.
    unanswerable: positions of events that it refuses.
    ids: the ids' texts of all others, by position.
    discarded: by position, the partitioners that discard an event as late, where some do.
    """

    def __init__(self, broker: str, prefix: str, definitions: str, sent: Sent) -> None:
        oracle = Oracle(definitions).streams[STREAM]
        topics = Topics(prefix)
        records: dict[tuple[int, int], EventRecord] = {}
        self.unanswerable: set[tuple[int, int]] = set()
        with KafkaTransport(KafkaSettings(broker)) as log:
            topic_id = log.topic_id(topics.input(STREAM))
            for (partition, offset), event in sent.items():
                made = PositionIds(f"{topic_id} {partition}", np.array([offset], np.int64)).next(0, 0)
                try:
                    records[partition, offset] = oracle.read(event, made)
                except EventRefused:
                    self.unanswerable.add((partition, offset))
            answers = self._answers(oracle, log, topics, records)
        self.ids = {where: str(each.id) for where, each in records.items()}
        self.discarded: dict[tuple[int, int], list[str]] = {}
        for where, answer in answers.items():
            names = [name for name, what in answer.get("late", {}).items() if what == "discarded"]
            if names:
                self.discarded[where] = names
        self.replies: dict[str, list[str]] = defaultdict(list)
        for where, record in records.items():
            self.replies[str(record.id)].append(canonical(answers[where]))

    def _answers(
        self,
        oracle: StreamOracle,
        log: KafkaTransport,
        topics: Topics,
        records: Mapping[tuple[int, int], EventRecord],
    ) -> dict[tuple[int, int], dict[str, Any]]:
        answers: dict[tuple[int, int], dict[str, Any]] = {
            where: {"id": each.id, "time": each.time, "metrics": dict.fromkeys(oracle.catalogue.metrics)}
            for where, each in records.items()
        }
        for partitioner, tasks in oracle.tasks.items():
            seen: set[tuple[int, int]] = set()
            for place, task in enumerate(tasks):
                for position in _positions(log, topics.tasks(STREAM, partitioner), place):
                    where = (position.partition & _PARTITION_MASK, position.offset)
                    record = records[where]
                    assert oracle._task(partitioner, record.fields) is task, (
                        "it is in the log of another task"
                    )
                    answer = task.apply(replace(record, position=position))
                    assert answer is not None
                    if where not in seen:
                        seen.add(where)
                        oracle._merge(answers[where], partitioner, answer)
        return answers


def _positions(log: KafkaTransport, topic: str, partition: int) -> Iterator[Position]:
    """Where the events of a task's log came from, in its order."""
    offset, end = 0, log.end_offset(topic, partition)
    while offset < end:
        fetched = log.read(topic, partition, offset, 10_000, 64 << 20)
        for record in fetched.values():
            if record[:1] == _EVENT:
                yield Position(*msgspec.msgpack.decode(record[1:])[6])
        offset = fetched.next_offset
