"""The reservoir against a plain-Python log: any order of events, cuts, edges, columns, seals and restarts."""

import tempfile
from pathlib import Path
from random import Random
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from reservoir.reservoir import Settings
from tests.counts import examples
from tests.reservoir.event_log import ALL_COLUMNS, EventLog, Record
from tests.reservoir.log_driver import Checkpoint, LogDriver

names = st.none() | st.text("abc", max_size=3) | st.just("x" * 300)
steps = st.lists(
    st.tuples(
        st.integers(-30, 12) | st.integers(-5, 400),  # against the clock
        st.sampled_from([True, True, True, False]),
        st.none() | st.integers(0, 1 << 62),
        names,
        st.integers(0, 4),
    ),
    min_size=1,
    max_size=40,
)
columns = st.lists(st.sampled_from(ALL_COLUMNS), unique=True, max_size=4).map(tuple)


class ReservoirMachine(RuleBasedStateMachine):
    """One reservoir, its log, and what the log says must cross."""

    @initialize(
        lateness=st.sampled_from([0, 3, 20]),
        chunk_events=st.sampled_from([1, 3, 8]),
        segment_bytes=st.sampled_from([1, 6000]),
        cache_bytes=st.sampled_from([0, 4000, 1 << 20]),
        entries=st.sampled_from([7, 1000]),
        start=st.sampled_from([0, -1000, -(1 << 63) + 500, (1 << 63) - 50_000]),
        hot=columns,
        deltas=st.lists(st.integers(0, 40), min_size=1, max_size=4),
    )
    def begin(
        self,
        lateness: int,
        chunk_events: int,
        segment_bytes: int,
        cache_bytes: int,
        entries: int,
        start: int,
        hot: tuple[Any, ...],
        deltas: list[int],
    ) -> None:
        self.start = start
        self.folder = tempfile.TemporaryDirectory()
        settings = Settings(bytes(range(16)), chunk_events, segment_bytes, cache_bytes, entries)
        self.log = EventLog(lateness)
        self.driver = LogDriver(Path(self.folder.name), self.log, settings)
        self.driver.set_hot(hot)
        for delta in deltas:
            self.driver.add_edge(delta)
        self.saved: Checkpoint = self.driver.checkpoint()
        self.fill: int | None = None

    @rule(steps=steps, cuts=st.lists(st.integers(1, 25), min_size=1, max_size=4))
    def events(self, steps: list[tuple[int, bool, int | None, str | None, int]], cuts: list[int]) -> None:
        for offset, accepted, amount, name, card in steps:
            now = self.log.clock if self.log.clock > -(1 << 63) else self.start
            time = min(max(now + offset, -(1 << 63) + 1), (1 << 63) - 1)
            self.log.add(Record(time, accepted, amount, name, card))
        self.driver.run_all(cuts)

    @rule(
        seed=st.integers(0, 1 << 32),
        n=st.integers(20, 150),
        spread=st.sampled_from([(-8, 3), (-30, 8), (0, 2), (-25, 60)]),
        cuts=st.lists(st.integers(1, 60), min_size=1, max_size=3),
    )
    def burst(self, seed: int, n: int, spread: tuple[int, int], cuts: list[int]) -> None:
        """Many events at once, made from a seed: what shrinks badly but meets more."""
        random = Random(seed)
        steps = [
            (
                random.randint(*spread) if random.random() < 0.97 else random.randint(0, 500),
                random.random() < 0.9,
                random.choice([None, 0, random.getrandbits(60)]),
                random.choice([None, "", "ab", "café" * random.randint(1, 40)]),
                random.randint(0, 5),
            )
            for _ in range(n)
        ]
        self.events(steps, cuts)

    @rule(delta=st.integers(0, 25) | st.integers(0, 600) | st.sampled_from([1 << 62, (1 << 63) - 1]))
    def add_edge(self, delta: int) -> None:
        self.driver.add_edge(delta)

    @precondition(lambda self: self.driver.edges)
    @rule(data=st.data())
    def remove_edge(self, data: st.DataObject) -> None:
        self.driver.remove_edge(data.draw(st.sampled_from(sorted(self.driver.edges))))

    @rule(hot=columns)
    def change_columns(self, hot: tuple[Any, ...]) -> None:
        self.driver.set_hot(hot)

    @precondition(lambda self: self.fill is None)
    @rule(back=st.integers(0, 600))
    def open_fill(self, back: int) -> None:
        after = max(self.log.clock - back, -(1 << 63))
        self.fill = self.driver.reservoir.fill_open(after)

    @precondition(lambda self: self.fill is not None)
    @rule(rows=st.integers(1, 40), back=st.integers(0, 60))
    def fill_some(self, rows: int, back: int) -> None:
        """A fill gives the next rows behind its position, whatever has happened since."""
        assert self.fill is not None
        bound, before = max(self.log.clock - back, -(1 << 63)), self.driver.reservoir.fill_position(self.fill)
        kept = enumerate(self.log.records[: self.driver.position])
        wanted = sorted(
            (r.time, seq) for seq, r in kept if r.accepted and before < (r.time, seq) and r.time <= bound
        )
        found, done = self.driver.take(self.fill, rows, bound)
        assert found == wanted[: len(found)]
        assert (
            len(found) == len(wanted)
            if done
            else len(found) == min(rows, self.driver.settings.changelog_entries)
        )

    @precondition(lambda self: self.fill is not None)
    @rule()
    def close_fill(self) -> None:
        assert self.fill is not None
        self.driver.reservoir.fill_close(self.fill)
        self.fill = None

    @rule(limit=st.none() | st.integers(1, 9))
    def limit_entries(self, limit: int | None) -> None:
        self.driver.limit = limit

    @rule()
    def checkpoint(self) -> None:
        self.saved = self.driver.checkpoint()

    @rule(cuts=st.lists(st.integers(1, 25), min_size=1, max_size=4))
    def crash(self, cuts: list[int]) -> None:
        self.driver.restart(self.saved)
        self.fill = None
        self.driver.run_all(cuts)

    @invariant()
    def same_rows(self) -> None:
        if hasattr(self, "driver"):
            self.driver.check_rows()

    def teardown(self) -> None:
        if hasattr(self, "driver"):
            self.driver.reservoir.close()
            self.folder.cleanup()


class LongReservoirMachine(ReservoirMachine):
    """The same, for much longer."""


TestReservoirMachine = ReservoirMachine.TestCase
TestLongReservoirMachine = pytest.mark.torture(LongReservoirMachine.TestCase)
TestLongReservoirMachine.settings = hypothesis_settings(max_examples=2_000, stateful_step_count=50)
TestReservoirMachine.settings = hypothesis_settings(max_examples=examples(20, 50), stateful_step_count=15)
