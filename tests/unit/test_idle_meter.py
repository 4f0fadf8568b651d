"""How much of its time a unit has nothing to do."""

import time

import pytest

from railgun.unit.clock import IdleMeter


class Clocks:
    """Of a thread that works and waits."""

    now_s = 100.0
    cpu_s = 7.0

    def work(self, seconds: float, *, others_s: float = 0.0) -> None:
        """others_s: for so long others have its processor."""
        self.now_s += seconds + others_s
        self.cpu_s += seconds

    def wait(self, seconds: float) -> None:
        self.now_s += seconds

    def waiting(self) -> IdleMeter:
        return IdleMeter(lambda: self.now_s, lambda: self.cpu_s)


def test_what_it_waits_is_not_of_use() -> None:
    clocks = Clocks()
    waiting = clocks.waiting()
    begun_s = waiting.used_s()
    with waiting.maybe():
        clocks.work(0.25)
        clocks.wait(2.0)
        clocks.work(0.5)
    assert waiting.waited_s == pytest.approx(2.0)
    assert waiting.used_s() - begun_s == pytest.approx(0.75)


def test_where_it_has_something_to_do_waiting_for_a_processor_is_of_use() -> None:
    clocks = Clocks()
    waiting = clocks.waiting()
    begun_s = waiting.used_s()
    clocks.work(0.25, others_s=1.0)
    assert waiting.used_s() - begun_s == pytest.approx(1.25)
    assert waiting.waited_s == 0


def test_clocks_that_tell_a_little_more_work_than_time_take_nothing_back() -> None:
    clocks = Clocks()
    waiting = clocks.waiting()
    with waiting.maybe():
        clocks.cpu_s += 0.001
    assert waiting.waited_s == 0


def test_an_error_comes_through_and_the_time_counts() -> None:
    clocks = Clocks()
    waiting = clocks.waiting()

    def fail() -> None:
        clocks.wait(1.5)
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"), waiting.maybe():
        fail()
    assert waiting.waited_s == pytest.approx(1.5)


def test_by_the_clocks_of_this_machine() -> None:
    waiting = IdleMeter()
    with waiting.maybe():
        time.sleep(0.05)
    assert waiting.waited_s >= 0.04
