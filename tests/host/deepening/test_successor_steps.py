"""How many records of a log a task that follows it takes at once: as few as leave those who wait little to wait for."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from railgun.host.deepening.successor import Successor


class _Follower:
    """Stands for a task: it goes on by what it is given, each record takes `record_s` of a clock."""

    def __init__(self, record_s: float) -> None:
        self.position, self.now_s, self.record_s = 0, 0.0, record_s
        self.fills = SimpleNamespace(waiting=False)
        self.end = 0

    def process(self, records: range, first_offset: int, how: object) -> None:
        assert first_offset == self.position
        self.position += len(records)
        self.now_s += self.record_s * len(records)

    def work(self, *, brief: bool) -> bool:
        return False

    def now(self) -> float:
        return self.now_s


class _Steps(Successor):
    """Reads what nobody has to have written."""

    def _read(self) -> None:
        self._first = self.task.position
        self._ahead = cast(Any, _Ahead())


class _Ahead:
    """More records than any test takes."""

    def __len__(self) -> int:
        return 1 << 30

    def part(self, first: int, until: int) -> range:
        return range(first, until)


@pytest.fixture
def follower() -> _Follower:
    return _Follower(record_s=9.99e-6)


def _stepped(task: _Follower, successor: Successor, steps: int, came: int = 0) -> list[int]:
    """Records of each step, between which `came` more came."""
    sizes = []
    for _ in range(steps):
        before = task.position
        successor.step()
        sizes.append(task.position - before)
        task.end += came
    return sizes


def _successor(task: _Follower, behind: int) -> Successor:
    task.end = behind
    return _Steps(cast(Any, task), cast(Any, None), lambda: task.end)


def test_steps_grow_slowly_to_what_a_millisecond_holds(follower: _Follower) -> None:
    assert _stepped(follower, _successor(follower, 1 << 20), 6) == [8, 16, 32, 64, 100, 100]


def test_they_hold_no_more_than_256_however_cheap_records_are(follower: _Follower) -> None:
    follower.record_s = 0.0
    assert _stepped(follower, _successor(follower, 1 << 20), 7)[4:] == [128, 256, 256]


def test_dear_records_make_the_next_step_short_at_once_and_never_shorter_than_8(follower: _Follower) -> None:
    successor = _successor(follower, 1 << 20)
    _stepped(follower, successor, 6)
    follower.record_s = 49.9e-6
    assert _stepped(follower, successor, 3) == [100, 20, 20]
    follower.record_s = 0.1
    assert _stepped(follower, successor, 3) == [20, 8, 8]


def test_a_step_holds_twice_what_came_however_long_that_takes(follower: _Follower) -> None:
    follower.record_s = 0.1
    successor = _successor(follower, 1 << 20)
    assert _stepped(follower, successor, 4, came=50) == [8, 100, 100, 100]
    assert successor.behind == (1 << 20) - 308 + 200


def test_it_ends_where_the_log_ends(follower: _Follower) -> None:
    successor = _successor(follower, 30)
    assert _stepped(follower, successor, 4) == [8, 16, 6, 0]
    assert successor.is_near


def test_one_that_fills_a_metric_says_nothing_about_records(follower: _Follower) -> None:
    successor = _successor(follower, 1 << 20)
    _stepped(follower, successor, 5)
    follower.fills.waiting = True
    assert _stepped(follower, successor, 2) == [0, 0]
    follower.fills.waiting = False
    assert _stepped(follower, successor, 1) == [100]
