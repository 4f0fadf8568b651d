"""How the workers of a run share its tests: those of one JVM stay with one worker and begin first, all others are
stolen.

pytest-xdist has each by itself. Its `worksteal` knows no groups. Its `loadgroup` gives every other test to whichever
worker is free: each worker then sets up the fixtures of every module, and loads the kernels that it needs. And from
pytest 9.2 on its groups are none: it writes them into an attribute that pytest reads no more, and says nothing.
"""

import re
from collections.abc import Sequence
from itertools import islice

import pytest
from xdist.scheduler.worksteal import MIN_PENDING, WorkStealingScheduling
from xdist.workermanage import WorkerController

ONE_JVM = "one_jvm"
"""A parameter of the tests of a group. The run itself knows tests by their names alone: so it stands in these."""

_LONG_S = 300
_GROUPS = re.compile(rf"[\[-]({ONE_JVM})[\]-]")


class GroupStealing(WorkStealingScheduling):
    """Work stealing with groups.

    A group's worker is given its tests as it runs them. Only what waits at a worker can be stolen: so these cannot.
    """

    def __init__(self, config: pytest.Config, log: object = None) -> None:
        super().__init__(config, log)
        self._left: dict[str, list[int]] = {}
        self._owners: dict[str, WorkerController] = {}

    @property
    def tests_finished(self) -> bool:
        return not any(self._left.values()) and super().tests_finished

    @property
    def has_pending(self) -> bool:
        return any(self._left.values()) or super().has_pending

    def check_schedule(self) -> None:
        self._set_groups_aside()
        for group, left in self._left.items():
            self._top_up(group, left)
        super().check_schedule()

    def _set_groups_aside(self) -> None:
        """Take the tests of groups out of those that any worker may run: at first, and when a worker has crashed."""
        assert self.collection is not None
        others = []
        for index in self.pending:
            group = _group_of(self.collection[index])
            (others if group is None else self._left.setdefault(group, [])).append(index)
        self.pending[:] = others

    def _top_up(self, group: str, left: list[int]) -> None:
        """Give a group's worker its next tests."""
        owner = self._owner_of(group) if left else None
        if owner is not None:
            some = left[: max(0, MIN_PENDING - len(self.node2pending[owner]))]
            del left[: len(some)]
            if some:
                self.node2pending[owner] += some
                owner.send_runtest_some(some)

    def _owner_of(self, group: str) -> WorkerController | None:
        """The group's worker; where it has none, or that is gone, the one with the least to do."""
        running = [node for node in self.nodes if not node.shutting_down]
        owner = self._owners.get(group)
        if owner not in running:
            owner = min(running, key=lambda node: len(self.node2pending[node]), default=None)
            if owner is not None:
                self._owners[group] = owner
        return owner


def arranged(items: Sequence[pytest.Item], workers: int) -> list[pytest.Item]:
    """The order in which the tests are shared: each worker begins with its share of those that take long and do little.

    Each is given a part of what is in no group, in this order; with groups there, one of them at first has only these.
    What waits as long as people do is one worker's: it fills its time, and the others have the processors. Those with a
    broker of their own, or with a limit of their own, begin the parts of the others. So none of them is the last.
    """
    grouped = [item for item in items if _group_of(item.nodeid) is not None]
    others = [item for item in items if _group_of(item.nodeid) is None]
    real = [item for item in others if item.get_closest_marker("real_time")]
    long = [item for item in others if item not in real and _is_long(item)]
    rest = iter([item for item in others if item not in real and item not in long])
    parts = max(1, workers - bool(grouped))
    heads = [real, *(long[n :: parts - 1] for n in range(parts - 1))] if parts > 1 else [real + long]
    found: list[pytest.Item] = []
    for number, head in enumerate(heads):
        size = (len(others) - len(found)) // (parts - number)
        found += [*head, *islice(rest, max(0, size - len(head)))]
    return [*grouped, *found, *rest]


def _is_long(item: pytest.Item) -> bool:
    mark = item.get_closest_marker("timeout")
    return bool(mark and mark.args[0] >= _LONG_S) or "broker" in getattr(item, "fixturenames", ())


def _group_of(node_id: str) -> str | None:
    found = _GROUPS.search(node_id)
    return found and found[1]
