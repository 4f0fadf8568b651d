"""Background work lets calls go first, and is done by them where they leave it no turn."""

import threading
import time
from collections.abc import Callable
from types import SimpleNamespace

import pytest

import railgun
import railgun.engine.background as background_module
from railgun.engine.background import BackgroundWork
from railgun.engine.turns import FairLock

_PATIENCE_S = 60.0
_EVENTS = 2_000
_DEFINITIONS = """
[streams.s]
time = "ts"
id = "id"
partitioners = ["*"]
[streams.s.fields]
id = "string"
ts = "timestamp"
"""


def test_a_slice_ends_once_a_call_waits() -> None:
    lock = FairLock()
    slices: list[list[bool]] = []

    def step() -> bool:
        time.sleep(0.0001)
        slices[-1].append(lock.is_wanted)
        return True

    def turn(work: Callable[[], None]) -> bool:
        slices.append([])
        work()
        return True

    background = BackgroundWork(lock, step, turn, has_time=bool)
    background.start()
    deadline_s = time.monotonic() + _PATIENCE_S
    while sum(map(any, slices)) < 5 and time.monotonic() < deadline_s:
        with lock:
            pass
    background.end()
    background.join()
    assert sum(map(any, slices)) >= 5, "no call ever waited"
    assert not any(any(steps[:-1]) for steps in slices)


def test_a_slice_of_the_threads_own_is_short_where_nobody_calls_too() -> None:
    slices: list[int] = []

    def step() -> bool:
        time.sleep(0.0002)
        slices[-1] += 1
        return True

    def turn(work: Callable[[], None]) -> bool:
        slices.append(0)
        work()
        return len(slices) < 100

    background = BackgroundWork(FairLock(), step, turn, has_time=bool)
    background.start()
    background.join()
    assert max(slices) <= 3


def test_calls_that_leave_no_turn_do_the_work_themselves() -> None:
    lock = FairLock()
    workers: set[str] = set()

    def step() -> bool:
        workers.add(threading.current_thread().name)
        return False

    background = BackgroundWork(lock, step, lambda work: True, has_time=bool)
    background.start()
    deadline_s = time.monotonic() + _PATIENCE_S
    with lock:
        while not workers and time.monotonic() < deadline_s:
            background.catch_up()
    background.end()
    background.join()
    assert workers == {threading.current_thread().name}


def test_calls_that_only_look_do_the_work_where_it_is_starved() -> None:
    """As where several threads ask without a pause: the lock is never free."""
    with railgun.Engine(now_ms=lambda: _EVENTS) as engine:
        engine.apply(_DEFINITIONS)
        engine.score_many("s", [{"id": str(n), "ts": n} for n in range(_EVENTS)])
        engine._background.end()
        engine._background.join()
        engine.register_metrics("s", "SELECT count(*) AS n FROM s OVER INFINITE")
        deadline_s = time.monotonic() + _PATIENCE_S
        while any(each.warming for each in engine.metrics("s")):
            assert time.monotonic() < deadline_s, "nobody filled it"


@pytest.mark.parametrize(
    ("has_time", "calls", "rest_s"),
    [(True, True, 0.001 / 0.15 - 0.001), (True, False, 0.0003), (False, True, 0.0003)],
)
def test_what_has_time_gets_a_small_share_beside_calls(
    monkeypatch: pytest.MonkeyPatch, has_time: bool, calls: bool, rest_s: float
) -> None:
    now_s = 100.0

    def step() -> bool:
        nonlocal now_s
        now_s += 0.001
        return True

    monkeypatch.setattr(background_module, "time", SimpleNamespace(monotonic=lambda: now_s))
    background = BackgroundWork(FairLock(), step, lambda work: True, has_time=lambda: has_time)
    for _ in range(2):
        background.put_off()
        if calls:
            background.catch_up()
        background._slice(0.0004, yields=True)
        assert background._next_s - now_s == pytest.approx(rest_s)
        now_s = background._next_s
    background.catch_up(after_s=0.0)
    assert background._next_s - now_s == pytest.approx(0.0003), (
        "calls that leave it no turn are no reason to rest"
    )


def test_what_a_long_call_made_overdue_is_due_from_its_end() -> None:
    worked: list[int] = []

    def step() -> bool:
        worked.append(1)
        return False

    background = BackgroundWork(FairLock(), step, lambda work: True, has_time=bool)
    background.put_off()
    background.catch_up(after_s=3600.0)
    assert not worked
    background._next_s -= 3600.0
    background.catch_up(after_s=3600.0)
    assert worked


def test_it_ends_when_its_turn_says_so() -> None:
    turns: list[int] = []
    background = BackgroundWork(FairLock(), lambda: True, lambda work: bool(turns.append(1)), has_time=bool)
    background.start()
    background.join()
    assert turns == [1]
