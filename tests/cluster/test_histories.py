"""A copy of a task with history is not placed where it cannot be made, and it is said where that is and what to do."""

from collections.abc import Sequence

import pytest

from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyName, CopyState
from railgun.cluster.observed import ObservedCluster
from railgun.cluster.overview import overview
from railgun.cluster.plan import Plan, PlannedCopy
from railgun.cluster.policy import ClusterPolicy
from railgun.cluster.records import DiskCopy, DrainOrder, NodeRecord
from railgun.cluster.reports import encode_report
from railgun.cluster.steps import next_plan
from railgun.cluster.what_if import what_if
from tests.cluster.some_reports import TASK, report, status

NAME = TaskKey(*TASK.values())  # type: ignore[arg-type]
NODES = ("node-1", "node-2", "node-3")
AFTER_S = 300.0
LACKS = (
    "1 task of s (s/k/0) cannot have a copy on {}: history h lies before the log, and backfill/s in that data "
    "folder lacks it or a part of it; mount or copy it there"
)
NOWHERE = (
    "no node that lives has history h in backfill/s of its data folder: a copy of a task of s that loses its data "
    "cannot be made again; put the folder back"
)


class Cluster:
    """Three nodes with a unit each; the first two have the copies of one task, which has history."""

    def __init__(self) -> None:
        self.observed = ObservedCluster(ClusterPolicy(copies=2, replace_after_s=AFTER_S), 0.0)
        self.observed.histories = {(NAME.stream, NAME.created): "h"}
        self.now_s = 0.0
        for number, node in enumerate(NODES):
            self.begin(node, ["h"] if number < 2 else [], has_data=number < 2)
        copies = [CopyName(node, 0) for node in NODES[:2]]
        self.plan = Plan(
            1,
            {NAME: tuple(PlannedCopy(copy, copy.node) for copy in copies)},
            {NAME: tuple(copies)},
            policy=ClusterPolicy(copies=2),
        )
        self.states = {"node-1": CopyState.ANSWERING, "node-2": CopyState.SILENT}
        self.live(NODES)
        self.pass_s(2)

    def begin(
        self,
        node: str,
        histories: Sequence[str] | None,
        *,
        has_data: bool,
        folder: str = "",
        transfer: str = "",
    ) -> None:
        self.observed.take_statement(
            NodeRecord(
                name=node,
                folder=folder or node,
                incarnation=1,
                host="h",
                units=1,
                release="0",
                disk=[DiskCopy(**NAME._asdict(), size_bytes=100)] if has_data else [],
                histories=None if histories is None else list(histories),
                transfer=transfer,
            ),
            self.now_s,
        )

    def live(self, nodes: Sequence[str]) -> None:
        self.observed.take_members(nodes, self.now_s)

    def pass_s(self, seconds: int) -> None:
        """Every node that lives reports in each second, and the leader plans."""
        for _ in range(seconds):
            self.now_s += 1
            for node in self.observed.members:
                state = self.states.get(node)
                copies = (
                    [] if state is None else [status(state=state, position=9, replied=9, end=9, checkpoint=9)]
                )
                self.observed.take_report(encode_report(report(*copies, node=node)), self.now_s)
            self.plan = next_plan(self.plan, self.observed.view({NAME: False}, self.plan, self.now_s))

    @property
    def nodes(self) -> list[str]:
        return sorted(each.copy.node for each in self.plan.copies[NAME])

    @property
    def warnings(self) -> list[str]:
        shown = overview(self.observed, self.plan, "node-1", [NAME], self.now_s)
        return [each for each in shown["warnings"] if "history" in each]


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def test_a_copy_is_made_where_the_history_is_once_it_is_there(cluster: Cluster) -> None:
    assert cluster.warnings == [LACKS.format("node-3")]
    cluster.live(["node-1", "node-3"])
    del cluster.states["node-2"]
    cluster.pass_s(400)
    assert cluster.nodes == ["node-1"]
    assert cluster.warnings == [LACKS.format("node-3")]
    cluster.begin("node-3", ["h"], has_data=False)
    cluster.pass_s(3)
    assert "node-3" in cluster.nodes
    assert cluster.warnings == []


def test_a_node_that_comes_back_with_its_data_needs_nothing_more(cluster: Cluster) -> None:
    cluster.live(["node-1", "node-3"])
    cluster.pass_s(400)
    cluster.begin("node-2", [], has_data=True)
    cluster.live(NODES)
    cluster.pass_s(3)
    assert cluster.nodes == ["node-1", "node-2"]


def test_a_copy_is_not_lost_that_no_other_node_could_make(cluster: Cluster) -> None:
    cluster.states["node-2"] = CopyState.FAILED
    cluster.pass_s(700)
    assert (cluster.nodes, cluster.plan.lost) == (["node-1", "node-2"], {})
    cluster.begin("node-3", ["h"], has_data=False)
    cluster.pass_s(3)
    assert list(cluster.plan.lost[NAME]) == ["node-2"]
    assert "node-3" in cluster.nodes


def test_a_node_that_lost_its_folder_gets_its_copy_only_with_the_history(cluster: Cluster) -> None:
    cluster.begin("node-2", [], has_data=False, folder="another")
    del cluster.states["node-2"]
    cluster.pass_s(5)
    assert cluster.nodes == ["node-1"]
    assert cluster.warnings == [LACKS.format("node-2, node-3")]
    cluster.begin("node-2", ["h"], has_data=False, folder="another")
    cluster.pass_s(2)
    assert cluster.nodes == ["node-1", "node-2"]


def test_the_only_copy_stays_in_the_plan_though_its_data_is_gone(cluster: Cluster) -> None:
    for node in NODES:
        cluster.begin(node, [], has_data=False, folder="another")
    cluster.states.clear()
    cluster.pass_s(400)
    assert [each.folder for each in cluster.plan.copies[NAME]] == ["node-1", "node-2"]
    assert cluster.warnings == [LACKS.format("node-1, node-2, node-3"), NOWHERE]
    cluster.begin("node-3", ["h"], has_data=False, folder="another")
    cluster.pass_s(3)
    assert "node-3" in cluster.nodes


def test_a_node_is_not_emptied_of_what_nobody_else_can_have(cluster: Cluster) -> None:
    cluster.observed.take_statement(DrainOrder(node="node-2", asked_ms=1, is_on=True), cluster.now_s)
    cluster.pass_s(20)
    assert cluster.plan.is_drained("node-2")
    assert cluster.nodes == ["node-1", "node-2"]
    shown = overview(cluster.observed, cluster.plan, "node-1", [NAME], cluster.now_s)
    assert shown["nodes"][1]["waits"] == ["s/k/0: no node is left for another copy"]
    assert LACKS.format("node-3") in shown["warnings"]


def test_what_a_node_of_an_earlier_release_has_is_not_known(cluster: Cluster) -> None:
    cluster.begin("node-3", None, has_data=False)
    assert cluster.warnings == []
    cluster.live(["node-1", "node-3"])
    del cluster.states["node-2"]
    cluster.pass_s(400)
    assert "node-3" in cluster.nodes


def test_data_without_anything_to_make_it_again_is_told(cluster: Cluster) -> None:
    for node in NODES:
        cluster.begin(node, [], has_data=True)
    assert cluster.warnings == [NOWHERE]


def test_what_a_change_could_not_make_is_named(cluster: Cluster) -> None:
    def found(change: str) -> tuple[list[str], list[str]]:
        view = cluster.observed.view({NAME: False}, cluster.plan, cluster.now_s, 2)
        would = what_if(change, cluster.plan, view, {(NAME, "node-1"): 100})
        return [each["node"] for each in would["made"]], list(would["not_made"])

    assert found("remove=node-2") == (
        [],
        [
            "1 task would have fewer than 2 copies: there would be 2 nodes for them",
            LACKS.format("node-3"),
        ],
    )
    assert found("remove=node-3") == ([], [])
    taken = "new nodes are taken to have the history of s in backfill of their data folders"
    assert found("add=1") == ([], [LACKS.format("node-3"), taken])
    assert found("copies=3") == (
        [],
        [
            "1 task would have fewer than 3 copies: there would be 3 nodes for them",
            LACKS.format("node-3"),
        ],
    )


def test_a_node_that_can_fetch_from_another_copy_needs_no_history(cluster: Cluster) -> None:
    cluster.begin("node-1", ["h"], has_data=True, transfer="node-1:7000")
    cluster.live(["node-1", "node-3"])
    del cluster.states["node-2"]
    assert cluster.warnings == []
    # A copy that has not caught up gives nothing, and one that is not heard neither.
    cluster.states["node-1"] = CopyState.BEHIND
    cluster.pass_s(2)
    assert cluster.warnings == [LACKS.format("node-3")]
    del cluster.states["node-1"]
    cluster.pass_s(10)
    assert cluster.warnings == [LACKS.format("node-3")]
    cluster.states["node-1"] = CopyState.ANSWERING
    cluster.pass_s(400)
    assert "node-3" in cluster.nodes
    # Once the plan names it, it is no more taken back if the donor goes.
    cluster.live(["node-3"])
    cluster.pass_s(10)
    assert "node-3" in cluster.nodes


def test_a_history_that_no_node_has_is_not_missed_while_two_nodes_serve_the_data(cluster: Cluster) -> None:
    for node in NODES:
        cluster.begin(node, [], has_data=True, transfer=f"{node}:7000")
    assert cluster.warnings == []
    cluster.begin("node-2", [], has_data=True)
    assert cluster.warnings == [NOWHERE]


def test_new_nodes_need_no_history_where_others_serve_the_data(cluster: Cluster) -> None:
    cluster.begin("node-1", ["h"], has_data=True, transfer="node-1:7000")
    view = cluster.observed.view({NAME: False}, cluster.plan, cluster.now_s, 2)
    donors = {NAME: cluster.observed.donors(NAME, cluster.now_s)}
    assert what_if("add=1", cluster.plan, view, {}, donors)["not_made"] == []
    assert what_if("add=1", cluster.plan, view, {})["not_made"] != []
