"""Background work lets calls go first, and is done by them where they leave it no turn."""

import threading
import time
from collections.abc import Callable

import railgun
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

    background = BackgroundWork(lock, step, turn)
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

    background = BackgroundWork(FairLock(), step, turn)
    background.start()
    background.join()
    assert max(slices) <= 3


def test_calls_that_leave_no_turn_do_the_work_themselves() -> None:
    lock = FairLock()
    workers: set[str] = set()

    def step() -> bool:
        workers.add(threading.current_thread().name)
        return False

    background = BackgroundWork(lock, step, lambda work: True)
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


def test_it_ends_when_its_turn_says_so() -> None:
    turns: list[int] = []
    background = BackgroundWork(FairLock(), lambda: True, lambda work: bool(turns.append(1)))
    background.start()
    background.join()
    assert turns == [1]
