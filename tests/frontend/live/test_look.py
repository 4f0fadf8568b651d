"""A look that blocks: one for all who wait, at most once in a while, and nobody waits for long."""

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable

import pytest

from frontend.live import look
from frontend.live.look import Look


class Looking:
    """looks: how many were taken. A look ends once `go` is set."""

    def __init__(self) -> None:
        self.looks, self.go, self.now_s = 0, threading.Event(), 50.0
        self.go.set()
        self.look = Look(self._look, 5.0, lambda: self.now_s)

    def _look(self) -> None:
        self.looks += 1
        assert self.go.wait(30.0)


def played(steps: Callable[[Looking], Awaitable[None]]) -> None:
    looking = Looking()

    async def run() -> None:
        try:
            await steps(looking)
        finally:
            looking.go.set()

    asyncio.run(run())


def test_one_look_serves_all_who_wait() -> None:
    async def steps(looking: Looking) -> None:
        await asyncio.gather(*(looking.look.recent() for _ in range(100)))
        assert looking.looks == 1

    played(steps)


def test_it_is_taken_again_when_it_is_due() -> None:
    async def steps(looking: Looking) -> None:
        for seconds, looks in ((0.0, 1), (4.9, 1), (0.1, 2), (4.0, 2), (60.0, 3)):
            looking.now_s += seconds
            await looking.look.recent()
            assert looking.looks == looks

    played(steps)


def test_nobody_waits_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(look, "PATIENCE_S", 0.2)

    async def steps(looking: Looking) -> None:
        looking.go.clear()
        begun_s = time.monotonic()
        await asyncio.gather(*(looking.look.recent() for _ in range(10)))
        assert 0.1 < time.monotonic() - begun_s < 20.0
        # Once the patience is over, who comes does not wait for this look at all; nor is there a second one.
        looking.now_s += 100.0
        monkeypatch.setattr(look, "PATIENCE_S", 60.0)
        begun_s = time.monotonic()
        await looking.look.recent()
        assert time.monotonic() - begun_s < 20.0
        assert looking.looks == 1

    played(steps)


def test_one_who_goes_away_ends_no_look() -> None:
    async def steps(looking: Looking) -> None:
        looking.go.clear()
        gone = asyncio.ensure_future(looking.look.recent())
        waits = asyncio.ensure_future(looking.look.recent())
        await asyncio.sleep(0.05)
        gone.cancel()
        looking.go.set()
        await waits
        assert looking.looks == 1

    played(steps)


def test_a_defect_is_logged_and_the_next_look_is_taken(caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    async def run() -> None:
        now_s = [0.0]
        failing = Look(fail, 5.0, lambda: now_s[0])
        await failing.recent()
        now_s[0] += 5.0
        await failing.recent()

    with caplog.at_level(logging.ERROR):
        asyncio.run(run())
    assert [record.getMessage() for record in caplog.records] == ["a defect: a look failed"] * 2
