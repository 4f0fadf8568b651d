"""Copies that are lost though their nodes live are made elsewhere, as long as that could help."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import pytest

from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyName, CopyState
from railgun.cluster.lost_copies import Losses
from railgun.cluster.observed import ObservedCluster
from railgun.cluster.plan import LostCopy, Plan, PlannedCopy
from railgun.cluster.policy import ClusterPolicy
from railgun.cluster.records import DiskCopy, NodeRecord
from railgun.cluster.reports import Fetching, encode_report
from railgun.cluster.steps import next_plan
from tests.cluster.some_reports import TASK, report, status

NAME = TaskKey(*TASK.values())  # type: ignore[arg-type]
NODES = ("node-1", "node-2", "node-3", "node-4")
COPIES = tuple(CopyName(node, 0) for node in NODES)
AFTER_S = 300.0


class Cluster:
    """Four nodes with a unit each; the first two have the copies of one task. A second of it is a step."""

    def __init__(self) -> None:
        self.observed = ObservedCluster(ClusterPolicy(copies=2, replace_after_s=AFTER_S), 0.0)
        for node in NODES:
            self.begin(node, 1)
        self.now_s, self.generations = 0.0, dict.fromkeys(NODES, 1)
        self.plan = Plan(
            1,
            {NAME: tuple(PlannedCopy(copy, copy.node) for copy in COPIES[:2])},
            {NAME: COPIES[:2]},
            policy=ClusterPolicy(copies=2),
        )
        self.live(NODES)

    def begin(self, node: str, incarnation: int, folder: str = "", *, has_data: bool = False) -> None:
        record = NodeRecord(
            name=node,
            folder=folder or node,
            incarnation=incarnation,
            host="h",
            units=1,
            release="0",
            disk=[DiskCopy(**NAME._asdict(), size_bytes=100)] if has_data else [],
        )
        self.observed.take_statement(record, 0.0)

    def live(self, nodes: Iterable[str]) -> None:
        self.observed.take_members(nodes, self.now_s)

    def say(self, node: str, **of_copy: object) -> None:
        copies = [status(**of_copy)] if of_copy else []
        made = report(*copies, node=node, generation=self.generations[node])
        self.observed.take_report(encode_report(made), self.now_s)

    def pass_s(self, seconds: int, of_copies: Mapping[str, Mapping[str, object]]) -> None:
        """Every node reports in each second, those that are named with their copies; and the leader plans."""
        for _ in range(seconds):
            self.now_s += 1
            for node in NODES:
                self.say(node, **of_copies.get(node, {}))
            self.step()

    def step(self) -> None:
        self.plan = next_plan(self.plan, self.observed.view({NAME: False}, self.plan, self.now_s))

    @property
    def nodes(self) -> list[str]:
        return sorted(each.copy.node for each in self.plan.copies[NAME])

    @property
    def lost(self) -> Mapping[str, LostCopy]:
        return self.plan.lost.get(NAME, {})


WELL = {"state": CopyState.ANSWERING, "position": 9, "replied": 9, "end": 9}
SILENT = {**WELL, "state": CopyState.SILENT}
FAILED = {**WELL, "state": CopyState.FAILED, "failure": "its files are damaged"}
BEHIND = {**WELL, "state": CopyState.BEHIND, "position": 3}


@pytest.fixture
def cluster() -> Cluster:
    made = Cluster()
    made.pass_s(3, {"node-1": WELL, "node-2": SILENT})
    assert made.nodes == ["node-1", "node-2"]
    return made


@pytest.mark.parametrize("ill", [FAILED, BEHIND, {}])
def test_a_copy_that_is_lost_is_made_on_another_node(cluster: Cluster, ill: Mapping[str, object]) -> None:
    cluster.pass_s(295, {"node-1": WELL, "node-2": ill})
    assert (cluster.nodes, cluster.lost) == (["node-1", "node-2"], {})
    cluster.pass_s(20, {"node-1": WELL, "node-2": ill})
    assert cluster.lost == {"node-2": LostCopy(1, ill is FAILED)}
    assert cluster.nodes == ["node-1", "node-2", "node-3"]
    cluster.pass_s(5, {"node-1": WELL, "node-2": ill, "node-3": SILENT})
    assert cluster.nodes == ["node-1", "node-3"]


def test_one_that_gets_nearer_is_not_lost(cluster: Cluster) -> None:
    for position in range(10, 18):
        cluster.pass_s(200, {"node-1": WELL, "node-2": {**BEHIND, "position": position}})
    assert cluster.lost == {}
    # Behind another history it begins anew.
    for position in range(8):
        again = {**BEHIND, "position": position, "history": "h"}
        cluster.pass_s(200, {"node-1": WELL, "node-2": again})
    assert cluster.lost == {}
    for filled in range(1, 9):
        cluster.pass_s(
            200,
            {
                "node-1": WELL,
                "node-2": {**BEHIND, "position": 7, "history": "h", "filled": {"m": filled / 10}},
            },
        )
    assert cluster.lost == {}


def test_without_a_node_that_could_have_it_a_copy_is_not_lost(cluster: Cluster) -> None:
    cluster.live(NODES[:2])
    cluster.pass_s(700, {"node-1": WELL, "node-2": FAILED})
    assert (cluster.nodes, cluster.lost) == (["node-1", "node-2"], {})
    cluster.live(NODES[:3])
    cluster.pass_s(2, {"node-1": WELL, "node-2": FAILED})
    assert "node-3" in cluster.nodes


def test_each_lost_copy_needs_a_node_of_its_own(cluster: Cluster) -> None:
    cluster.live(NODES[:3])
    cluster.pass_s(305, {"node-1": BEHIND, "node-2": BEHIND})
    cluster.pass_s(700, {"node-1": BEHIND, "node-2": BEHIND, "node-3": SILENT})
    assert list(cluster.lost) == ["node-1"]
    # Another node may have the second one.
    cluster.live(NODES)
    cluster.pass_s(5, {"node-1": BEHIND, "node-2": BEHIND, "node-3": SILENT})
    cluster.pass_s(5, {"node-3": WELL, "node-4": SILENT})
    assert (cluster.nodes, sorted(cluster.lost)) == (["node-3", "node-4"], ["node-1", "node-2"])


@pytest.mark.parametrize("has_data", [True, False])
def test_data_of_a_node_whose_unit_begins_again_and_again_is_looked_at_once_all_copies_failed(
    cluster: Cluster, *, has_data: bool
) -> None:
    cluster.live(NODES[:3])
    cluster.begin("node-3", 2, has_data=has_data)
    both = {"node-1": FAILED, "node-2": FAILED}
    for _ in range(3):
        cluster.generations["node-3"] += 1
        cluster.pass_s(100, both)
    cluster.pass_s(10, both)
    assert ("node-3" in cluster.nodes) == has_data


def test_an_error_of_the_task_does_not_wander(cluster: Cluster) -> None:
    cluster.pass_s(305, {"node-1": FAILED, "node-2": FAILED})
    (first,) = cluster.lost
    assert first == "node-1"
    cluster.pass_s(2_000, {"node-1": FAILED, "node-2": FAILED, "node-3": FAILED, "node-4": FAILED})
    assert list(cluster.lost) == ["node-1"]
    assert "node-4" not in cluster.nodes


@pytest.mark.parametrize("said", [{"replaced": "id"}, {"lost": (9, 1)}])
def test_a_copy_whose_log_is_another_one_or_was_cut_is_not_made_elsewhere(
    cluster: Cluster, said: Mapping[str, object]
) -> None:
    """A copy without data would not notice that, and answer."""
    failed = {**FAILED, **said}
    cluster.pass_s(700, {"node-1": failed, "node-2": failed})
    assert (cluster.nodes, cluster.lost) == (["node-1", "node-2"], {})


def test_a_loss_is_forgotten_when_the_node_is_started_again(cluster: Cluster) -> None:
    cluster.pass_s(320, {"node-1": WELL, "node-2": FAILED})
    cluster.pass_s(5, {"node-1": WELL, "node-3": SILENT})
    assert list(cluster.lost) == ["node-2"]
    cluster.begin("node-2", 2)
    cluster.pass_s(5, {"node-1": WELL, "node-3": SILENT})
    assert cluster.lost == {}
    # There is no reason to move anything back.
    assert cluster.nodes == ["node-1", "node-3"]


def test_while_the_broker_is_away_nothing_is_lost(cluster: Cluster) -> None:
    cluster.now_s += 3 * AFTER_S
    for node, copy in (("node-3", {}), ("node-1", WELL)):
        cluster.say(node, **copy)
        cluster.step()
    assert cluster.lost == {}
    cluster.pass_s(3, {"node-1": WELL, "node-2": SILENT})
    assert cluster.lost == {}


def test_a_node_that_comes_back_has_time_to_open_its_copies(cluster: Cluster) -> None:
    cluster.live(["node-1", "node-3", "node-4"])
    cluster.pass_s(290, {"node-1": WELL})
    cluster.live(NODES)
    cluster.pass_s(200, {"node-1": WELL})
    assert (cluster.nodes, cluster.lost) == (["node-1", "node-2"], {})


def test_a_unit_that_begins_again_and_again_is_preferred_to_none(cluster: Cluster) -> None:
    assert cluster.plan.copies[NAME][0].copy == COPIES[0]
    for _ in range(2):
        cluster.generations["node-1"] += 1
        cluster.pass_s(60, {"node-1": WELL, "node-2": SILENT})
        assert cluster.plan.copies[NAME][0].copy == COPIES[0]
    cluster.generations["node-1"] += 1
    cluster.pass_s(3, {"node-1": WELL, "node-2": SILENT})
    assert [each.copy for each in cluster.plan.copies[NAME]] == [COPIES[1], COPIES[0]]
    # It is forgiven after ten minutes, and what answers stays where it is.
    cluster.pass_s(650, {"node-1": SILENT, "node-2": WELL})
    view = cluster.observed.view({NAME: False}, cluster.plan, cluster.now_s)
    assert not any(each.node.unsteady for each in view.nodes)
    assert cluster.plan.copies[NAME][0].copy == COPIES[1]


def test_a_copy_of_a_node_that_comes_and_goes_is_lost_in_the_end(cluster: Cluster) -> None:
    others = [node for node in NODES if node != "node-2"]
    for incarnation in range(2, 20):
        cluster.live(others)
        cluster.pass_s(30, {"node-1": WELL})
        cluster.begin("node-2", incarnation)
        cluster.live(NODES)
        # It begins anew each time, and gets no nearer.
        cluster.pass_s(90, {"node-1": WELL, "node-2": BEHIND})
        if cluster.lost:
            break
    assert 3 * AFTER_S <= cluster.now_s < 4 * AFTER_S
    assert [*cluster.lost] == ["node-2"]
    assert {copy.node for copy in cluster.plan.target[NAME]} == {"node-1", "node-3"}


def test_an_empty_disk_under_its_old_name_begins_anew(cluster: Cluster) -> None:
    cluster.pass_s(
        3, {"node-1": WELL, "node-2": {**SILENT, "position": 5_000, "end": 5_000, "folder_id": "a"}}
    )
    for position in range(1, 13):
        again = {**BEHIND, "position": position, "folder_id": "b"}
        cluster.pass_s(100, {"node-1": WELL, "node-2": again})
    assert (cluster.nodes, cluster.lost) == (["node-1", "node-2"], {})
    # A folder that gets no further is lost as any other one.
    cluster.pass_s(302, {"node-1": WELL, "node-2": again})
    assert list(cluster.lost) == ["node-2"]


def test_what_a_copy_without_a_folder_reached_before_counts(cluster: Cluster) -> None:
    cluster.pass_s(3, {"node-1": WELL, "node-2": {**SILENT, "position": 5_000, "folder_id": "a"}})
    for position in range(1, 6):
        cluster.pass_s(100, {"node-1": WELL, "node-2": {**BEHIND, "position": position}})
    assert list(cluster.lost) == ["node-2"]


def _fetching(donor: str, fetched: int = 0, total: int = 1_000) -> dict[str, object]:
    return {**BEHIND, "position": 0, "fetching": Fetching(donor=donor, fetched=fetched, total=total)}


def test_a_copy_that_fetches_is_not_lost_while_bytes_come(cluster: Cluster) -> None:
    for fetched in range(1, 8):
        cluster.pass_s(200, {"node-1": WELL, "node-2": _fetching("node-1/0", fetched)})
    assert (cluster.nodes, cluster.lost) == (["node-1", "node-2"], {})
    # From another donor, and from another snapshot of that one, it begins anew.
    cluster.pass_s(50, {"node-1": WELL, "node-2": _fetching("node-3/0")})
    for fetched in range(1, 7):
        cluster.pass_s(200, {"node-1": WELL, "node-2": _fetching("node-3/0", fetched)})
    cluster.pass_s(50, {"node-1": WELL, "node-2": _fetching("node-3/0", 0, 2_000)})
    for fetched in range(1, 6):
        cluster.pass_s(200, {"node-1": WELL, "node-2": _fetching("node-3/0", fetched, 2_000)})
    assert (cluster.nodes, cluster.lost) == (["node-1", "node-2"], {})
    cluster.pass_s(302, {"node-1": WELL, "node-2": _fetching("node-3/0", 5, 2_000)})
    assert list(cluster.lost) == ["node-2"]


def test_a_copy_is_not_lost_while_its_data_is_hashed_before_bytes_come(cluster: Cluster) -> None:
    def hashed(size: int) -> dict[str, object]:
        return {**BEHIND, "position": 0, "fetching": Fetching(donor="node-1/0", hashed=size)}

    for size in range(1, 8):
        cluster.pass_s(200, {"node-1": WELL, "node-2": hashed(size)})
    assert (cluster.nodes, cluster.lost) == (["node-1", "node-2"], {})
    # What moves then is less than what was hashed.
    cluster.pass_s(50, {"node-1": WELL, "node-2": _fetching("node-1/0")})
    for fetched in range(1, 4):
        cluster.pass_s(200, {"node-1": WELL, "node-2": _fetching("node-1/0", fetched)})
    assert (cluster.nodes, cluster.lost) == (["node-1", "node-2"], {})
    cluster.pass_s(302, {"node-1": WELL, "node-2": hashed(5)})
    assert list(cluster.lost) == ["node-2"]


def test_one_that_tries_donors_in_vain_is_lost(cluster: Cluster) -> None:
    for number in range(310):
        cluster.pass_s(1, {"node-1": WELL, "node-2": _fetching(f"node-{1 + number % 4}/0", 7)})
    assert list(cluster.lost) == ["node-2"]


def test_a_copy_has_its_time_from_when_the_plan_names_the_folder_that_its_node_has(cluster: Cluster) -> None:
    cluster.observed.policy = replace(cluster.observed.policy, moves_limit=0)
    cluster.live(NODES[:2])
    cluster.begin("node-2", 2, "another")
    # No move is free.
    cluster.pass_s(700, {"node-1": WELL})
    assert (cluster.plan.copies[NAME][1].folder, cluster.lost) == ("node-2", {})
    cluster.observed.policy = replace(cluster.observed.policy, moves_limit=1)
    cluster.pass_s(1, {"node-1": WELL})
    cluster.live(NODES)
    cluster.pass_s(295, {"node-1": WELL})
    assert (cluster.plan.copies[NAME][1].folder, cluster.lost) == ("another", {})
    cluster.pass_s(10, {"node-1": WELL})
    assert list(cluster.lost) == ["node-2"]


def test_a_copy_in_a_folder_that_its_node_does_not_have_waits_for_a_move() -> None:
    planned = PlannedCopy(COPIES[1], "a")
    for folder, lost in (("a", ["node-2"]), ("b", [])):
        losses = Losses({"node-2": 1}, {"node-2": folder}, {"node-2"}, {"node-3"}, AFTER_S)
        found = losses.find((planned,), {}, (), lambda copy: 2 * AFTER_S, lambda copy: False)
        assert list(found) == lost


OTHER = NAME._replace(partition=1)


def test_one_that_waits_for_its_turn_is_not_lost_while_another_of_its_node_fetches(cluster: Cluster) -> None:
    waits = _fetching("", total=0)
    cluster.plan = replace(
        cluster.plan,
        copies=dict.fromkeys((NAME, OTHER), cluster.plan.copies[NAME]),
        target={NAME: COPIES[:2], OTHER: COPIES[:2]},
    )

    def pass_s(seconds: int, of_other: Mapping[str, object], own: Mapping[str, object] = waits) -> None:
        of_nodes = {"node-1": (WELL, WELL), "node-2": (own, of_other)}
        for _ in range(seconds):
            cluster.now_s += 1
            for node in NODES:
                copies = [
                    status(**{**of_copy, "partition": partition})
                    for partition, of_copy in enumerate(of_nodes.get(node, ()))
                ]
                made = report(*copies, node=node)
                cluster.observed.take_report(encode_report(made), cluster.now_s)
            view = cluster.observed.view({NAME: False, OTHER: False}, cluster.plan, cluster.now_s)
            cluster.plan = next_plan(cluster.plan, view)

    for fetched in range(10):
        pass_s(100, _fetching("node-1/0", fetched))
    assert cluster.lost == {}
    # Its turn has come. It has as long as any other one until the first bytes are here.
    pass_s(190, SILENT, _fetching("node-1/0"))
    assert cluster.lost == {}
    pass_s(1, SILENT, _fetching("node-1/0", 1))
    for fetched in range(10, 13):
        pass_s(100, _fetching("node-1/0", fetched))
    # Nothing is fetched any more, and it still waits.
    pass_s(195, SILENT)
    assert cluster.lost == {}
    pass_s(10, SILENT)
    assert list(cluster.lost) == ["node-2"]
