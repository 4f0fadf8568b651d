"""What one task of a unit waits for holds up no other task of it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from railgun.catalog.changes import AddHistory, AddMetric, Warm
from railgun.catalog.definitions import parse_definitions
from railgun.cluster.copies import CopyState
from railgun.history import manifest
from railgun.history.build import HistoryBuild, HistoryPlan
from railgun.host.place import history_folder
from railgun.task.fills import FillWork
from railgun.unit import replaced_logs
from railgun.wire.encode import encode_event
from railgun.wire.records import Records
from tests.unit.embedded_unit import DEFINITIONS, EmbeddedUnit, embedded_unit
from tests.unit.local_units import SMALL, awaited

_CUT_MS = 50_000
_LATER = """
[[metrics]]
sql = "SELECT count(*) AS later FROM s GROUP BY k OVER INFINITE"
"""


@contextmanager
def _held(patch: pytest.MonkeyPatch, where: object, name: str) -> Iterator[threading.Event]:
    """Let a function wait, until the block ends. Gives what is set once somebody waits there."""
    begun, may_go_on, do = threading.Event(), threading.Event(), getattr(where, name)

    def waits(*arguments: object) -> object:
        begun.set()
        assert may_go_on.wait(60)
        return do(*arguments)

    patch.setattr(where, name, waits)
    try:
        yield begun
    finally:
        may_go_on.set()


def _build(unit: EmbeddedUnit, history: str, events: int) -> None:
    """Build a history for the first task."""
    definitions = parse_definitions(DEFINITIONS)
    plan = HistoryPlan(
        history=history,
        key=bytes(16),
        created=1,
        schemas={1: definitions.streams["s"]},
        metrics=[AddMetric(2, metric) for metric in definitions.metrics],
        last_place=2,
        cut_ms=_CUT_MS,
        chunk_events=SMALL.chunk_events,
        segment_bytes=SMALL.segment_bytes,
    )
    folder = history_folder(unit.data, "s", "k", 0)
    folder.mkdir(parents=True)
    build = HistoryBuild(folder, plan, "k", 0, SMALL)
    times = range(_CUT_MS - events, _CUT_MS)
    build.take(Records.of([encode_event(1, f"h{each}", each, [f"h{each}", each, "a"]) for each in times]))
    build.finish()


def test_history_whose_files_are_slow_to_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with embedded_unit(tmp_path) as unit:
        _build(unit, "h1", 20)
        with _held(monkeypatch, manifest, "_checksum") as begun:
            unit.change(0, AddHistory(3, "s", "h1", _CUT_MS))
            unit.event(0)
            unit.round_until(begun.is_set)
            unit.answers_meanwhile(1)
            assert unit.state(0) is CopyState.BEHIND
            assert not unit.loop.is_ready
            assert not unit.has_answered(0)
        unit.round_until(lambda: unit.has_answered(0))
        assert unit.host(0).task.history == "h1"
        unit.round_until(lambda: unit.loop.is_ready)
        assert sum(len(rows.seq) for rows in unit.host(0).task.reservoir.scan()) == 21


def test_questions_about_logs_do_not_wait_for_a_task_that_takes_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each lane of hosts may be taken by a task that copies its history, for minutes."""
    may_go_on = threading.Event()
    monkeypatch.setattr(replaced_logs, "LOOK_S", 0.1)
    with embedded_unit(tmp_path) as unit:
        asked: list[object] = []
        monkeypatch.setattr(unit.log, "topic_ids", lambda topics: asked.append(topics) or {}, raising=False)
        try:
            for _ in range(2):
                unit.lanes.next().submit(lambda: may_go_on.wait(60))
            unit.round_until(lambda: bool(asked))
        finally:
            may_go_on.set()


def test_history_that_is_being_copied_costs_no_other_task_its_last_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with embedded_unit(tmp_path, replace(SMALL, checkpoint_interval_s=1e9, replay_s=1e9)) as unit:
        _build(unit, "h1", 20)
        stops = threading.Thread(target=unit.loop.stop)
        with _held(monkeypatch, manifest, "_checksum") as begun:
            unit.change(0, AddHistory(3, "s", "h1", _CUT_MS))
            unit.round_until(begun.is_set)
            unit.answers_meanwhile(1)
            checkpoints, position = unit.host(1).task.checkpoints, unit.host(1).position
            assert checkpoints.durable_position < position
            stops.start()
            awaited(lambda: checkpoints.durable_position == position)
            assert unit.host(1).is_running
        stops.join()
        assert not unit.host(1).is_running


def test_a_metric_that_answers_elsewhere_before_it_is_filled_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the copy that wrote the `warm` record has gone."""
    finish, forced = FillWork.finish, list[int]()

    def noted(work: FillWork, generation: int) -> None:
        if work.waiting:
            forced.append(generation)
        finish(work, generation)

    monkeypatch.setattr(FillWork, "finish", noted)
    settings = replace(SMALL, fill_rows_max=1, checkpoint_interval_s=0.05)
    with embedded_unit(tmp_path, settings) as unit:
        for _ in range(300):
            unit.event(0)
        unit.round_until(lambda: unit.has_answered(0))
        later = parse_definitions(DEFINITIONS + _LATER).metrics[-1]
        unit.change(0, AddMetric(3, later))
        unit.change(0, Warm("s", "later", 3))
        unit.event(0)
        host = unit.host(0)
        unit.round_until(lambda: host.is_filling)
        position, checkpoints = host.position, host.task.checkpoints.taken
        unit.answers_meanwhile(1)
        assert (host.position, host.is_filling) == (position, True)
        assert unit.state(0) is CopyState.BEHIND
        unit.round_until(lambda: unit.has_answered(0))
        assert not forced
        assert host.task.metrics.by_name["later"].warm
        # What it has filled survives a crash.
        assert host.task.checkpoints.taken > checkpoints + 2
