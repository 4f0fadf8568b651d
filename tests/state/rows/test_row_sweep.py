"""Sweeps find the rows that hold nothing, wherever they are; digests are of what rows hold, not of where."""

import random
from pathlib import Path

import numpy as np
import pytest

from railgun.state.rows.reader import Words
from railgun.state.rows.sweep import EmptyRule, RowSweep
from tests.state.state_run import StateRun, entity_hash


@pytest.fixture
def run(tmp_path: Path):
    started = StateRun(tmp_path / "state")
    yield started
    started.close()


def swept(run: StateRun, rules: dict[int, EmptyRule], limit: int = 64) -> set[tuple[int, int]]:
    """One round of the sweep, deleting what it finds: the (group, hi) of those rows."""
    sweep = RowSweep(run.table)
    found: set[tuple[int, int]] = set()
    for _ in range(10_000):
        run.table.next_stamp()
        rows = sweep.step(rules, limit)
        found |= {(group, hi) for group, hi, _ in run.table.entities(rows).tolist()}
        run.table.delete(rows)
        if sweep.rounds:
            return found
    pytest.fail("the sweep does not come round")


def named(group: int, numbers: range) -> set[tuple[int, int]]:
    return {(group, entity_hash(number)[0]) for number in numbers}


def test_empty_rows_go_whether_resident_or_stored(tmp_path: Path, run: StateRun) -> None:
    run.set_layout(0, 28, [])
    run.set_layout(1, 28, [])
    for number in range(300):
        run.write(0, [number], 3, number % 3)
        run.write(1, [number], 3, 0)
    run.begin()
    run.finish()
    for number in range(0, 300, 5):
        run.write(0, [number], 3, 0)
    rule = EmptyRule(zeros=[3, 4])
    assert run.table.stats().resident < 300
    empty = {number for number in range(300) if number % 3 == 0 or number % 5 == 0}
    assert swept(run, {0: rule}) == {(0, entity_hash(number)[0]) for number in empty}
    assert swept(run, {0: rule}) == set()
    assert len(list(run.store.scan(b"r\0\0", b"r\0\1", 999))) == 300, "tombstones, until the next commit"
    run.begin()
    run.finish()
    assert len(run.rows()) == 300 - len(empty)
    assert sum(len(ids) for ids, _ in run.table.reader.rows(0)) == 300 - len(empty)
    assert sum(len(ids) for ids, _ in run.table.reader.rows(1)) == 300, "a group without a rule is kept"
    for number in empty:
        run.model.pop((0, number))
    run.crash(tmp_path / "crash").close()


def test_a_row_of_a_past_bucket_is_empty_whatever_else_it_holds(run: StateRun) -> None:
    run.set_layout(0, 6, [])
    for number in range(200):
        run.write(0, [number], 2, number)
        run.write(0, [number], 5, 77)
    for number in range(50, 60):
        run.write(0, [number], 0, 1)
    rule = EmptyRule(zeros=[0], buckets=[2], bounds=[100])
    assert swept(run, {0: rule}) == named(0, range(50)) | named(0, range(60, 100))


def test_rows_of_older_layouts_are_judged_in_the_newest(run: StateRun) -> None:
    run.set_layout(0, 28, [])
    for number in range(300):
        run.write(0, [number], 20, number % 2)
    run.set_layout(0, 9, [(20, 8, 1)])
    assert swept(run, {0: EmptyRule(zeros=[8])}) == {
        (0, entity_hash(number)[0]) for number in range(0, 300, 2)
    }


def test_a_sweep_goes_on_while_rows_change(run: StateRun) -> None:
    run.set_layout(0, 28, [])
    sweep, rng = RowSweep(run.table), random.Random(1)
    rule = {0: EmptyRule(zeros=range(28))}
    for _ in range(800):
        run.write(0, [rng.randrange(200)], 0, rng.randrange(2))
        run.table.next_stamp()
        rows = sweep.step(rule, 8)
        for _, hi, _ in run.table.entities(rows).tolist():
            (number,) = [number for number in range(200) if entity_hash(number)[0] == hi]
            assert not any(run.model.get((0, number), [0]))
            run.model.pop((0, number), None)
        run.table.delete(rows)
        if rng.random() < 0.02:
            run.begin()
        run.step(500)
    assert sweep.rounds > 2
    run.check()


# --- digests ---------------------------------------------------------------------------------------


def plain(group: int, hashes: Words, cells: Words) -> tuple[np.ndarray, Words]:
    """All cells count; rows of zeros do not."""
    return cells.any(axis=1), cells


def test_a_digest_does_not_know_where_rows_are_or_how_they_came(tmp_path: Path) -> None:
    digests = set()
    for name, order in (("up", 1), ("down", -1)):
        run = StateRun(tmp_path / name)
        run.set_layout(0, 12, [])
        run.set_layout(1, 28, [])
        for number in range(300)[::order]:
            run.write(0, [number], number, number * 31 + 1)
            run.write(1, [number], 27, number)
        if order == 1:
            run.begin()
            run.finish()
            run.set_layout(0, 14, [(0, 0, 12)])
            run.set_layout(0, 12, [(0, 0, 12)])
        run.read(1, 399)
        digests.add(run.table.digest_rows(plain))
        run.write(1, [200], 5, 1)
        assert run.table.digest_rows(plain) not in digests
        run.close()
    assert len(digests) == 1
    assert 0 < digests.pop() < 1 << 128


def test_a_digest_tells_entities_and_groups_apart(tmp_path: Path) -> None:
    digests = set()
    for i, (group, number, value) in enumerate([(0, 1, 5), (1, 1, 5), (0, 2, 5), (0, 1, 6)]):
        run = StateRun(tmp_path / str(i))
        run.set_layout(0, 3, [])
        run.set_layout(1, 3, [])
        run.write(group, [number], 0, value)
        digests.add(run.table.digest_rows(plain))
        run.close()
    assert len(digests) == 4
