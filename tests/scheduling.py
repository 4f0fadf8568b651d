"""How the workers of a run share its tests: those of one JVM stay with one worker and begin first, all others are
stolen.

pytest-xdist has each by itself. Its `worksteal` knows no groups. Its `loadgroup` gives every other test to whichever
worker is free: each worker then sets up the fixtures of every module, and loads the kernels that it needs. And from
pytest 9.2 on its groups are none: it writes them into an attribute that pytest reads no more, and says nothing.
"""

import re

import pytest
from xdist.scheduler.worksteal import MIN_PENDING, WorkStealingScheduling
from xdist.workermanage import WorkerController

ONE_JVM = "one_jvm"
"""A parameter of the tests of a group. The run itself knows tests by their names alone: so it stands in these."""

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
        if self.collection is None:
            # Nothing could be collected: pytest says why.
            return
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


def _group_of(node_id: str) -> str | None:
    found = _GROUPS.search(node_id)
    return found and found[1]
