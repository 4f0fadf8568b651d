"""What happens to a window: values in and out of order, expiry, checkpoints, a memory gone cold."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from hypothesis import strategies as st

from tests.aggregators.window_model import Group, Value


@dataclass(frozen=True)
class Add:
    """A value `late_ms` before the newest time so far (negative: after it)."""

    late_ms: int
    value: Value


@dataclass(frozen=True)
class Remove:
    """The oldest values leave."""

    count: int


@dataclass(frozen=True)
class Reset:
    """All cells are emptied at once."""


@dataclass(frozen=True)
class Epoch:
    """A checkpoint's epoch closes (and one still open is finished)."""


@dataclass(frozen=True)
class Cold:
    """All pages leave memory."""


Step: TypeAlias = Add | Remove | Reset | Epoch | Cold

LATE_MS = st.integers(-3, 3) | st.integers(0, 40)


def steps_of(
    values: st.SearchStrategy[Value], *, removing: bool, least: int = 0, most: int = 40
) -> st.SearchStrategy[list[Step]]:
    """Sequences of steps; without `removing`, what may happen in a window that nothing leaves."""
    some: list[st.SearchStrategy[Step]] = [st.builds(Add, LATE_MS, values) for _ in range(4)]
    some += [st.builds(Remove, st.integers(1, 4))] * 2 if removing else []
    some += [st.just(Reset()), st.just(Epoch()), st.just(Cold())]
    return st.lists(st.one_of(some), min_size=least, max_size=most)


def random_steps(seed: int, values: Sequence[Value], count: int) -> list[Step]:
    """A long sequence of adds and removals in a window of changing size."""
    chance = random.Random(seed)
    steps: list[Step] = []
    for _ in range(count):
        late = chance.choice([-1, -1, -2, 0, 3, 20])
        steps.append(
            Remove(chance.choice([1, 1, 2, 9])) if chance.random() < 0.4 else Add(late, chance.choice(values))
        )
    return steps


class Run:
    """Steps taken on a group, with the rules of a window: what arrives behind the tail is no part of it."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self.newest_ms = 1_000
        self.tail_ms = 0
        self.seq = 0
        self._meta: bytes | None = None

    def take(self, step: Step) -> None:
        """Take one step."""
        group = self.group
        match step:
            case Add(late_ms, value):
                time = self.newest_ms - late_ms
                self.newest_ms = max(self.newest_ms, time)
                self.seq += 1
                if time >= self.tail_ms:
                    group.add((time, self.seq, value))
            case Remove(count):
                for _ in range(min(count, len(group.entries))):
                    self.tail_ms = group.entries[0][0]
                    group.remove_oldest()
            case Reset():
                group.reset()
            case Epoch():
                self._finish()
                self._meta = group.memory.begin_epoch()
            case Cold():
                self._finish()
                group.memory.make_cold()

    def _finish(self) -> None:
        if self._meta is not None:
            self.group.memory.finish_epoch(self._meta)
            self._meta = None

    def end(self) -> None:
        """Empty the window, one value after another, and see that nothing is left of it anywhere."""
        while self.group.entries:
            self.group.remove_oldest()
        self._finish()
        self.group.check_gone()


def run(group: Group, steps: Sequence[Step], check: Callable[[Group], None] = Group.check) -> Run:
    """Take steps, and check all results after each."""
    taken = Run(group)
    for step in steps:
        taken.take(step)
        check(group)
    return taken
