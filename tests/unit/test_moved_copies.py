"""The data of copies that other nodes have is deleted after an hour, not before, and no other data."""

from pathlib import Path

import pytest

from railgun.catalog.task_key import TaskKey
from railgun.host.fetched import fetching_folder
from railgun.host.place import task_folder
from railgun.unit.clock import Clock
from railgun.unit.moved_copies import KEPT_S, MovedCopies

MOVED, OWN = TaskKey("s", 1, "k", 0), TaskKey("s", 1, "k", 1)


class Node:
    """A node with the data of both tasks.

    elsewhere: the tasks that other nodes have.
    """

    def __init__(self, data: Path) -> None:
        self.now_s, self.elsewhere = 0.0, {MOVED}
        self._data = data
        self._copies = MovedCopies(data, lambda key: key in self.elsewhere, Clock(lambda: self.now_s))
        for key in (MOVED, OWN):
            self.folder(key).mkdir(parents=True)
            (self.folder(key) / "state").write_text("x")

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
