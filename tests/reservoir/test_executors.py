"""Both executors keep the contract; what each adds: threads rest, and without threads waiting runs the work."""

import random
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from functools import partial
from typing import Any

import pytest

from reservoir import thread_executor
from reservoir.executor import Executor, Lane
from reservoir.inline_executor import InlineExecutor
from reservoir.thread_executor import ThreadExecutor

EXECUTORS = [ThreadExecutor, InlineExecutor]


@pytest.fixture(params=EXECUTORS)
def executor(request: pytest.FixtureRequest) -> Executor:
    made: Executor = request.param()
    return made


@pytest.fixture
def lane(executor: Executor) -> Iterator[Lane]:
    made = executor.lane("tested")
    yield made
    made.close()


def held(lane: Lane) -> Callable[[], None]:
    """Keep a lane from what is submitted next, until what is returned is called."""
    begun, may_go_on = threading.Event(), threading.Event()
    if not isinstance(lane, thread_executor.ThreadLane):
        return may_go_on.set

    def first() -> None:
        begun.set()
        assert may_go_on.wait(10)

    lane.submit(first)
    assert begun.wait(10)
    return may_go_on.set


def test_a_lane_runs_in_the_order_submitted_what_is_at_leisure_last(executor: Executor, lane: Lane) -> None:
    done: list[str] = []
    go_on = held(lane)
    asked = [lane.submit(partial(done.append, f"prefetched {k}"), at_leisure=True) for k in range(2)]
    asked += [lane.submit(partial(done.append, f"needed {k}")) for k in range(2)]
    go_on()
    executor.wait(asked, 10)
    assert done == ["needed 0", "needed 1", "prefetched 0", "prefetched 1"]


def test_a_result_and_a_failure_come_out_of_the_job(lane: Lane) -> None:
    def fails() -> int:
        raise KeyError("planted")

    job, failing, behind = lane.submit(lambda: 7), lane.submit(fails), lane.submit(lambda: 8)
    assert (job.result(), behind.result()) == (7, 8)
    assert job.exception() is None
    assert isinstance(failing.exception(), KeyError)
    with pytest.raises(KeyError, match="planted"):
        failing.result()
    assert job.done()
    assert failing.done()
    assert not failing.cancelled()
    assert not job.cancel(), "it has ended"


def test_what_has_not_begun_can_be_cancelled(executor: Executor, lane: Lane) -> None:
    done: list[int] = []
    go_on = held(lane)
    jobs = [lane.submit(partial(done.append, k)) for k in range(3)]
    assert jobs[1].cancel()
    assert jobs[1].done()
    assert jobs[1].cancelled()
    go_on()
    executor.wait(jobs, 10)
    assert done == [0, 2]
    with pytest.raises(CancelledError):
        jobs[1].result()


def test_a_job_may_wait_for_another_lane(executor: Executor, lane: Lane) -> None:
    other = executor.lane("other")
    inner = other.submit(lambda: 3)
    assert lane.submit(lambda: 1 + inner.result()).result() == 4
    other.close()


def test_what_has_not_begun_when_a_lane_closes_is_cancelled(executor: Executor) -> None:
    lane = executor.lane("tested")
    go_on = held(lane)
    jobs = [lane.submit(lambda: None), lane.submit(lambda: None, at_leisure=True)]
    closing = threading.Thread(target=lane.close)
    closing.start()
    if isinstance(lane, thread_executor.ThreadLane):
        closing.join(0.05)
        assert closing.is_alive(), "it waits for the job that runs"
    go_on()
    closing.join(10)
    executor.wait(jobs, 10)
    assert all(job.cancelled() for job in jobs)
    with pytest.raises(RuntimeError, match="tested is closed"):
        lane.submit(lambda: None)
    lane.close()


def test_a_blocked_lane_delays_no_other() -> None:
    executor = ThreadExecutor()
    blocked, free = executor.lane("blocked"), executor.lane("free")
    go_on = held(blocked)
    assert free.submit(lambda: 5).result() == 5
    waited = blocked.submit(lambda: 6)
    executor.wait([waited], 0.01)
    assert not waited.done(), "no longer than asked"
    go_on()
    assert waited.result() == 6
    blocked.close()
    free.close()


def test_rests_end_where_something_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_executor, "_REST_SHARE", 1e9)
    monkeypatch.setattr(thread_executor, "_REST_MOST_S", 1e6)
    monkeypatch.setattr(thread_executor, "_REST_ALL_S", 1e9)
    executor = ThreadExecutor()
    lane = executor.lane("tested")
    first, second = (lane.submit(partial(time.sleep, 0.001), at_leisure=True) for _ in range(2))
    executor.wait([first], 10)
    assert first.done()
    for _ in range(3):
        needed = lane.submit(lambda: None)
        executor.wait([needed], 10)
        assert needed.done()
    assert not second.done(), "it rests"
    lane.close()
    assert second.done(), "nobody waits for what is given up"


def test_rests_are_shorter_where_many_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_executor, "_REST_SHARE", 1e9)
    monkeypatch.setattr(thread_executor, "_REST_MOST_S", 0.1)
    monkeypatch.setattr(thread_executor, "_REST_ALL_S", 0.1)
    executor, begun_s = ThreadExecutor(), time.monotonic()
    lane = executor.lane("tested")
    asked = [lane.submit(partial(time.sleep, 0.001), at_leisure=True) for _ in range(200)]
    executor.wait(asked, 30)
    assert all(job.done() for job in asked)
    assert time.monotonic() - begun_s < 10, "not 20"
    lane.close()


def test_a_lane_keeps_nothing_of_a_job_that_is_done() -> None:
    lane = ThreadExecutor().lane("tested")
    ended: list[int] = []

    class Large:
        def __del__(self) -> None:
            ended.append(1)

    def work(large: Large) -> None:
        """Needs it."""

    lane.submit(partial(work, Large())).result()
    lane.submit(lambda: None).result()
    assert ended == [1]
    lane.close()


def test_without_threads_nothing_runs_until_it_is_asked_for() -> None:
    executor, done = InlineExecutor(), list[str]()
    lanes = [executor.lane(name) for name in ("a", "b")]
    for k in range(2):
        for lane in lanes:
            lane.submit(partial(done.append, f"{lane.name}{k}"))
    assert done == []
    assert executor.run_next()
    assert done == ["a0"]
    while executor.run_next():
        pass
    assert done == ["a0", "a1", "b0", "b1"]


def test_a_seed_gives_one_order_and_others_another() -> None:
    def order(seed: int) -> list[Any]:
        executor, done = InlineExecutor(random.Random(seed).randrange), list[Any]()
        for number in range(3):
            lane = executor.lane(str(number))
            for k in range(5):
                lane.submit(partial(done.append, (number, k)))
        while executor.run_next():
            pass
        for number in range(3):
            assert [k for by, k in done if by == number] == list(range(5))
        return done

    assert order(1) == order(1)
    assert len({tuple(order(seed)) for seed in range(5)}) == 5


def test_without_threads_what_waits_for_itself_is_told() -> None:
    executor = InlineExecutor()
    first, second = executor.lane("first"), executor.lane("second")
    inner = second.submit(lambda: outer.result())
    outer = first.submit(lambda: inner.result())
    with pytest.raises(RuntimeError, match="these lanes wait for it: first, second"):
        outer.result()
