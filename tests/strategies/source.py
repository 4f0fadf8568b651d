"""Where random choices come from: one generator serves fast seeded campaigns and Hypothesis alike."""

import random
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from hypothesis import strategies as st

T = TypeVar("T")


class Source(Protocol):
    """A stream of choices. Simple choices come first in lists and low in ranges: shrinking goes there."""

    def integer(self, low: int, high: int) -> int:
        """A whole number in [low, high]."""

    def choice(self, options: Sequence[T]) -> T:
        """One of some options."""

    def chance(self, percent: int) -> bool:
        """True in `percent` of a hundred cases."""


class SeededSource:
    """Choices of a seed: the same seed gives the same choices on every machine."""

    def __init__(self, seed: int | str) -> None:
        self.random = random.Random(seed)

    def integer(self, low: int, high: int) -> int:
        return self.random.randint(low, high)

    def choice(self, options: Sequence[T]) -> T:
        return options[self.random.randrange(len(options))]

    def chance(self, percent: int) -> bool:
        return self.random.randrange(100) >= 100 - percent


class DrawnSource:
    """Choices that Hypothesis draws, and so can shrink."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        self.draw = draw

    def integer(self, low: int, high: int) -> int:
        return int(self.draw(st.integers(low, high)))

    def choice(self, options: Sequence[T]) -> T:
        return options[self.integer(0, len(options) - 1)]

    def chance(self, percent: int) -> bool:
        return self.integer(0, 99) >= 100 - percent
