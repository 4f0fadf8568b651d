"""A front-end for tests: events to the tasks' topics, replies back from its own, merged as clients get them."""

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from railgun.catalog.catalog import StreamEntry
from railgun.ingest.result_table import LATE_WORDS
from railgun.ingest.routing import Router
from railgun.language.types import Kind, Type
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.messaging.transport import Entry, TopicPartition
from railgun.plan.outputs import MetricColumn
from railgun.registry.topics import Topics
from railgun.wire.encode import encode_event
from railgun.wire.partition import NOT_SENT
from railgun.wire.records import Records
from railgun.wire.reply import ReplyBatch, ReplyFlag, decode_reply
from railgun.wire.schema import Schema
from railgun.wire.validator import EventValidator, Roles
from tests.oracle.values import json_value
from tests.unit.derived_replies import Deriving

INCARNATION = 7
WAIT_S = 120.0

Answer = dict[str, Any]


class FrontEnd:
    """answers: by sequence number and partitioner what was answered first; repeats: how many came again, which must
    be the same.

    may_differ: which of them may come again otherwise: of events that a gap of the log took from the state behind it.
    """

    def __init__(self, transport: KafkaTransport, topics: Topics, number: int) -> None:
        self._transport, self._topics, self.number = transport, topics, number
        self.where = TopicPartition(topics.replies(number), 0)
        transport.create_topic(self.where.topic, 1)
        self._position = 0
        self.sent: list[tuple[dict[str, Any], list[str]]] = []
        self._events: list[tuple[Sequence[Any], Schema]] = []
        # As it was sent to last.
        self._entry: StreamEntry | None = None
        self._rows: dict[tuple[int, str], tuple[ReplyBatch, int]] = {}
        self.answers: dict[tuple[int, str], Answer] = {}
        self.may_differ: set[tuple[int, str]] = set()
        self.repeats = 0
        # What was sent before this one is answered.
        self._answered = 0

    def send(self, entry: StreamEntry, events: Sequence[Mapping[str, Any]]) -> None:
        """Publish events, each with the next sequence number, and return when the broker has them all."""
        stream, schema, self._entry = entry.stream, entry.schema, entry
        roles = Roles(schema, stream.time, stream.id, stream.recorded_partitioners)
        validator, router = EventValidator(roles), Router(stream)
        id_place = -1 if stream.id is None else schema.index(stream.id)
        sent: dict[TopicPartition, list[bytes]] = {}
        for event in events:
            admitted = validator.admit(event)
            sequence = len(self.sent)
            made_id = admitted.id or f"made-{sequence}"
            time_ms = admitted.time_ms or 0
            record = encode_event(
                schema.version, made_id, time_ms, admitted.values, self.number, INCARNATION, sequence
            )
            partitions = router.partitions(router.routed(admitted.values))
            asked: list[str] = []
            for partitioner, partition in zip(router.partitioners, partitions):
                if partition != NOT_SENT:
                    where = TopicPartition(self._topics.tasks(stream.name, partitioner), partition)
                    sent.setdefault(where, []).append(record)
                    asked.append(partitioner)
            event_id = made_id if id_place < 0 else admitted.values[id_place]
            nothing = {"id": event_id, "time": time_ms, "metrics": dict.fromkeys(entry.metrics)}
            self.sent.append((nothing, asked))
            self._events.append((admitted.values, schema))
        if sent:
            entries = [Entry(where, Records.of(records)) for where, records in sent.items()]
            self._transport.submit(entries).result(WAIT_S)

    def collect(self) -> None:
        """Take what has come."""
        for fetched in self._transport.fetch({self.where: self._position}, 10_000, 16 << 20, 0.1):
            for value in fetched.values():
                self._take(decode_reply(value))
            self._position = fetched.next_offset

    def collect_all(self) -> None:
        """Take everything that is in the topic now."""
        end = self._transport.end_offset(*self.where)
        while self._position < end:
            self.collect()

    def missing(self) -> list[tuple[int, str]]:
        """What was asked and is not answered."""
        while self._answered < len(self.sent) and not self._missing_of(self._answered):
            self._answered += 1
        return [
            (sequence, partitioner)
            for sequence in range(self._answered, len(self.sent))
            for partitioner in self._missing_of(sequence)
        ]

    def _missing_of(self, sequence: int) -> list[str]:
        _, asked = self.sent[sequence]
        return [partitioner for partitioner in asked if (sequence, partitioner) not in self.answers]

    def await_all(self, wait_s: float = WAIT_S) -> None:
        """Collect until everything is answered."""
        deadline = time.monotonic() + wait_s
        expected = sum(len(asked) for _, asked in self.sent)
        while len(self.answers) < expected:
            self.collect()
            assert time.monotonic() < deadline, f"not answered: {self.missing()[:10]}"

    def replies(self) -> list[dict[str, Any]]:
        """Of every event, as clients get them."""
        merged: list[dict[str, Any]] = []
        has_derived = self._entry is not None and any(each.derived for each in self._entry.registered)
        deriving = Deriving(self._entry) if self._entry is not None and has_derived else None
        for sequence, (reply, asked) in enumerate(self.sent):
            into = {**reply, "metrics": dict(reply["metrics"])}
            for partitioner in asked:
                _merge(partitioner, self.answers[sequence, partitioner], into)
            if deriving is not None:
                rows = {partitioner: self._rows[sequence, partitioner] for partitioner in asked}
                derived = deriving.of(*self._events[sequence], rows)
                into["metrics"].update(derived.values)
                _note(into, derived.warming, derived.partial)
            merged.append(into)
        return merged

    def _take(self, batch: ReplyBatch) -> None:
        columns = [_column(batch, index) for index in range(len(batch.source.metrics))]
        warming = [metric.name for metric in batch.source.metrics if metric.warming]
        for row in range(len(batch)):
            assert batch.incarnation[row] == INCARNATION
            answer: Answer = {
                "offset": int(batch.offset[row]),
                "flags": int(batch.flags[row]),
                "time": int(batch.time[row]),
                "place": batch.place,
                "metrics": {column.name: repr(json_value(column.value(row))) for column in columns},
                "values": {column.name: json_value(column.value(row)) for column in columns},
                "warming": warming,
                "partial": {
                    batch.source.metrics[part.metric].name: part.bound_ms
                    for part in batch.partials
                    if part.first_row <= row < part.after_row
                },
            }
            key = int(batch.sequence[row]), batch.source.partitioner
            if key in self.answers and key in self.may_differ:
                continue
            if key in self.answers:
                self.repeats += 1
                assert self.answers[key] == answer, f"{key}: first {self.answers[key]}, then {answer}"
            self.answers[key] = answer
            self._rows[key] = batch, row


def _column(batch: ReplyBatch, index: int) -> MetricColumn:
    metric = batch.source.metrics[index]
    words = batch.words(index)
    both = np.zeros((len(batch), 2), np.uint64)
    both[:, : words.shape[1]] = words
    type_ = Type(Kind(metric.kind), metric.precision, metric.scale)
    return MetricColumn(metric.name, type_, both, batch.nulls[index], batch.heap)


def _merge(partitioner: str, answer: Answer, reply: dict[str, Any]) -> None:
    reply["metrics"].update(answer["values"])
    late = answer["flags"] & (ReplyFlag.REWRITTEN | ReplyFlag.DISCARDED)
    if late:
        reply.setdefault("late", {})[partitioner] = LATE_WORDS[late]
    if answer["flags"] & ReplyFlag.DUPLICATE:
        reply.setdefault("duplicate", []).append(partitioner)
    _note(reply, answer["warming"], answer["partial"])


def _note(reply: dict[str, Any], warming: Iterable[str], partial: Mapping[str, int]) -> None:
    if warming:
        reply.setdefault("warming", []).extend(warming)
    if partial:
        reply.setdefault("partial", {}).update(partial)
