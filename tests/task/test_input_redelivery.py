"""Records that an input topic gives again get their first reply, until their position is committed."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from railgun.language.types import Kind, Type
from railgun.plan.outputs import MetricColumn
from railgun.task.replies import Replies, ReplyWriter
from railgun.task.settings import TaskSettings
from railgun.wire.reply import ReplyBatch, ReplyFlag, ReplyMetric, decode_reply
from tests.counts import seeds
from tests.oracle.records import EventRecord, Position
from tests.oracle.task import TaskReply
from tests.oracle.values import json_value
from tests.strategies.case import TaskLog, task_logs
from tests.strategies.generate import Profile
from tests.strategies.redelivery import redelivered
from tests.strategies.seeded import case
from tests.strategies.source import SeededSource
from tests.task.player import TINY, LogWriter, TaskPlayer, as_json, assert_same

ONE_TASK = Profile(spread=False, explicit_warm=True)
FRONT_ENDS = 5, 6
LATE = {ReplyFlag.REWRITTEN: "rewritten", ReplyFlag.DISCARDED: "discarded"}


class RedeliveredLog(LogWriter):
    """The records of a seeded case's log as a reader of two input partitions writes it; see `redelivered`."""

    def __init__(self, seed: int, steps: int) -> None:
        chosen = case(seed, steps, ONE_TASK)
        super().__init__(chosen)
        for index, step in enumerate(chosen.steps):
            self.write(index, step)
        (plain,) = task_logs(chosen)
        self.expected = redelivered(plain, SeededSource(seed))
        self.records = list(self._given_again(self.expected))
        # They lie elsewhere now: nothing is prefetched for them here.
        self.changes = {}

    def _given_again(self, log: TaskLog) -> Iterator[tuple[int | None, bytes]]:
        controls: dict[int, list[bytes]] = {}
        events: list[bytes] = []
        for index, record in self.records:
            if index is None:
                controls.setdefault(len(events), []).append(record)
            else:
                events.append(record)
        yield from ((None, record) for record in controls.pop(0, []))
        numbers: dict[tuple[int, int], int] = {}
        for place, (wanted, _) in enumerate(log.records):
            if isinstance(wanted, EventRecord):
                position = wanted.position
                assert position is not None
                number = numbers.setdefault((position.partition, position.offset), len(numbers))
                yield place, _from_input(events[number], position, place)
            else:
                yield from ((None, record) for record in controls.pop(len(numbers), []))
        assert not controls


def _from_input(record: bytes, position: Position, sequence: int) -> bytes:
    items = msgspec.msgpack.decode(record[1:])
    source = position.partition, position.offset, position.committed
    return record[:1] + msgspec.msgpack.encode(
        [*items[:3], _asker(sequence), 1, sequence, source, *items[7:]]
    )


def _asker(sequence: int) -> int:
    """Who waits for a record's reply: some that are read together are one front-end's, some are not."""
    return FRONT_ENDS[sequence // 9 % 2]


class RecordPlayer(TaskPlayer):
    """Reads answers from the reply records that a front-end would get."""

    def _deliver(self, found: Replies) -> None:
        for destination, record in self._encoded(found):
            batch = decode_reply(record)
            for row, place in enumerate(batch.sequence.tolist()):
                assert destination == _asker(place)
                answer = _answer(batch, row)
                if place in self.answers:
                    assert_same(self.answers[place], answer, f"record {place} again")
                self.answers[place] = answer

    def _encoded(self, found: Replies) -> list[tuple[int, bytes]]:
        """As by a writer that knows of nothing before; the task's own, which is not asked each time, says the same."""
        waiting = found.decoded.reply_to.copy()
        anew = ReplyWriter(self.task.identity).records(found)
        if found.first_offset % 5:
            found.decoded.reply_to[:] = waiting
            assert self.task.encode(found) == anew
        return anew


def _answer(batch: ReplyBatch, row: int) -> dict[str, Any]:
    metrics = batch.source.metrics
    flags = ReplyFlag(int(batch.flags[row]))
    return {
        "id": batch.ids()[row],
        "metrics": {
            metric.name: as_json(_column(batch, index, metric).value(row))
            for index, metric in enumerate(metrics)
        },
        "late": next((word for flag, word in LATE.items() if flag & flags), None),
        "duplicate": bool(flags & ReplyFlag.DUPLICATE),
        "warming": sorted(metric.name for metric in metrics if metric.warming),
        "partial": {
            metrics[p.metric].name: p.bound_ms for p in batch.partials if p.first_row <= row < p.after_row
        },
    }


def _column(batch: ReplyBatch, index: int, metric: ReplyMetric) -> MetricColumn:
    type_ = Type(Kind(metric.kind), metric.precision, metric.scale)
    return MetricColumn(metric.name, type_, batch.words(index), batch.nulls[index], batch.heap)


def _wanted(record: EventRecord, reply: TaskReply) -> dict[str, Any]:
    return {
        "id": str(record.id),
        "metrics": {name: json_value(value) for name, value in reply.values.items()},
        "late": reply.late,
        "duplicate": reply.duplicate,
        "warming": sorted(reply.warming),
        "partial": reply.partial,
    }


def play(seed: int, steps: int, folder: Path, settings: TaskSettings) -> int:
    """Play a log in cuts of every size with crashes in between; how many replies were compared."""
    log = RedeliveredLog(seed, steps)
    records, log.records = log.records, []
    source = SeededSource(seed + 1)
    player = RecordPlayer(folder, log, settings)
    try:
        while len(log.records) < len(records):
            cut = 1 if source.chance(30) else source.integer(1, 40)
            log.records += records[len(log.records) : len(log.records) + cut]
            player.catch_up()
            if source.chance(20):
                player.crash() if source.chance(50) else player.reopen()
    finally:
        player.task.close()
    for place, (record, reply) in enumerate(log.expected.records):
        if isinstance(record, EventRecord):
            assert reply is not None
            assert_same(_wanted(record, reply), player.answers[place], f"seed {seed} record {place}")
    return len(player.answers)


@pytest.mark.parametrize("seed", seeds(range(8), range(25)))
def test_small_caches_and_crashes(seed: int, tmp_path: Path) -> None:
    assert play(seed, 80, tmp_path / "t", TINY) > 40


@pytest.mark.parametrize("seed", seeds(range(100, 102), range(100, 105)))
def test_default_settings(seed: int, tmp_path: Path) -> None:
    assert play(seed, 250, tmp_path / "t", TaskSettings()) > 150


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(1000, 1500))
def test_many(seed: int, tmp_path: Path) -> None:
    assert play(seed, 300, tmp_path / "t", TINY if seed % 2 else TaskSettings()) > 100


def test_only_what_is_not_committed_is_kept(tmp_path: Path) -> None:
    log = RedeliveredLog(3, 60)
    player = RecordPlayer(tmp_path / "t", log, TINY)
    try:
        player.catch_up()
        kept = player.task.inputs.positions()
        assert kept
        for partition, offsets in kept.items():
            inputs = [
                r.position for r, _ in log.expected.records if isinstance(r, EventRecord) and r.position
            ]
            committed = max(p.committed for p in inputs if p.partition == partition)
            met = {p.offset for p in inputs if p.partition == partition and p.offset >= committed}
            assert met <= set(offsets)
    finally:
        player.task.close()
