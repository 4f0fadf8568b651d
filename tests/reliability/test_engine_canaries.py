"""Bugs planted in a running task, each caught by the seeded campaign: a checker that cannot fail shows nothing.

A naive sum, a deque that removes by value and wrong order of ties in aggregators: tests/aggregators/test_canaries.py.
Rows, pages and undoing by themselves: tests/state/test_state_canaries.py, paged/test_pages_canaries.py.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from railgun.aggregators import codes
from railgun.interpreter import layout as at
from railgun.plan.program import Program, ProgramBuilder
from railgun.state.errors import StateError
from railgun.state.rollback import WrittenKeys
from railgun.state.rows.context import ROW_HEAD_BYTES
from railgun.state.rows.table import EntityTable
from railgun.task import processor, retirement, sweep
from railgun.task.admission import Admission
from railgun.task.execution import Execution
from railgun.task.settings import TaskSettings
from reservoir import layout as reservoir_layout
from reservoir.errors import RowOrderError
from reservoir.frames import FRAME_SEQ, FRAME_WORDS
from reservoir.native.jit import array_at
from reservoir.reservoir import Reservoir
from tests.reliability.campaign import played
from tests.reliability.stored_state import check_stored
from tests.strategies.generate import Profile
from tests.strategies.seeded import case
from tests.task.player import TINY

SWEEPING = replace(TINY, sweep_interval_s=0.0)
CHANGING = Profile(spread=False, explicit_warm=True, control_percent=10, queries_max=8)
_SEEDS = 120


def assert_caught(
    folder: Path, settings: TaskSettings = SWEEPING, *, crash: bool = True, size: int = 120
) -> None:
    """Some seed of the campaign must find it: a wrong reply, a page too many, or state that contradicts itself.

    The reservoir itself finds rows that are not in the order of their times.
    """
    for seed in range(_SEEDS):
        try:
            with played(case(seed, size, CHANGING), folder / str(seed), settings, crash=crash) as player:
                check_stored(player.task)
        except (AssertionError, StateError, RowOrderError):
            return
    pytest.fail("no seed has caught it")


def planted_in_program(monkeypatch: pytest.MonkeyPatch, change: Callable[[Program], None]) -> None:
    build = ProgramBuilder.build

    def changed(self: ProgramBuilder, generations: Any) -> Program:
        program = build(self, generations)
        change(program)
        return program

    monkeypatch.setattr(ProgramBuilder, "build", changed)


def test_off_by_one_at_the_open_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_edge, seek = Reservoir.add_edge, Reservoir.seek
    monkeypatch.setattr(
        Reservoir, "add_edge", lambda self, delta, columns: add_edge(self, delta + 1, columns)
    )
    monkeypatch.setattr(Reservoir, "seek", lambda self, edge, time: seek(self, edge, max(time - 1, -(2**63))))
    assert_caught(tmp_path)


def test_ties_in_the_wrong_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    append = Reservoir.append

    def swapped(self: Reservoir) -> None:
        """Rows of one batch and one time get each other's log positions."""
        append(self)
        words = self.words
        n, frame = (
            words[reservoir_layout.IN_N],
            array_at(words[reservoir_layout.FRAMES], FRAME_WORDS, np.int64),
        )
        accepted = array_at(words[reservoir_layout.IN_ACCEPTED], n, np.uint8) != 0
        times = array_at(words[reservoir_layout.IN_TIME], n, np.int64)
        slots = array_at(words[reservoir_layout.OUT_SLOT], n, np.int32)
        for time in np.unique(times[accepted]):
            same = slots[accepted & (times == time)]
            seqs = array_at(int(frame[FRAME_SEQ]), int(slots[accepted].max()) + 1, np.int64)
            seqs[same] = seqs[same][::-1].copy()

    monkeypatch.setattr(Reservoir, "append", swapped)
    assert_caught(tmp_path, TaskSettings(), crash=False)


def test_a_lost_expiry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = Execution.records

    def losing(self: Execution, first: int, limit: int) -> None:
        log = self._log
        found = np.flatnonzero(log.end > log.start)
        if len(found):
            log.start[found[-1]] += 1
        records(self, first, limit)

    monkeypatch.setattr(Execution, "records", losing)
    assert_caught(tmp_path)


def test_minimum_and_maximum_swapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    swap = {codes.DEQUE_MIN: codes.DEQUE_MAX, codes.LEAST: codes.GREATEST}

    def change(program: Program) -> None:
        ops = program.updates[:, at.UPDATE_OP]
        ops[:] = [swap.get(op, op) for op in ops.tolist()]

    planted_in_program(monkeypatch, change)
    assert_caught(tmp_path)


def test_a_filter_that_is_not_applied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planted_in_program(monkeypatch, lambda program: program.nodes[:, at.NODE_FILTER].fill(-1))
    assert_caught(tmp_path)


def test_a_fill_without_its_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planted_in_program(monkeypatch, lambda program: program.nodes[:, at.NODE_AFTER].fill(at.NO_BOUND))
    assert_caught(tmp_path)


def test_a_horizon_of_duplicates_one_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def longer(lateness_ms: int, discard: bool, dedup_events: int) -> Admission:
        return Admission(lateness_ms, discard, dedup_events + 1)

    monkeypatch.setattr(processor, "Admission", longer)
    assert_caught(tmp_path, crash=False)


def test_a_stale_slot_after_eviction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load = EntityTable.load

    def stale(self: EntityTable, missing: Any, n: int) -> None:
        load(self, missing, n)
        layouts = self.layouts()
        for row, (group, _, _) in zip(self.find(missing[:n]).tolist(), missing[:n].tolist()):
            cells = array_at(row + ROW_HEAD_BYTES, layouts[group].cells, np.uint64)
            if not cells.any():
                cells[0] = 1

    monkeypatch.setattr(EntityTable, "load", stale)
    assert_caught(tmp_path)


def test_an_undo_that_is_not_applied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WrittenKeys, "overwritten", lambda self, folder, epoch, values: iter(()))
    assert_caught(tmp_path, replace(SWEEPING, trickle_bytes=1 << 10, checkpoint_interval_s=0.0))


def test_retired_cells_left_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retirement.CellKind, "has_pages", property(lambda self: False))
    assert_caught(tmp_path)


def test_rows_swept_with_their_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep.SweepWork, "_empty", lambda self, rows, cells: None)
    assert_caught(tmp_path)


def test_a_bucket_swept_too_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rule = sweep.EmptyRule
    monkeypatch.setattr(
        sweep, "EmptyRule", lambda zeros, buckets, bounds: rule(zeros, buckets, [b + 1 for b in bounds])
    )
    assert_caught(tmp_path)
