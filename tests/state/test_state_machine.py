"""Rows, evictions, checkpoints, layouts and crashes in any order, against a dict of what must be there."""

import itertools
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from tests.counts import examples
from tests.state.state_run import StateRun

GROUPS = st.sampled_from([0, 1, 5])
ENTITIES = st.integers(0, 300)
BATCHES = st.lists(ENTITIES, min_size=1, max_size=40)
WORDS = st.sampled_from([0, 1, 2**63, 2**64 - 1]) | st.integers(0, 2**64 - 1)


@st.composite
def mappings(draw: st.DrawFn, old_cells: int) -> tuple[int, list[tuple[int, int, int]]]:
    """(cells of the next layout, mapping): runs of the old cells, some dropped, in any order, with gaps."""
    cuts = sorted(set(draw(st.lists(st.integers(1, old_cells), max_size=4))) | {0, old_cells})
    runs = [(start, end - start) for start, end in itertools.pairwise(cuts)]
    runs = [run for run in draw(st.permutations(runs)) if draw(st.integers(0, 3))]
    at, mapping = 0, []
    for old, words in runs:
        at += draw(st.integers(0, 2))
        mapping.append((old, at, words))
        at += words
    return max(at + draw(st.integers(0, 6)), 1), mapping


class StateMachine(RuleBasedStateMachine):
    """A tiny table, so that rows are evicted all the time; crashes go on from a copy of the folder."""

    def __init__(self) -> None:
        super().__init__()
        self.home = Path(tempfile.mkdtemp(prefix="railgun-state-"))
        self.lives = 0
        self.run: StateRun | None = None

    @initialize(cells=st.integers(1, 30))
    def start(self, cells: int) -> None:
        self.run = StateRun(self.home / "0", limit_bytes=16 * 1024)
        self.run.set_layout(0, cells, [])
        self.run.set_layout(1, 5, [])

    @rule(group=GROUPS, entities=BATCHES, cell=st.integers(0, 50), value=WORDS)
    def write(self, group: int, entities: list[int], cell: int, value: int) -> None:
        if group in self.run.cells:
            self.run.write(group, entities, cell, value)

    @rule(group=GROUPS, entities=BATCHES)
    def read(self, group: int, entities: list[int]) -> None:
        if group in self.run.cells:
            for number in entities:
                self.run.read(group, number)

    @rule(group=GROUPS, entities=BATCHES)
    def delete(self, group: int, entities: list[int]) -> None:
        if group in self.run.cells:
            self.run.delete(group, entities[:5])

    @rule()
    def begin(self) -> None:
        self.run.begin()

    @rule(limit_bytes=st.sampled_from([1, 300, 4000]))
    def step(self, limit_bytes: int) -> None:
        self.run.step(limit_bytes)

    @rule()
    def finish(self) -> None:
        self.run.finish()

    @rule(group=GROUPS, data=st.data())
    def change_layout(self, group: int, data: st.DataObject) -> None:
        if group in self.run.cells:
            self.run.set_layout(group, *data.draw(mappings(self.run.cells[group])))

    @precondition(lambda self: 5 not in self.run.cells)
    @rule(cells=st.integers(1, 12))
    def add_group(self, cells: int) -> None:
        if 5 not in self.run.dropped:
            self.run.set_layout(5, cells, [])

    @precondition(lambda self: 5 in self.run.cells)
    @rule()
    def drop_group(self) -> None:
        self.run.drop_group(5)

    @rule(slots=st.integers(0, 40))
    def let_go(self, slots: int) -> None:
        self.run.table.let_go(slots)

    @rule()
    def crash(self) -> None:
        self.lives += 1
        after = self.run.crash(self.home / str(self.lives))
        self.run.close()
        shutil.rmtree(self.run.folder)
        self.run = after

    @rule()
    def check(self) -> None:
        self.run.check()

    def teardown(self) -> None:
        if self.run is not None:
            self.run.close()
        shutil.rmtree(self.home)


TestStateMachine = StateMachine.TestCase
TestStateMachine.settings = settings(max_examples=examples(10, 25), stateful_step_count=40)


@pytest.mark.torture
class TestStateMachineInFull(StateMachine.TestCase):
    settings = settings(max_examples=2_000, stateful_step_count=50)
