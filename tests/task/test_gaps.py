"""A task behind a gap of its log answers as the oracle does: whatever lay in the gap, whatever comes behind it, and
wherever the process ends.
"""

import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from railgun.catalog.catalog import Catalog
from railgun.catalog.changes import Change, PutStream, change_to_json
from railgun.catalog.changes import DropMetric as DropChange
from railgun.catalog.retelling import retold
from railgun.cluster.copies import Gap, LogPoint
from railgun.task import recovery
from railgun.task.errors import StateLeftBehindError, UnknownSchemaError
from railgun.task.meta import TaskMeta, decode_meta
from railgun.task.metrics import LiveMetric
from railgun.task.processor import TaskProcessor
from railgun.task.recovery import open_task
from railgun.task.settings import TaskIdentity, TaskSettings
from railgun.wire.control_records import encode_control
from railgun.wire.records import Records
from reservoir.files import DiskFiles
from tests.counts import seeds
from tests.oracle import records
from tests.oracle.durations import parse_duration, parse_retention
from tests.oracle.steps import (
    AddField,
    AddMetrics,
    DropField,
    DropMetric,
    Reply,
    Score,
    SetLateness,
    SetRetention,
    Step,
    WarmMetric,
    perform,
)
from tests.oracle.stream import StreamOracle
from tests.strategies.case import STREAM, Case, oracle
from tests.strategies.generate import Profile
from tests.strategies.seeded import case
from tests.task.player import TINY, LogWriter, TaskPlayer, assert_reply

PROFILE = Profile(spread=False, explicit_warm=True, control_percent=10, twins=True)
STEPS = 160
_ONE_STEP = 1_000


class GapPlayer(TaskPlayer):
    """A task whose log has lost its beginning. log_start: the first offset that is left."""

    gap: Gap | None = None
    log_start = 0

    def _open(self) -> TaskProcessor:
        return open_task(
            self.folder,
            TaskIdentity(STREAM, self.writer.partitioner, 0, b"0123456789abcdef"),
            DiskFiles(),
            self._read,
            self.settings,
            log_start=self.log_start,
            gap=self.gap,
        )

    def _read(self, first: int, end: int) -> Iterable[tuple[int, Records]]:
        assert self.gap is not None
        assert first >= self.log_start, "the log has nothing there"
        yield first, Records.of([record for _, record in self.writer.records[first:end]])

    def lose(self, log_start: int) -> StateLeftBehindError:
        """The log loses what was before an offset, while the task is closed. Returns what its opening says."""
        self.task.close()
        self.log_start = log_start
        with pytest.raises(StateLeftBehindError) as raised:
            self._open()
        return raised.value

    def cross(self, gap: Gap) -> None:
        self.gap = gap
        self.task = self._open()


def crossed(case_: Case, seed: int, folder: Path, settings: TaskSettings) -> tuple[int, int, int]:
    """Play a case with a gap. Returns how many answers behind it were compared, how many of them were partial by it,
    and how many metrics were not though they had been.
    """
    chance, steps = random.Random(seed), case_.steps
    lost_from, left_from, told_at = sorted(chance.sample(range(1, STEPS), 3))
    expected: dict[int, Reply | None] = {}
    model, writer = oracle(case_), LogWriter(case_)
    player = GapPlayer(folder, writer, settings)
    try:
        _go_on(player, model, steps, range(lost_from), expected, chance)
        player.task.checkpoints.take()
        state = LogPoint(player.task.position, player.task.leader_epoch)
        log_start = 0
        for index in range(lost_from, told_at):
            if index == left_from:
                log_start = len(writer.records)
            writer.write(index, steps[index])
        if log_start <= state.offset:
            return 0, 0, 0
        said = player.lose(log_start)
        (partitioner,) = model.tasks
        clock = model.tasks[partitioner][0].clock
        assert (said.position, said.clock_ms) == (state.offset, None if isinstance(clock, float) else clock)
        appended_ms, max_future_ms = _appended(steps[left_from:], chance), chance.choice((0, 1, _ONE_STEP))
        gap_ms = max(appended_ms if said.clock_ms is None else said.clock_ms, appended_ms) + max_future_ms
        player.cross(Gap(state, log_start, gap_ms, *_told(writer)))
        # The oracle.
        _change(model, steps[lost_from:told_at])
        model.tasks[partitioner][0].cross_gap(appended_ms, max_future_ms)
        for index in range(left_from, told_at):
            if isinstance(steps[index], Score) or _is_of_now(steps, index, told_at):
                expected[index] = perform(model, steps[index])
        if chance.random() < 0.5:
            player.crash()
        player._process(len(writer.records))
        _go_on(player, model, steps, range(told_at, STEPS), expected, chance)
    finally:
        player.task.close()
    behind = [index for index in player.answers if index >= left_from]
    for index in player.answers:
        assert_reply(expected[index], player.answers[index], writer.partitioner, f"seed {seed}, step {index}")
    bounds = [player.answers[index]["partial"].values() for index in behind]
    whole = [len(player.answers[index]["metrics"]) - len(each) for index, each in zip(behind, bounds)]
    return len(behind), sum(gap_ms in each for each in bounds), sum(whole)


def _go_on(
    player: GapPlayer,
    model: StreamOracle,
    steps: tuple[Step, ...],
    indexes: range,
    expected: dict[int, Reply | None],
    chance: random.Random,
) -> None:
    for index in indexes:
        expected[index] = perform(model, steps[index])
        player.writer.write(index, steps[index])
        if chance.random() < 0.3:
            player.catch_up()
        if chance.random() < 0.04:
            player.catch_up()
            chance.choice((player.crash, player.reopen))()
    player.catch_up()


def _appended(steps: Iterable[Step], chance: random.Random) -> int:
    """When the first record that is left was appended: around the time of its event."""
    times = [step.event["ts"] for step in steps if isinstance(step, Score)] or [0]
    return times[0] + chance.choice((0, 0, 1, -1_000, 60_000, -86_400_000))


def _told(writer: LogWriter) -> tuple[tuple[int, int], int]:
    """Write the definitions in force again, as the registry does."""
    catalog = Catalog(writer.changes[offset] for offset in sorted(writer.changes))
    begin = len(writer.records)
    for change in retold(catalog.entry(STREAM)):
        writer.records.append((None, encode_control(change_to_json(change))))
    return (begin, len(writer.records)), catalog.last_place


def _change(model: StreamOracle, steps: tuple[Step, ...]) -> None:
    """Make the changes of a gap: lateness and retention as they are at last, then fields and metrics one by one."""
    lateness = [parse_duration(step.duration, "lateness") for step in steps if isinstance(step, SetLateness)]
    retention = [parse_retention(step.duration) for step in steps if isinstance(step, SetRetention)]
    stream = model.stream
    last = replace(
        stream,
        lateness_ms=[stream.lateness_ms, *lateness][-1],
        retention_ms=[stream.retention_ms, *retention][-1],
    )
    model._evolve(last, records.SetLateness(last.lateness_ms))
    model._evolve(last, records.SetRetention(last.retention_ms))
    for step in steps:
        if isinstance(step, AddField | DropField | AddMetrics | DropMetric):
            perform(model, step)


def _is_of_now(steps: tuple[Step, ...], index: int, told_at: int) -> bool:
    """Whether a step is a `warm` record of a metric that no later step before the order replaces."""
    step = steps[index]
    if not isinstance(step, WarmMetric):
        return False
    return not any(isinstance(each, DropMetric) and each.name == step.name for each in steps[index:told_at])


def play(seed: int, folder: Path, settings: TaskSettings = TINY) -> tuple[int, int, int]:
    return crossed(case(seed, STEPS, PROFILE), seed, folder / "t", settings)


@pytest.mark.parametrize("seed", seeds(range(20), range(400)))
def test_a_task_behind_a_gap_answers_as_the_oracle_does(seed: int, tmp_path: Path) -> None:
    play(seed, tmp_path)


def no_crossing_in_commits(patch: pytest.MonkeyPatch) -> None:
    def decode(body: bytes, place: str) -> TaskMeta:
        meta = decode_meta(body, place)
        meta.gap = None
        return meta

    patch.setattr(recovery, "decode_meta", decode)


def bounds_of_metrics(patch: pytest.MonkeyPatch) -> None:
    """The end of the gap is taken for the bound of each metric: events up to it are never subtracted again."""
    cross = TaskProcessor.cross

    def crossing(task: TaskProcessor, found: Any, *more: Any) -> None:
        cross(task, found, *more)
        for name, metric in task.metrics.by_name.items():
            task.metrics.by_name[name] = replace(metric, after_ms=found.gap_ms)
        for fill in task.metrics.fills.values():
            fill.after_ms = found.gap_ms
        task.rebuild()

    patch.setattr(TaskProcessor, "cross", crossing)


def _told_otherwise(patch: pytest.MonkeyPatch, change: Callable[[list[Change]], list[Change]]) -> None:
    cross = TaskProcessor.cross
    patch.setattr(
        TaskProcessor, "cross", lambda task, found, told, place: cross(task, found, change(told), place)
    )


def definitions_forgotten(patch: pytest.MonkeyPatch) -> None:
    _told_otherwise(patch, lambda _: [])


def old_schemas_forgotten(patch: pytest.MonkeyPatch) -> None:
    def newest(told: list[Change]) -> list[Change]:
        last = max(change.schema_version for change in told if isinstance(change, PutStream))
        return [each for each in told if not isinstance(each, PutStream) or each.schema_version == last]

    _told_otherwise(patch, newest)


def partial_for_ever(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LiveMetric, "reaches_back", lambda *_: True)


def never_partial(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LiveMetric, "reaches_back", lambda *_: False)


def drops_forgotten(patch: pytest.MonkeyPatch) -> None:
    _told_otherwise(patch, lambda told: [each for each in told if not isinstance(each, DropChange)])


PLANTS: list[Callable[[pytest.MonkeyPatch], None]] = [
    no_crossing_in_commits,
    bounds_of_metrics,
    definitions_forgotten,
    old_schemas_forgotten,
    partial_for_ever,
    never_partial,
    drops_forgotten,
]


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.__name__)
def test_a_planted_bug_is_caught(
    plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plant(monkeypatch)
    with pytest.raises((AssertionError, StateLeftBehindError, UnknownSchemaError)):
        _ = [play(seed, tmp_path / str(seed)) for seed in range(40)]


def test_these_cases_have_all_that_matters(tmp_path: Path) -> None:
    """Answers behind a gap, some partial by it, and some whole."""
    found = [play(seed, tmp_path / str(seed)) for seed in range(10)]
    assert all(sum(each) > 100 for each in zip(*found)), found
