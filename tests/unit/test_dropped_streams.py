"""The folder of a dropped stream is deleted once its time is over, and not under a task that is still open."""

from collections.abc import Callable
from pathlib import Path

import pytest

from railgun.catalog.catalog import Catalog
from railgun.host.data_folder import TASKS
from railgun.state.lock import FolderLock
from railgun.unit.clock import Clock
from railgun.unit.dropped_streams import DroppedStreams

GRACE_S = 60.0


class Node:
    """A node with the folder of a dropped stream. running: the deletions that run beside the loop."""

    def __init__(self, data: Path) -> None:
        self.now_s, self.catalog = 0.0, Catalog()
        self.tasks = data / TASKS
        self.state = self.tasks / "s.1" / "shop" / "0" / "state"
        self.state.mkdir(parents=True)
        self.running: list[Callable[[], None]] = []
        self._streams = DroppedStreams(data, GRACE_S, Clock(lambda: self.now_s), self._run)

    def _run(self, do: Callable[[], None]) -> Callable[[], bool]:
        self.running.append(do)
        return lambda: do in self.running

    def end_deletions(self) -> None:
        while self.running:
            self.running[0]()
            del self.running[0]

    def note(self) -> None:
        self._streams.note(self.catalog)

    def pass_s(self, seconds: float) -> list[str]:
        """Return what is there afterwards."""
        self.now_s += seconds
        self._streams.remove(self.catalog)
        return sorted(path.name for path in self.tasks.iterdir())


@pytest.fixture
def node(tmp_path: Path) -> Node:
    made = Node(tmp_path)
    made.note()
    return made


def test_a_folder_is_kept_for_the_time_of_grace_and_while_a_task_of_it_is_open(node: Node) -> None:
    assert node.pass_s(0.0) == ["s.1"]
    lock = FolderLock(node.state)
    assert node.pass_s(GRACE_S) == ["s.1"]
    lock.release()
    node.pass_s(2.0)
    node.end_deletions()
    assert node.pass_s(0.0) == []


def test_its_files_are_deleted_beside_the_loop_and_its_name_is_gone_at_once(node: Node) -> None:
    """Hundreds of gigabytes take minutes: a unit that says nothing meanwhile is killed, and would begin again."""
    assert node.pass_s(GRACE_S) == ["s.1.gone"]
    assert (node.tasks / "s.1.gone" / "shop" / "0" / "state").is_dir()
    node.note()
    assert node.pass_s(10 * GRACE_S) == ["s.1.gone"]
    assert len(node.running) == 1
    node.end_deletions()
    assert node.pass_s(GRACE_S) == []


def test_what_a_crash_has_left_of_it_goes_too(node: Node) -> None:
    node.state.parents[2].rename(node.tasks / "s.1.gone")
    node.note()
    assert node.pass_s(GRACE_S) == ["s.1.gone"]
    node.end_deletions()
    assert node.pass_s(0.0) == []
