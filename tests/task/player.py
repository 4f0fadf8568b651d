"""Plays a seeded case against one task: the case's steps as log records, in its batches, with restarts."""

import dataclasses
import random
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from railgun.catalog.changes import AddMetric, Change, DropMetric, PutStream, Warm, change_to_json
from railgun.catalog.definitions import parse_definitions
from railgun.catalog.model import StreamDefinition
from railgun.catalog.stream_reading import definition_to_json, stream_from_json
from railgun.ingest.routing import Router
from railgun.language.duration import parse_duration
from railgun.plan.outputs import Value
from railgun.task.environment import TaskEnvironment
from railgun.task.processor import TaskIdentity, TaskProcessor
from railgun.task.recovery import open_task
from railgun.task.replies import Replies
from railgun.task.settings import MIB, TaskSettings
from railgun.wire.control_records import encode_control
from railgun.wire.encode import encode_event
from railgun.wire.partition import NOT_SENT
from railgun.wire.records import Records
from railgun.wire.validator import EventValidator, Roles
from reservoir.files import DiskFiles
from tests.catalog.metrics_of_query import metrics_from_sql
from tests.oracle import steps
from tests.oracle.compare import same_value
from tests.oracle.steps import Reply, Step
from tests.strategies.case import STREAM, Case, replies

TINY = TaskSettings(
    row_cache_bytes=2 * MIB,
    page_cache_bytes=8 * MIB,
    chunk_cache_bytes=1 << 14,
    block_cache_bytes=MIB,
    chunk_events=16,
    segment_bytes=1 << 12,
    batch_events_max=64,
    crossings_max=64,
    checkpoint_interval_s=0.0,
    fill_rows_max=5,
)

_LATE = (None, "rewritten", "discarded")


class LogWriter:
    """Turns steps into the records of one task's log, each event with its place among the steps."""

    def __init__(self, case: Case) -> None:
        definitions = parse_definitions(case.definitions)
        self.stream = definitions.streams[STREAM]
        self.place, self.version = 0, 0
        self.live: dict[str, int] = {}
        self.records: list[tuple[int | None, bytes]] = []
        self.changes: dict[int, Change] = {}
        self._put()
        for metric in definitions.metrics:
            self._change(AddMetric(self._next(metric.name), metric))

    @property
    def partitioner(self) -> str:
        """The only one."""
        (partitioner,) = self.stream.partitioners
        return partitioner

    def write(self, index: int, step: Step) -> None:
        """Append what a step is in the log, if it is anything."""
        match step:
            case steps.Score(event):
                self._event(index, event)
            case steps.AddMetrics(sql, warm):
                metrics = metrics_from_sql(sql, {STREAM: self.stream})
                for metric in metrics:
                    self._change(AddMetric(self._next(metric.name), metric))
                for metric in metrics if warm else ():
                    self._control(change_to_json(Warm(STREAM, metric.name, self.live[metric.name])))
            case steps.WarmMetric(name):
                if name in self.live:
                    self._control(change_to_json(Warm(STREAM, name, self.live[name])))
            case steps.DropMetric(name):
                self.place += 1
                self._change(DropMetric(self.place, STREAM, name, self.live.pop(name)))
            case steps.AddField(name, declared):
                self._put(self._with_fields({name: declared}))
            case steps.DropField(name):
                self._put(self._with_fields({name: None}))
            case steps.SetLateness(duration):
                self._put(dataclasses.replace(self.stream, lateness_ms=parse_duration(duration)))
            case steps.SetRetention(duration):
                kept = None if duration == "forever" else parse_duration(duration)
                self._put(dataclasses.replace(self.stream, retention_ms=kept))
            case _:
                raise AssertionError(step)

    def _event(self, index: int, event: Any) -> None:
        stream = self.stream
        roles = Roles(stream.schema(self.version), stream.time, stream.id, stream.recorded_partitioners)
        admitted = EventValidator(roles).admit(event)
        if NOT_SENT not in self._router.partitions(self._router.routed(admitted.values)):
            record = encode_event(self.version, admitted.id or "", admitted.time_ms or 0, admitted.values)
            self.records.append((index, record))

    def _next(self, name: str) -> int:
        self.place += 1
        self.live[name] = self.place
        return self.place

    def _with_fields(self, changed: Mapping[str, Any]) -> StreamDefinition:
        """The stream with fields that are added, and without those that are None."""
        body = definition_to_json(self.stream)
        fields = {name: said for name, said in (body["fields"] | changed).items() if said is not None}
        return stream_from_json({**body, "fields": fields}, self.stream)

    def _put(self, stream: StreamDefinition | None = None) -> None:
        if stream is None or stream.types != self.stream.types or stream.computed != self.stream.computed:
            self.version += 1
        self.stream = stream or self.stream
        self._router = Router(self.stream)
        self.place += 1
        self._change(PutStream(self.place, self.stream, self.version))

    def _change(self, change: Change) -> None:
        self.changes[len(self.records)] = change
        self._control(change_to_json(change))

    def _control(self, body: dict[str, Any]) -> None:
        self.records.append((None, encode_control(body)))


class TaskPlayer:
    """A task fed from a log in memory."""

    def __init__(
        self,
        folder: Path,
        writer: LogWriter,
        settings: TaskSettings,
        environment: TaskEnvironment | None = None,
    ) -> None:
        self.folder, self.writer, self.settings = folder, writer, settings
        self.environment = environment
        self.answers: dict[int, dict[str, Any]] = {}
        self.source = random.Random(folder.parent.name)
        self.task = self._open()

    def _open(self) -> TaskProcessor:
        identity = TaskIdentity(STREAM, self.writer.partitioner, 0, b"0123456789abcdef")
        return open_task(
            self.folder, identity, DiskFiles(), self._read, self.settings, environment=self.environment
        )

    def _read(self, first: int, end: int) -> Iterable[tuple[int, Records]]:
        raise AssertionError("a recovery reads nothing before its checkpoint")

    def catch_up(self) -> None:
        """Process what the log holds and the task has not seen; chunks are prefetched for some metrics."""
        end = len(self.writer.records)
        added = [
            place
            for place in range(self.task.position, end)
            if isinstance(self.writer.changes.get(place), AddMetric)
        ]
        if added and self.source.random() < 0.7:
            self._prefetch(added)
        self._process(end)
        self.task.work()

    def _prefetch(self, added: list[int]) -> None:
        """For the first of them and maybe some others, while events before it go on."""
        source, first = self.source, added[0]
        # A stream that changes besides makes other metrics possible: they are prefetched for behind that.
        puts = [place for place, change in self.writer.changes.items() if isinstance(change, PutStream)]
        behind = max((place + 1 for place in puts if place < first), default=0)
        end = min((place for place in puts if place > first), default=len(self.writer.records))
        fitting = [place for place in added if place < end]
        chosen = fitting[: source.randint(1, len(fitting))]
        self._process(source.randint(max(behind, self.task.position), first))
        self.task.prefetch([self.writer.changes[place] for place in chosen])
        self._process(source.randint(self.task.position, first))

    def _process(self, end: int) -> None:
        first = self.task.position
        if end > first:
            records = [record for _, record in self.writer.records[first:end]]
            self.task.process(Records.of(records), first, self._deliver)

    def crash(self) -> None:
        """Go on from the last durable checkpoint: what was written after it is there, and has to be undone."""
        self.task.close()
        self.task = self._open()

    def reopen(self) -> None:
        """Checkpoint, close, open."""
        self.task.checkpoints.take()
        self.task.close()
        self.task = self._open()

    def _deliver(self, found: Replies) -> None:
        for row in range(found.n):
            index = self.writer.records[found.first_offset + row][0]
            assert index is not None
            assert found.decoded.status[row] == 0
            self.take(index, found, row)

    def take(self, index: int, found: Replies, row: int) -> None:
        """Note the answer to a step; one that was given before must be the same."""
        answer = {
            "metrics": found.metrics(row),
            "late": _LATE[int(found.late[row])],
            "duplicate": bool(found.duplicate[row]),
            "warming": sorted(found.warming),
            "partial": found.partial(row),
        }
        if index in self.answers:
            assert_same(self.answers[index], answer, f"step {index} again")
        self.answers[index] = answer


def play(case: Case, folder: Path, settings: TaskSettings, *, crash: bool) -> int:
    """Play a case, comparing every answer with the oracle's; returns how many were compared."""
    expected = replies(case)
    writer = LogWriter(case)
    player = TaskPlayer(folder, writer, settings)
    index = 0
    try:
        for batch in case.batches():
            if batch.restart:
                player.crash() if crash else player.reopen()
            for step in batch.steps:
                writer.write(index, step)
                index += 1
            player.catch_up()
    finally:
        player.task.close()
    for at, answer in player.answers.items():
        assert_reply(expected[at], answer, writer.partitioner, f"step {at}")
    return len(player.answers)


def assert_reply(expected: Reply | None, answer: dict[str, Any], partitioner: str, place: str) -> None:
    """Compare an answer with the oracle's reply to the client."""
    assert expected is not None
    wanted = {
        "metrics": expected["metrics"],
        "late": expected.get("late", {}).get(partitioner),
        "duplicate": partitioner in expected.get("duplicate", ()),
        "warming": sorted(expected.get("warming", ())),
        "partial": expected.get("partial", {}),
    }
    answer = {**answer, "metrics": {name: as_json(value) for name, value in answer["metrics"].items()}}
    assert_same(wanted, answer, place)


def as_json(value: Value) -> Any:
    """A value as replies carry it: decimals are strings."""
    return f"{value:f}" if type(value).__name__ == "Decimal" else value


def assert_same(wanted: dict[str, Any], got: dict[str, Any], place: str) -> None:
    """Equal, doubles by their bits."""
    for key in wanted:
        if key != "metrics":
            assert wanted[key] == got[key], f"{place}: {key}: expected {wanted[key]!r}, got {got[key]!r}"
    assert set(wanted["metrics"]) == set(got["metrics"]), place
    for name, value in wanted["metrics"].items():
        other = got["metrics"][name]
        assert same_value(value, other), f"{place}: {name}: expected {value!r}, got {other!r}"
