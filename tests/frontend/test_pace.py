"""Changes under load leave events time in between, and follow each other at once where there are none."""

import asyncio

import pytest

from frontend.pace import Pace


class Clock:
    """A time that only what sleeps moves on."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(round(seconds, 6))
        self.now_s += seconds


def changed(pace: Pace, clock: Clock, seconds: float, failure: Exception | None = None) -> None:
    async def change() -> None:
        async with pace.turn():
            clock.now_s += seconds
            if failure is not None:
                raise failure

    asyncio.run(change())


def paced() -> tuple[Pace, Clock]:
    clock = Clock()
    return Pace(lambda: clock.now_s, clock.sleep), clock


def test_changes_without_events_do_not_wait() -> None:
    pace, clock = paced()
    for _ in range(3):
        changed(pace, clock, 0.005)
    assert clock.slept == []


def test_a_change_under_load_waits_for_its_share() -> None:
    pace, clock = paced()
    pace.scored()
    changed(pace, clock, 0.004)
    assert clock.slept == []
    pace.scored()
    clock.now_s += 0.016
    changed(pace, clock, 0.1)
    assert clock.slept == [round(0.004 * 24 - 0.016, 6)]
    pace.scored()
    changed(pace, clock, 0.004)
    assert clock.slept[1:] == [0.15]


def test_a_change_that_comes_late_or_after_a_failure_waits_no_longer() -> None:
    pace, clock = paced()
    with pytest.raises(KeyError):
        changed(pace, clock, 0.004, KeyError("a metric"))
    pace.scored()
    clock.now_s += 0.1
    changed(pace, clock, 0.004)
    assert clock.slept == []


def test_changes_in_line_leave_events_time_too() -> None:
    """The next one's turn comes before any event's."""
    pace, clock = paced()

    async def change() -> None:
        async with pace.turn():
            pace.scored()
            clock.now_s += 0.001

    async def in_line() -> None:
        await asyncio.gather(*(change() for _ in range(3)))

    asyncio.run(in_line())
    assert clock.slept == [0.024, 0.024]
