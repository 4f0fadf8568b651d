"""Which times a window holds at a clock, and how far back it reaches."""

import math
from dataclasses import dataclass

from tests.oracle.syntax import Window

MINUS_INFINITY = -math.inf


@dataclass(frozen=True)
class Interval:
    """The times in [first, last], both whole milliseconds or minus infinity; empty where last < first."""

    first: int | float
    last: int | float


def interval(window: Window, clock: int | float) -> Interval:
    """The times in a window when the task's clock is at `clock` (minus infinity: nothing yet)."""
    if isinstance(clock, float):
        return Interval(0, MINUS_INFINITY)
    last = clock - window.delay_ms
    if window.kind == "sliding":
        return Interval(last - window.size_ms + 1, last)
    if window.kind == "tumbling":
        return Interval(last // window.size_ms * window.size_ms, last)
    return Interval(MINUS_INFINITY, last)
