"""Layouts that change under rows: in memory, on disk, over versions, under a checkpoint; groups dropped."""

import random
from pathlib import Path

import numpy as np
import pytest

from railgun.state import keys
from railgun.state.errors import LayoutError, StoreCorruptionError
from railgun.state.rocks import StoreLimits
from railgun.state.rows.context import LAYOUTS
from railgun.state.rows.groups import RowGroups
from railgun.state.rows.scan import OUTDATED
from railgun.state.rows.table import EntityTable
from railgun.state.store import Store
from tests.counts import seeds
from tests.state.state_run import SALT, StateRun, mapped


@pytest.fixture
def run(tmp_path: Path):
    started = StateRun(tmp_path / "state")
    yield started
    started.close()


def fill(run: StateRun, group: int, numbers: range, value: int) -> None:
    for cell in range(run.cells[group]):
        for first in range(numbers.start, numbers.stop, 20):
            run.write(group, list(range(first, min(first + 20, numbers.stop))), cell, value + cell)


def test_rows_follow_through_versions_wherever_they_were(tmp_path: Path, run: StateRun) -> None:
    run.set_layout(0, 10, [])
    fill(run, 0, range(100), 1000)
    run.set_layout(0, 14, [(0, 4, 10)])
    fill(run, 0, range(60, 120), 2000)
    run.set_layout(0, 6, [(4, 0, 3), (13, 5, 1)])
    run.set_layout(0, 6, [(0, 3, 3), (3, 0, 3)])
    run.set_layout(0, 20, [(0, 14, 2), (3, 0, 3)])
    fill(run, 0, range(110, 150), 3000)
    run.check()
    for number in range(150):
        run.read(0, number)
    run.begin()
    run.finish()
    run.set_layout(0, 21, [(0, 1, 20)])
    run.check()
    run.crash(tmp_path / "crash").close()


def test_rows_of_many_versions_at_once(tmp_path: Path, run: StateRun) -> None:
    """Each version leaves some rows behind, in memory or stored, that are wanted at once in the end."""
    run.set_layout(0, 6, [])
    for version in range(45):
        fill(run, 0, range(4 * version, 4 * version + 8), 1_000 * version)
        cells = 6 + version % 5
        moved = [(cell, (cell + version) % 6, 1) for cell in range(6)]
        run.set_layout(0, cells, moved[: 4 + version % 3])
        if version % 9 == 8:
            run.begin()
            run.finish()
    run.check()
    run.crash(tmp_path / "crash").close()
    for number in range(188):
        run.read(0, number)
    run.check()


@pytest.mark.parametrize("cells", [3, 10, 40])
def test_a_checkpoint_in_flight_keeps_the_layout_it_began_with(
    tmp_path: Path, run: StateRun, cells: int
) -> None:
    run.set_layout(0, 10, [])
    run.set_layout(1, 10, [])
    fill(run, 0, range(60), 1)
    fill(run, 1, range(60), 1)
    run.begin()
    run.step(300)
    fill(run, 0, range(20), 500)
    run.set_layout(0, cells, [(0, 0, min(cells, 10))])
    fill(run, 0, range(10, 30), 700)
    run.crash(tmp_path / "before the commit").close()
    run.finish()
    run.crash(tmp_path / "after the commit").close()
    run.check()
    run.begin()
    run.finish()
    run.crash(tmp_path / "after the next").close()


def test_a_layout_is_undone_with_its_epoch_and_its_version_is_free_again(
    tmp_path: Path, run: StateRun
) -> None:
    run.set_layout(0, 10, [])
    fill(run, 0, range(150), 1)
    run.begin()
    run.finish()
    run.set_layout(0, 12, [(0, 2, 10)])
    fill(run, 0, range(150), 100)
    after = run.crash(tmp_path / "crash")
    assert after.table.layouts()[0].version == 1
    after.set_layout(0, 5, [(5, 0, 5)])
    after.check()
    after.begin()
    after.finish()
    again = after.crash(tmp_path / "crash again")
    assert (again.table.layouts()[0].version, again.table.layouts()[0].cells) == (4, 5)
    again.close()
    after.close()


def test_many_versions_are_worked_out_when_a_row_of_them_is_read(run: StateRun) -> None:
    run.set_layout(0, 4, [])
    for version in range(40):
        fill(run, 0, range(5 * version, 5 * version + 5), version)
        run.set_layout(0, 4 + version % 3, [(0, 1, 3)] if version % 2 else [(0, 0, 4)])
    run.check()
    for number in range(200):
        run.read(0, number)


@pytest.mark.parametrize("seed", seeds(range(5), range(10)))
def test_a_layout_that_only_grows_leaves_nothing_to_be_worked_out_anew(
    run: StateRun, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """What leads rows of an older version to the one before leads them to the new one, too."""
    worked_out: list[tuple[int, int]] = []
    work_out = RowGroups.work_out

    def counted(self: RowGroups, group: int, version: int) -> None:
        worked_out.append((group, version))
        work_out(self, group, version)

    monkeypatch.setattr(RowGroups, "work_out", counted)
    source = random.Random(seed)
    cells, moved_at = 6, 0
    run.set_layout(0, cells, [])
    for version in range(1, 60):
        fill(run, 0, range(2 * version, 2 * version + 4), 1_000 * version)
        for _ in range(source.randint(0, 3)):
            run.read(0, source.randrange(2 * version))
        grows = source.random() < 0.9
        moved_at = moved_at if grows else len(worked_out)
        run.set_layout(0, cells + 3, [(0, 0, cells)] if grows else [(0, 3, cells)])
        cells += 3
        if source.random() < 0.1:
            run.begin()
            run.finish()
    run.check()
    # Since the last one that moved cells, each older version was worked out once at most.
    since = worked_out[moved_at:]
    assert len(set(since)) == len(since)


def test_a_new_layout_leaves_rows_where_they_are_until_they_are_wanted(run: StateRun) -> None:
    run.set_layout(0, 10, [])
    fill(run, 0, range(20), 1)
    before = run.table.stats()
    run.set_layout(0, 12, [(0, 1, 10)])
    assert run.table.stats() == before
    run.read(0, 3)
    after = run.table.stats()
    assert (after.resident, after.loaded, after.evicted) == (before.resident, before.loaded, before.evicted)
    outdated = run.table.outdated(run.table.reader.resident(np.zeros(2, np.int64), 0, 1 << 20, 100))
    assert (len(outdated), outdated.sum()) == (20, 19)
    run.check()


def test_stale_rows_are_renewed_in_the_background_while_there_is_room(tmp_path: Path) -> None:
    run = StateRun(tmp_path / "state", 256 * 1024)
    run.set_layout(0, 10, [])
    fill(run, 0, range(100), 1)
    while run.table.upgrade(30):
        assert run.table.stats().loaded == 100, "none is stale"
    run.set_layout(0, 12, [(0, 1, 10)])
    run.write(0, [3], 0, 5)
    while run.table.upgrade(30):
        run.check()
    rows = run.table.reader.resident(np.zeros(2, np.int64), 0, 1 << 20, 200)
    assert (len(rows), run.table.outdated(rows).sum()) == (100, 0)
    run.check()
    run.close()


def test_no_row_is_renewed_at_the_cost_of_another(run: StateRun) -> None:
    run.set_layout(0, 28, [])
    fill(run, 0, range(300), 1)
    before = run.table.stats()
    assert before.evicted > 0
    run.set_layout(0, 30, [(0, 0, 28)])
    assert not run.table.upgrade(30)
    assert run.table.stats().evicted == before.evicted
    run.check()


def test_rows_are_told_apart_when_versions_have_gone_round(tmp_path: Path, run: StateRun) -> None:
    run.set_layout(0, 4, [])
    fill(run, 0, range(20), 7)
    version = run.table.layouts()[0].version
    for shift in (LAYOUTS, 2 * LAYOUTS, 2 * LAYOUTS + 1, 3 * LAYOUTS):
        run.table.set_layout(0, version + shift, 4, [(0, 1, 3)])
        run.model = {key: mapped(cells, 4, [(0, 1, 3)]) for key, cells in run.model.items()}
        run.check()
        run.write(0, list(range(5)), 0, shift)
    run.begin()
    run.finish()
    run.crash(tmp_path / "crash").close()


def test_more_stale_rows_of_the_old_epoch_than_the_copy_buffer_holds(tmp_path: Path) -> None:
    run = StateRun(tmp_path / "state", 4 << 20, 1 << 20)
    run.set_layout(0, 100, [])
    numbers = list(range(300))
    for cell in range(100):
        run.write(0, numbers, cell, (1 << 63) + 1)
    run.begin()
    run.set_layout(0, 101, [(0, 1, 100)])
    run.write(0, numbers, 0, 7)
    assert run.table.stats().copied > 0
    run.check()
    run.finish()
    run.close()
    after = StateRun(tmp_path / "state", 4 << 20, 1 << 20)
    after.adopt(run, {run.durable})
    after.close()


@pytest.mark.parametrize("steps", [0, 5])
@pytest.mark.parametrize("is_in_flight", [False, True])
def test_a_dropped_group_goes_with_its_epoch(
    tmp_path: Path, run: StateRun, is_in_flight: bool, steps: int
) -> None:
    run.set_layout(0, 10, [])
    run.set_layout(5, 10, [])
    fill(run, 0, range(20), 1)
    fill(run, 5, range(150), 1)
    run.begin()
    if not is_in_flight:
        run.finish()
        fill(run, 5, range(30), 9)
    else:
        run.step(300)
        fill(run, 5, range(30), 9)
    run.drop_group(5)
    for step in range(steps):
        assert run.table.let_go(5)
        fill(run, 0, range(step, step + 2), step)
        run.check()
    with pytest.raises(LayoutError, match="another number"):
        run.table.set_layout(5, 1, 3)
    run.crash(tmp_path / "the group is back").close()
    run.finish()
    run.crash(tmp_path / "the group is back, still").close()
    run.begin()
    run.finish()
    assert run.table.dropped_groups() == set()
    for start, stop in (keys.group_range(5), keys.layout_range(5)):
        assert run.store.scan(start, stop, 9) == []
    run.set_layout(5, 3, [])
    fill(run, 5, range(10), 4)
    run.check()
    run.crash(tmp_path / "the group is gone").close()


def test_a_drop_that_was_committed_but_not_purged_is_purged_when_opened(tmp_path: Path) -> None:
    run = StateRun(tmp_path / "state")
    run.set_layout(5, 10, [])
    fill(run, 5, range(150), 1)
    run.drop_group(5)
    run.begin()
    while not run.store.committed_epoch:
        run.step()
    assert run.table.dropped_groups() == {5}
    after = run.crash(tmp_path / "crash")
    assert after.recovered == 1
    assert after.table.layouts() == {}
    assert after.store.scan(*keys.group_range(5), 9) == []
    after.close()
    run.close()


@pytest.mark.parametrize(
    ("group", "version", "cells", "mapping"),
    [
        (65_535, 1, 3, []),
        (-1, 1, 3, []),
        (0, 0xFFFFFFFF, 3, []),
        (1, 1, 3, [(0, 0, 1)]),
        (0, 1, 3, []),
        (0, 2, 600, []),
        (0, 2, 3, [(0, 0, 11)]),
    ],
)
def test_layouts_that_are_refused_change_nothing(
    run: StateRun, group: int, version: int, cells: int, mapping: list
) -> None:
    run.set_layout(0, 10, [])
    fill(run, 0, range(30), 1)
    with pytest.raises(LayoutError):
        run.table.set_layout(group, version, cells, mapping)
    assert list(run.table.layouts()) == [0]
    run.check()


def test_only_groups_that_are_there_can_be_dropped(run: StateRun) -> None:
    with pytest.raises(LayoutError, match="no group 4"):
        run.table.drop_group(4)


def test_a_stored_layout_that_cannot_be_is_an_error_naming_the_folder(tmp_path: Path) -> None:
    store = Store(tmp_path / "state", StoreLimits(1 << 20, 1 << 20))
    store.recover()
    store.write([(keys.layout_key(0, 1), b"\4\0", 1, 0)])
    with pytest.raises(StoreCorruptionError, match=str(store.folder)):
        EntityTable(1 << 16, store, salt=SALT)
    store.close()


def test_a_row_that_grows_within_its_slot_stays_where_it_is(tmp_path: Path) -> None:
    run = StateRun(tmp_path / "wide", 1 << 20, 1 << 16)
    try:
        run.set_layout(0, 200, [])
        fill(run, 0, range(3), 1)
        before = [run.row(0, number) for number in range(3)]
        run.begin()
        # Two versions at once; what is behind the last cell is anything by then.
        run.set_layout(0, 202, [(0, 0, 200)])
        run.set_layout(0, 201, [(0, 0, 199)])
        assert [run.row(0, number) for number in range(3)] == before
        fill(run, 0, range(2), 900)
        run.finish()
        run.check()
        run.set_layout(0, 202, [(0, 1, 200)])
        assert run.row(0, 2) != before[2], "its cells have moved"
        run.check()
        run.crash(tmp_path / "crash").close()
    finally:
        run.close()


def test_rows_are_renewed_once_round_however_often_the_layout_changes(tmp_path: Path) -> None:
    run = StateRun(tmp_path / "large", 1 << 20, 1 << 14)
    try:
        run.set_layout(0, 16, [])
        fill(run, 0, range(200), 1)
        for cells in range(17, 37):
            run.set_layout(0, cells, [(0, 0, cells - 1)])
            run.table.upgrade(10)
        while run.table.upgrade(10):
            pass
        assert not len(run.table.reader.resident(np.zeros(2, np.int64), OUTDATED, 1 << 30, 10))
        run.check()
    finally:
        run.close()


@pytest.mark.parametrize("cells", [9, 10, 12, 40])
def test_a_row_that_is_renewed_under_a_checkpoint_and_leaves_memory_loses_nothing(
    tmp_path: Path, run: StateRun, cells: int
) -> None:
    """Its image of the old epoch waits to be written, and nothing has changed in it since."""
    run.set_layout(0, 10, [])
    run.set_layout(1, 10, [])
    fill(run, 1, range(400), 1)
    fill(run, 0, range(10), 1)
    run.begin()
    run.finish()
    fill(run, 0, range(10), 500)
    run.begin()
    run.set_layout(0, cells, [(0, 0, min(10, cells))])
    for number in range(10):
        run.read(0, number)
    evicted = run.table.stats().evicted
    for _ in range(3):
        for number in range(400):
            run.read(1, number)
    assert run.table.stats().evicted > evicted + 400
    for number in range(10):
        run.read(0, number)
    run.check()
    run.finish()
    run.crash(tmp_path / "crash").close()
    run.check()
