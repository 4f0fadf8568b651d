"""Copies that flap are made elsewhere, whatever they report in between: on a full disk they catch up each time."""

import pytest

from railgun.cluster.copies import CopyState
from railgun.cluster.progress import Progress
from tests.cluster.test_lost_copies import AFTER_S, NAME, Cluster


class Flapping(Cluster):
    """The log gets a record a second. Copies on some nodes are silent for a while, then their unit begins again.

    checkpoints: by node, what its last checkpoint covers.
    """

    def __init__(self) -> None:
        super().__init__()
        self.end, self.checkpoints = 100, dict.fromkeys(self.generations, 100)

    def go_on(self, seconds: int, *flapping: str, every_s: int = 20, saves: bool = False) -> None:
        """saves: whether a checkpoint of those that flap gets further in each run."""
        for second in range(1, seconds + 1):
            self.end += 1
            of_copies = {}
            for node in self.generations:
                flaps = node in flapping
                begins = flaps and second % every_s == 0
                self.generations[node] += begins
                if not flaps or (saves and second % every_s == every_s // 2):
                    self.checkpoints[node] = self.end
                of_copies[node] = self._status(node, begins=begins)
            planned = self.nodes
            self.pass_s(1, {node: each for node, each in of_copies.items() if node in planned})

    def _status(self, node: str, *, begins: bool) -> dict[str, object]:
        if begins:
            return {"state": CopyState.BEHIND, "position": 0, "replied": 0, "end": 0}
        state = CopyState.ANSWERING if node == self.plan.copies[NAME][0].copy.node else CopyState.SILENT
        checkpoint = self.checkpoints[node]
        return {
            "state": state, "position": self.end, "replied": self.end, "end": self.end, "checkpoint": checkpoint,
        }  # fmt: skip


@pytest.fixture
def cluster() -> Flapping:
    made = Flapping()
    made.go_on(30)
    return made


def test_a_copy_on_a_full_disk_is_made_elsewhere_once(cluster: Flapping) -> None:
    cluster.go_on(290, "node-2")
    assert cluster.nodes == ["node-1", "node-2"]
    cluster.go_on(310, "node-2")
    assert cluster.nodes == ["node-1", "node-3"]
    assert {node: each.has_failed for node, each in cluster.lost.items()} == {"node-2": False}
    copies = cluster.plan.copies
    # There is room again.
    cluster.go_on(900)
    assert cluster.plan.copies == copies


@pytest.mark.parametrize(
    ("every_s", "saves"),
    [
        pytest.param(100, True, id="its unit begins three times"),
        pytest.param(250, False, id="its checkpoints fail, rarely"),
    ],
)
def test_one_reason_is_enough(cluster: Flapping, every_s: int, saves: bool) -> None:
    cluster.go_on(3 * every_s + round(AFTER_S) + 20, "node-2", every_s=every_s, saves=saves)
    assert cluster.nodes == ["node-1", "node-3"]


def test_a_unit_that_begins_now_and_then_and_saves_what_it_does_keeps_its_copies(cluster: Flapping) -> None:
    cluster.go_on(4_000, "node-2", every_s=200, saves=True)
    assert (cluster.nodes, cluster.lost) == (["node-1", "node-2"], {})


def test_a_unit_that_stops_to_flap_keeps_its_copies(cluster: Flapping) -> None:
    cluster.go_on(180, "node-2")
    cluster.go_on(1_200)
    assert (cluster.nodes, cluster.lost) == (["node-1", "node-2"], {})


def test_a_unit_that_was_killed_once_may_take_its_time_to_the_next_checkpoint(cluster: Flapping) -> None:
    cluster.go_on(500, "node-2", every_s=499)
    cluster.go_on(400, "node-2", every_s=401)
    assert (cluster.nodes, cluster.lost) == (["node-1", "node-2"], {})


def test_a_copy_without_events_has_no_checkpoint_to_take(cluster: Flapping) -> None:
    for _ in range(10):
        cluster.generations["node-2"] += 1
        for _ in range(200):
            node = {"position": 9, "replied": 9, "end": 9, "checkpoint": 9}
            cluster.pass_s(
                1,
                {
                    "node-1": {**node, "state": CopyState.ANSWERING},
                    "node-2": {**node, "state": CopyState.SILENT},
                },
            )
    assert (cluster.nodes, cluster.lost) == (["node-1", "node-2"], {})


def test_disks_that_fill_up_one_after_the_other_lose_their_copies(cluster: Flapping) -> None:
    cluster.go_on(600, "node-2")
    cluster.go_on(600, "node-2", "node-3")
    assert cluster.nodes == ["node-1", "node-4"]
    assert set(cluster.lost) == {"node-2", "node-3"}


def test_what_ends_every_unit_that_has_the_task_does_not_wander(cluster: Flapping) -> None:
    cluster.go_on(3_000, *cluster.generations)
    assert len(cluster.lost) == 1


def test_a_copy_that_flaps_takes_no_place_of_those_that_are_made(cluster: Flapping) -> None:
    cluster.go_on(100, "node-2")
    view = cluster.observed.view({NAME: False}, cluster.plan, cluster.now_s)
    advances = {copy.node: each.advances for copy, each in view.tasks[0].heard.items()}
    assert advances == {"node-1": True, "node-2": False}


@pytest.mark.parametrize("blind", ["_checkpoints_fail", "_has_begun_often"])
def test_flapping_that_does_not_count_is_found(
    cluster: Flapping, monkeypatch: pytest.MonkeyPatch, blind: str
) -> None:
    monkeypatch.setattr(Progress, blind, lambda *_: False)
    every_s, saves = (250, False) if blind == "_checkpoints_fail" else (100, True)
    with pytest.raises(AssertionError):
        test_one_reason_is_enough(cluster, every_s, saves)
