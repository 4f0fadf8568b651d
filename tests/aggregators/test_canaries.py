"""Planted bugs that the checks of windows must catch: what they let through would be no check."""

from collections.abc import Callable
from typing import Any

import pytest

from railgun.language.ast import Aggregator, WindowKind
from railgun.language.types import DOUBLE, LONG, Type
from tests.aggregators.steps import random_steps, run
from tests.aggregators.window_model import Entry, Group, Value

DOUBLE_VALUES: list[Value] = [0.1, 0.2, 0.3, 1e16, -1e16, 1.0]
LONG_VALUES: list[Value] = [1, 2, 2, 3]


class NaiveSum(Group):
    """Adds and subtracts doubles as they come."""

    total = 0.0

    def add(self, entry: Entry) -> None:
        super().add(entry)
        self.total += float(entry[2])

    def remove_oldest(self) -> None:
        self.total -= float(self.entries[0][2])
        super().remove_oldest()

    def result(self, aggregator: Aggregator) -> Any:
        planted = aggregator is Aggregator.SUM and self.entries
        return self.total + 0.0 if planted else super().result(aggregator)


class DequeByValue(Group):
    """A monotonic deque that appends what is out of order, and lets go of its front by value."""

    def __init__(self, of: Type, window: WindowKind) -> None:
        super().__init__(of, window)
        self.deque: list[Value] = []

    def add(self, entry: Entry) -> None:
        super().add(entry)
        while self.deque and self.deque[-1] > entry[2]:
            self.deque.pop()
        self.deque.append(entry[2])

    def remove_oldest(self) -> None:
        if self.deque and self.deque[0] == self.entries[0][2]:
            self.deque.pop(0)
        super().remove_oldest()

    def result(self, aggregator: Aggregator) -> Any:
        if aggregator is Aggregator.MIN:
            return self.deque[0] if self.deque else None
        return super().result(aggregator)


class PopulationForSample(Group):
    """Divides by n where n − 1 is due."""

    def result(self, aggregator: Aggregator) -> Any:
        return super().result(Aggregator.VAR_POP if aggregator is Aggregator.VAR_SAMP else aggregator)


class OneTooFew(Group):
    """Forgets the value before the last when two are left."""

    def result(self, aggregator: Aggregator) -> Any:
        if aggregator is Aggregator.PREV and len(self.entries) == 2:
            return None
        return super().result(aggregator)


class LateIsLast(Group):
    """Takes the order of arrival for the order of time."""

    def result(self, aggregator: Aggregator) -> Any:
        if aggregator is Aggregator.LAST and self.entries:
            return max(self.entries, key=lambda entry: entry[1])[2]
        return super().result(aggregator)


CANARIES: list[tuple[Callable[[Type, WindowKind], Group], Type, list[Value], Aggregator]] = [
    (NaiveSum, DOUBLE, DOUBLE_VALUES, Aggregator.SUM),
    (DequeByValue, LONG, LONG_VALUES, Aggregator.MIN),
    (PopulationForSample, LONG, LONG_VALUES, Aggregator.VAR_SAMP),
    (OneTooFew, LONG, LONG_VALUES, Aggregator.PREV),
    (LateIsLast, LONG, LONG_VALUES, Aggregator.LAST),
]


@pytest.mark.parametrize(("planted", "of", "values", "aggregator"), CANARIES)
def test_planted_bugs_are_caught(
    planted: Callable[[Type, WindowKind], Group], of: Type, values: list[Value], aggregator: Aggregator
) -> None:
    steps = random_steps(3, values, 60)
    run(Group(of, WindowKind.SLIDING), steps, lambda group: group.check((aggregator,)))
    with pytest.raises(AssertionError, match=str(aggregator)):
        run(planted(of, WindowKind.SLIDING), steps, lambda group: group.check((aggregator,)))
