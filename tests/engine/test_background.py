"""Background work lets calls go first, and is done by them where they leave it no turn."""

import math
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace

import pytest

import railgun
import railgun.engine.background as background_module
from railgun.engine.background import BackgroundWork
from railgun.engine.engine_streams import EngineStreams
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

    background = BackgroundWork(lock, step, turn, is_throttled=bool, is_deferrable=bool)
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

    background = BackgroundWork(FairLock(), step, turn, is_throttled=bool, is_deferrable=bool)
    background.start()
    background.join()
    assert max(slices) <= 3


def test_calls_that_leave_no_turn_do_the_work_themselves() -> None:
    lock = FairLock()
    workers: set[str] = set()

    def step() -> bool:
        workers.add(threading.current_thread().name)
        return False

    background = BackgroundWork(lock, step, lambda work: True, is_throttled=bool, is_deferrable=bool)
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


_USUAL_S = 0.0003


@pytest.mark.parametrize(
    ("is_throttled", "called_ago_s", "slice_s", "rest_s"),
    [
        (True, 0.0, 0.001, 0.001 / 0.15 - 0.001),
        (True, 0.04, 0.001, 0.001 / 0.15 - 0.001),
        (True, 0.06, 0.001, _USUAL_S),
        (True, math.inf, 0.001, _USUAL_S),
        (False, 0.0, 0.001, _USUAL_S),
        # Held up by a disk, or a machine that stood still.
        (True, 0.0, 600.0, 0.01),
    ],
)
def test_what_rests_gets_a_small_share_beside_calls(
    monkeypatch: pytest.MonkeyPatch, is_throttled: bool, called_ago_s: float, slice_s: float, rest_s: float
) -> None:
    now_s = 1e6

    def step() -> bool:
        nonlocal now_s
        now_s += slice_s
        return True

    monkeypatch.setattr(background_module, "time", SimpleNamespace(monotonic=lambda: now_s))
    background = BackgroundWork(
        FairLock(), step, lambda work: True, is_throttled=lambda: is_throttled, is_deferrable=bool
    )
    background.put_off()
    if called_ago_s < math.inf:
        background.catch_up()
        # It is asked once the slice is over: a call that waits for a long one came lately, too.
        background._called_s = now_s + slice_s - called_ago_s
    background._slice(0.0004, yields=True)
    assert background._next_s - now_s == pytest.approx(rest_s)
    background.catch_up(after_s=0.0)
    assert background._next_s - now_s == pytest.approx(rest_s), "it is not due yet"
    now_s = background._next_s + background_module.STARVED_S
    background.catch_up(after_s=0.0)
    assert background._next_s - now_s == pytest.approx(_USUAL_S), (
        "calls that leave it no turn do not make it rest"
    )


def test_what_a_long_call_made_overdue_is_due_from_its_end() -> None:
    worked: list[int] = []

    def step() -> bool:
        worked.append(1)
        return False

    background = BackgroundWork(FairLock(), step, lambda work: True, is_throttled=bool, is_deferrable=bool)
    background._next_s = time.monotonic() - 7200.0
    background.put_off()
    background.catch_up(after_s=3600.0)
    assert not worked
    background._next_s -= 3600.0
    background.catch_up(after_s=3600.0)
    assert worked


@pytest.mark.parametrize(
    ("overdue_s", "is_deferrable", "works"), [(0.01, False, True), (0.01, True, False), (0.05, True, True)]
)
def test_calls_do_what_has_time_once_it_is_starved(
    monkeypatch: pytest.MonkeyPatch, overdue_s: float, is_deferrable: bool, works: bool
) -> None:
    worked: list[int] = []

    def step() -> bool:
        worked.append(1)
        return False

    now_s = 1e6
    monkeypatch.setattr(background_module, "time", SimpleNamespace(monotonic=lambda: now_s))
    background = BackgroundWork(
        FairLock(), step, lambda work: True, is_throttled=bool, is_deferrable=lambda: is_deferrable
    )
    background.put_off()
    now_s += overdue_s
    background.catch_up()
    assert bool(worked) == works


def test_an_engine_gives_way_while_it_fills_and_not_else(monkeypatch: pytest.MonkeyPatch) -> None:
    with railgun.Engine(now_ms=lambda: _EVENTS) as engine:
        background = engine._background
        background.end()
        background.join()
        engine.apply(_DEFINITIONS)
        engine.score_many("s", [{"id": str(n), "ts": n} for n in range(_EVENTS)])
        assert not background._is_deferrable()
        assert not background._is_throttled()
        background._next_s = -math.inf
        engine.register_metrics("s", "SELECT count(*) AS n FROM s OVER INFINITE")
        assert background._next_s > 0.0, "a change puts off what it made overdue"
        background._next_s = -math.inf
        engine._prefetched(list)
        assert background._next_s > 0.0, "so does thinking one out"
        assert background._is_deferrable()
        assert background._is_throttled()
        with monkeypatch.context() as patch:
            patch.setattr(EngineStreams, "is_following", True)
            assert not background._is_deferrable()
            assert background._is_throttled()
        engine.wait_until_warm("s")
        assert not background._is_deferrable()
        assert not background._is_throttled()
        with monkeypatch.context() as patch:
            patch.setattr(EngineStreams, "is_following", True)
            assert background._is_throttled(), "where nothing fills too"


def test_it_ends_when_its_turn_says_so() -> None:
    turns: list[int] = []
    background = BackgroundWork(
        FairLock(), lambda: True, lambda work: bool(turns.append(1)), is_throttled=bool, is_deferrable=bool
    )
    background.start()
    background.join()
    assert turns == [1]
