"""State machine: maps, raw pages and strings in a pool of the smallest size, with checkpoints and crashes."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from tests.counts import examples
from tests.state.paged.paged_model import COUNTED, MAPS, Model

KEYS = st.tuples(st.integers(0, 40), st.integers(0, 3)) | st.tuples(
    st.integers(0, 2**64 - 1), st.sampled_from([0, 2**64 - 1])
)
CELLS = st.integers(COUNTED, MAPS - 1)
COUNTED_CELLS = st.integers(0, COUNTED - 1)
STRINGS = st.integers(0, 11)


class PagedMachine(RuleBasedStateMachine):
    """Each rule acts on pool and model alike; `teardown` compares all of both, and what is stored."""

    def __init__(self) -> None:
        super().__init__()
        self.model = Model()

    @rule(cell=CELLS, key=KEYS, value=st.integers(0, 2**64 - 1))
    def insert(self, cell: int, key: tuple[int, int], value: int) -> None:
        self.model.insert(cell, key, value)

    @rule(
        cell=CELLS,
        start=st.integers(0, 400),
        step=st.sampled_from([1, -1, 37]),
        n=st.sampled_from([1, 10, 120]),
    )
    def insert_many(self, cell: int, start: int, step: int, n: int) -> None:
        for i in range(n):
            self.model.insert(cell, (start + step * i & 511, 0), i)

    @rule(cell=CELLS, key=KEYS)
    def delete(self, cell: int, key: tuple[int, int]) -> None:
        self.model.delete(cell, key)

    @rule(
        cell=CELLS,
        start=st.integers(0, 400),
        step=st.sampled_from([1, -1, 37]),
        n=st.sampled_from([1, 10, 120]),
    )
    def delete_many(self, cell: int, start: int, step: int, n: int) -> None:
        for i in range(n):
            self.model.delete(cell, (start + step * i & 511, 0))

    @rule(cell=CELLS, n=st.sampled_from([1, 10, 60]), last=st.booleans())
    def pop_many(self, cell: int, n: int, last: bool) -> None:
        known = self.model.content.maps[cell]
        for key in sorted(known, reverse=last)[:n]:
            self.model.delete(cell, key)

    @rule(cell=COUNTED_CELLS, key=KEYS, delta=st.integers(-2, 2))
    def count(self, cell: int, key: tuple[int, int], delta: int) -> None:
        self.model.count(cell, key, delta)

    @rule(cell=COUNTED_CELLS, start=st.integers(0, 200), n=st.integers(1, 60), delta=st.sampled_from([1, -1]))
    def count_many(self, cell: int, start: int, n: int, delta: int) -> None:
        for i in range(n):
            self.model.count(cell, (start + 61 * i & 255, 0), delta)

    @rule(cell=st.integers(0, MAPS - 1), key=KEYS)
    def look(self, cell: int, key: tuple[int, int]) -> None:
        self.model.look(cell, key)

    @rule(cell=st.integers(0, MAPS - 1))
    def clear(self, cell: int) -> None:
        self.model.clear(cell)

    @rule(limit=st.integers(1, 40))
    def free_deferred(self, limit: int) -> None:
        self.model.driver.pool.free_deferred(limit)

    @rule(words=st.sampled_from([1, 4, 5, 34, 68, 200]))
    def raw_new(self, words: int) -> None:
        self.model.raw_new(words)

    @precondition(lambda self: self.model.content.raw)
    @rule(data=st.data(), value=st.integers(0, 2**62), free=st.booleans())
    def raw_change(self, data: st.DataObject, value: int, free: bool) -> None:
        number = data.draw(st.sampled_from(sorted(self.model.content.raw)))
        self.model.raw_look(number)
        self.model.raw_change(number, value)
        if free:
            self.model.raw_free(number)

    @rule(index=STRINGS)
    def string_hold(self, index: int) -> None:
        self.model.string_hold(index)

    @precondition(lambda self: self.model.content.strings)
    @rule(data=st.data())
    def string_let_go(self, data: st.DataObject) -> None:
        index = data.draw(st.sampled_from(sorted(self.model.content.strings)))
        self.model.string_look(index)
        self.model.string_let_go(index)

    @rule()
    def begin_checkpoint(self) -> None:
        self.model.begin_checkpoint()

    @rule(limit_bytes=st.sampled_from([1, 300, 5000]), steps=st.integers(1, 20))
    def step_checkpoint(self, limit_bytes: int, steps: int) -> None:
        for _ in range(steps):
            self.model.step_checkpoint(limit_bytes)

    @rule()
    def crash(self) -> None:
        self.model.crash()

    def teardown(self) -> None:
        self.model.check_all()


TestPagedMachine = PagedMachine.TestCase
TestPagedMachine.settings = settings(stateful_step_count=40, max_examples=examples(20, 60))


@pytest.mark.torture
class TestPagedMachineAtLength(PagedMachine.TestCase):
    """The same at length."""

    settings = settings(stateful_step_count=50, max_examples=2000)
