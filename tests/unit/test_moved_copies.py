"""The data of copies that other nodes have is deleted after an hour, not before, and no other data."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyName
from railgun.cluster.plan import Plan, PlannedCopy
from railgun.host.data_folder import fetching_folder
from railgun.host.place import task_folder
from railgun.messaging.errors import TransportUnavailableError
from railgun.state.errors import StoreLockedError
from railgun.state.lock import FolderLock
from railgun.unit.clock import Clock
from railgun.unit.moved_copies import KEPT_S, MovedCopies

MOVED, OWN = TaskKey("s", 1, "k", 0), TaskKey("s", 1, "k", 1)


class Node:
    """A node with the data of both tasks.

    elsewhere: the tasks that other nodes have.
    """

    def __init__(self, data: Path) -> None:
        self.now_s, self.elsewhere = 0.0, {MOVED}
        self.plan, self.broker_is_away, self.readings = Plan(1), False, 0
        self._data = data
        self._copies = MovedCopies(
            data, self._is_elsewhere, self._reading, Clock(lambda: self.now_s), run=self._run_at_once
        )
        for key in (MOVED, OWN):
            self.folder(key).mkdir(parents=True)
            (self.folder(key) / "state").write_text("x")

    def _is_elsewhere(self, key: TaskKey, plan: Plan | None) -> bool:
        return key in self.elsewhere and key not in (plan or Plan()).copies

    @contextmanager
    def _reading(self) -> Iterator[Callable[[], Plan]]:
        self.readings += 1
        yield self.read

    def read(self) -> Plan:
        if self.broker_is_away:
            raise TransportUnavailableError("assignment-0", "no answer", "Check the broker")
        return self.plan

    @staticmethod
    def _run_at_once(do: Callable[[], None]) -> Callable[[], bool]:
        do()
        return lambda: False

    def folder(self, key: TaskKey) -> Path:
        return task_folder(self._data, *key)

    def let_pass(self, seconds: float) -> set[TaskKey]:
        """Look each second; return the tasks whose data is there afterwards."""
        until_s = self.now_s + seconds
        while self.now_s < until_s:
            self.now_s += 1.0
            self._copies.look([MOVED, OWN])
        return {key for key in (MOVED, OWN) if self.folder(key).is_dir()}


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_it_is_kept_for_an_hour(node: Node) -> None:
    assert node.let_pass(KEPT_S - 60.0) == {MOVED, OWN}
    assert node.let_pass(180.0) == {OWN}
    assert [each.name for each in node.folder(OWN).parent.iterdir()] == ["1"]


def test_the_hour_begins_anew_where_other_nodes_did_not_have_it_meanwhile(node: Node) -> None:
    node.let_pass(KEPT_S - 120.0)
    node.elsewhere.clear()
    node.let_pass(61.0)
    node.elsewhere.add(MOVED)
    assert node.let_pass(KEPT_S - 120.0) == {MOVED, OWN}
    assert node.let_pass(240.0) == {OWN}


def test_what_was_left_of_an_earlier_attempt_goes_too(node: Node) -> None:
    left = node.folder(MOVED).with_name("0.gone")
    left.mkdir()
    (left / "state").write_text("x")
    assert node.let_pass(KEPT_S + 120.0) == {OWN}
    assert not left.exists()


@pytest.mark.parametrize("name", ["0.gone", "0.fetching.gone", "0.replaced.gone"])
def test_what_a_crash_left_of_the_deletion_goes_though_nothing_else_is_there(node: Node, name: str) -> None:
    node.folder(MOVED).rename(node.folder(MOVED).with_name(name))
    assert node.let_pass(KEPT_S + 120.0) == {OWN}
    assert [each.name for each in node.folder(MOVED).parent.iterdir()] == ["1"]


def test_what_cannot_be_deleted_is_said_and_harms_nothing(
    node: Node, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*arguments: object, **more: object) -> None:
        raise PermissionError("not allowed")

    monkeypatch.setattr(Path, "rename", fails)
    with caplog.at_level("WARNING"):
        assert node.let_pass(KEPT_S + 120.0) == {MOVED, OWN}
    assert "is not deleted: not allowed" in caplog.text


def test_what_a_fetch_has_left_goes_with_it(node: Node) -> None:
    fetching = fetching_folder(node.folder(MOVED))
    node.folder(MOVED).rename(fetching)
    own = fetching_folder(node.folder(OWN))
    own.mkdir()
    node.let_pass(KEPT_S - 60.0)
    assert fetching.is_dir()
    node.let_pass(180.0)
    assert not fetching.exists()
    assert own.is_dir()


def test_it_is_kept_where_the_newest_plan_has_the_copy_back(node: Node) -> None:
    node.plan = Plan(2, {MOVED: (PlannedCopy(CopyName("node-1", 1), "f"),)})
    assert node.let_pass(KEPT_S + 120.0) == {MOVED, OWN}
    node.plan = Plan(3)
    assert node.let_pass(120.0) == {OWN}


def test_it_is_kept_while_the_plan_cannot_be_read(node: Node, caplog: pytest.LogCaptureFixture) -> None:
    node.broker_is_away = True
    assert node.let_pass(KEPT_S + 120.0) == {MOVED, OWN}
    assert "is not deleted: assignment-0: no answer" in caplog.text
    node.broker_is_away = False
    assert node.let_pass(120.0) == {OWN}


def test_it_is_kept_while_a_process_has_it_open(node: Node) -> None:
    state = node.folder(MOVED) / "rows"
    state.mkdir()
    held = FolderLock(state)
    assert node.let_pass(KEPT_S + 120.0) == {MOVED, OWN}
    held.release()
    assert node.let_pass(120.0) == {OWN}


def test_nobody_can_open_it_while_the_plan_is_read(node: Node) -> None:
    state = node.folder(MOVED) / "rows"
    state.mkdir()
    FolderLock(state).release()

    def read() -> Plan:
        with pytest.raises(StoreLockedError):
            FolderLock(state)
        return Plan(1)

    node.read = read  # type: ignore[method-assign]
    assert node.let_pass(KEPT_S + 120.0) == {OWN}


def test_the_plan_topic_is_read_once_for_all_that_are_due(node: Node) -> None:
    node.elsewhere = {MOVED, OWN}
    assert node.let_pass(KEPT_S + 120.0) == set()
    assert node.readings == 1
