"""Copies of tasks that have no others: they answer as soon as they have caught up, without hearing anybody."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyName, CopyState
from railgun.cluster.plan import Plan
from railgun.unit.copies import UnitCopies


class LoneCopies:
    """Stands in for `UnitCopies`."""

    answers_anything = False
    plan = Plan()
    takeover_s, units = 1.0, 1
    reached_since_s = 0.0

    def __init__(self, generation: int) -> None:
        self.generation = generation

    def write(self, interval_s: float) -> int:
        return 1

    def acknowledge(self, number: int) -> None:
        """Nobody listens."""

    def follow(self, planned: Mapping[TaskKey, Sequence[CopyName]]) -> None:
        """The plan makes no difference."""

    def forget(self, key: TaskKey) -> None:
        """There is nothing to forget."""

    def decide(self, hosts: Iterable[Any]) -> None:
        """All answer."""

    def is_held(self, key: TaskKey) -> bool:
        return False

    def are_elsewhere(self, key: TaskKey, plan: Plan | None = None) -> bool:
        return False

    def could_another_node_answer(self, key: TaskKey) -> bool:
        return False

    def is_leaving(self, host: Any) -> bool:
        return False

    def state(self, host: Any) -> CopyState:
        if host.failure is not None:
            return CopyState.FAILED
        return CopyState.ANSWERING if host.is_ready and not host.is_filling else CopyState.BEHIND


def lone_copies(generation: int = 1) -> UnitCopies:
    """Return them under the name that units know. generation: of their unit."""
    return cast(UnitCopies, LoneCopies(generation))
