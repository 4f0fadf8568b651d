"""The checkpoints of a unit that stops: no task waits for another one, and none longer than there is time."""

from typing import Any, cast

import pytest

from railgun.host.task_host import TaskHost
from railgun.messaging.errors import TransportUnavailableError
from railgun.unit import last_checkpoints
from railgun.unit.clock import Clock
from railgun.unit.last_checkpoints import take_last_checkpoints


class _World:
    """Hosts that write their checkpoints in slices of a second, and a clock. done: what has happened, in order."""

    def __init__(self) -> None:
        self.now_s, self.done = 0.0, list[str]()

    def take(self, hosts: "list[_Host]", until_s: float) -> list[Exception]:
        clock = Clock(lambda: self.now_s)
        return take_last_checkpoints([cast(TaskHost, host) for host in hosts], until_s, clock)


class _Host:
    """slices: how many it writes. committed_s: when its commit is durable; given_up_s: when it fails instead."""

    def __init__(
        self, world: _World, name: str, slices: int, committed_s: float = 0.0, given_up_s: float | None = None
    ) -> None:
        self._world, self._name, self._left = world, name, slices
        self._committed_s, self._given_up_s = committed_s, given_up_s
        self.task: Any = self
        self.checkpointer = self

    @property
    def is_committing(self) -> bool:
        return not self._left

    def wait(self, timeout_s: float) -> None:
        self._world.now_s += timeout_s

    def advance_checkpoint(self) -> bool:
        if self._left:
            self._left -= 1
            self._world.now_s += 1.0
            self._world.done.append(f"{self._name} writes")
            return False
        if self._given_up_s is not None and self._world.now_s >= self._given_up_s:
            raise TransportUnavailableError(self._name, "replies are not acknowledged", "Check the broker")
        is_durable = self._world.now_s >= self._committed_s
        if is_durable:
            self._world.done.append(f"{self._name} is durable")
        return is_durable

    def miss(self, reason: str) -> None:
        self._world.done.append(f"{self._name}: {reason}")


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> _World:
    monkeypatch.setattr(last_checkpoints, "note_missed", lambda task, reason: task.miss(reason))
    return _World()


def test_all_are_begun_before_any_is_waited_for(world: _World) -> None:
    assert not world.take([_Host(world, "a", 1, 9.0), _Host(world, "b", 2), _Host(world, "c", 1)], 20.0)
    writes = [step for step in world.done if "writes" in step]
    assert writes == ["a writes", "b writes", "c writes", "b writes"]
    assert world.done[-3:] == ["c is durable", "b is durable", "a is durable"]


def test_what_has_too_much_to_write_is_given_up_and_the_others_have_theirs(world: _World) -> None:
    assert not world.take([_Host(world, "a", 1_000), _Host(world, "b", 2)], 10.0)
    assert "b is durable" in world.done
    assert world.done[-1] == "a: its checkpoint takes too long"
    assert world.now_s < 12.0


def test_replies_that_do_not_come_are_said_and_cost_no_other_one_its_checkpoint(world: _World) -> None:
    """They are given up when the time is over, and the checkpoint says so a moment later."""
    failures = world.take([_Host(world, "a", 1, 99.0, 5.2), _Host(world, "b", 2, 3.0)], 5.0)
    assert [type(each) for each in failures] == [TransportUnavailableError]
    assert world.done[-1] == "b is durable"


def test_a_commit_that_never_ends_is_given_up(world: _World) -> None:
    assert not world.take([_Host(world, "a", 1, 1e9), _Host(world, "b", 1)], 5.0)
    assert world.done[-1] == "a: its checkpoint takes too long"
    assert world.now_s < 8.0
