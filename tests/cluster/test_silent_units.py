"""Units that say nothing though their nodes live, and units that go on though their nodes are not in the group."""

from typing import Any

from railgun.cli.cluster import as_text
from railgun.cluster.copies import CopyName, CopyState
from railgun.cluster.overview import overview
from railgun.cluster.records import EndedUnit
from railgun.cluster.reports import UnitReport, encode_report
from railgun.cluster.silence import STARTS_S, UNANSWERED_S
from tests.cluster.test_lately import ONE, OTHER, A, B, C, Cluster

MINUTE, SILENT = round(STARTS_S), round(UNANSWERED_S)
HANGS = (
    "a node kills a unit that hangs after cluster.hung_after_s, and starts it again; if that does not help, see the "
    "log of the node"
)


def shown(cluster: Cluster, leader: str | None = "node-a") -> dict[str, Any]:
    return overview(cluster.observed, cluster.plan, leader, [ONE, OTHER], cluster.now_s)


def warned(cluster: Cluster) -> list[str]:
    return [each for each in shown(cluster)["warnings"] if "nothing" in each]


def test_a_unit_that_says_nothing_is_warned_of_with_what_helps() -> None:
    cluster = Cluster()
    cluster.looks(MINUTE)
    assert (warned(cluster), shown(cluster)["unheard"]) == ([], 0)
    cluster.silent.add(B)
    cluster.looks(SILENT)
    assert (warned(cluster), shown(cluster)["unheard"]) == ([], 2)
    cluster.look()
    assert warned(cluster) == [
        f"1 unit says nothing: unit 0 of node-b, last heard 1970-01-01T00:17:41Z; {HANGS}"
    ]
    for task in shown(cluster)["tasks"]:
        assert "a copy of it does not report" in task["wrong"]
    # The node lives, and is not well.
    assert "  node-b  live, 2 do not report  " in as_text(shown(cluster))
    cluster.silent.add(C)
    cluster.looks(SILENT + 1)
    assert warned(cluster)[0].startswith("2 units say nothing: unit 0 of node-b, last heard ")
    cluster.silent.clear()
    cluster.look()
    assert warned(cluster) == []


def test_a_node_that_is_away_or_starts_is_not_said_to_have_silent_units() -> None:
    cluster = Cluster()
    cluster.silent.add(B)
    cluster.looks(MINUTE - 1)
    assert warned(cluster) == []
    cluster.look()
    assert len(warned(cluster)) == 1
    cluster.live("ac")
    assert warned(cluster) == []
    assert "do not report  " not in as_text(shown(cluster))
    cluster.live("abc")
    cluster.looks(MINUTE)
    assert warned(cluster) == []
    cluster.look()
    assert len(warned(cluster)) == 1
    # Started again, it may compile kernels for minutes until its units speak.
    cluster.says("node-b", 2)
    cluster.looks(3 * MINUTE)
    assert warned(cluster) == []
    begun = UnitReport(node="node-b", unit=0, generation=2, interval_ms=200, copies=[])
    cluster.observed.take_report(encode_report(begun), cluster.now_s)
    cluster.looks(SILENT + 1)
    assert warned(cluster) == [f"1 unit says nothing: unit 0 of node-b; {HANGS}"]


def test_while_nobody_is_heard_and_just_after_nobody_is_said_to_be_silent() -> None:
    cluster = Cluster()
    cluster.looks(MINUTE)
    cluster.silent |= {A, B, C}
    cluster.looks(MINUTE)
    assert warned(cluster) == []
    # The broker is back, and not all have reached it yet.
    cluster.silent -= {A, C}
    cluster.looks(SILENT)
    assert warned(cluster) == []
    cluster.looks(2)
    assert len(warned(cluster)) == 1


def test_a_unit_that_its_node_says_has_ended_does_not_hang() -> None:
    cluster = Cluster()
    cluster.looks(MINUTE)
    cluster.silent.add(B)
    cluster.says("node-b", 1, EndedUnit(unit=0, times=1, last_ms=cluster.now_ms, error="the disk is full"))
    cluster.looks(SILENT + 1)
    assert warned(cluster) == []
    # It is started again, speaks, and hangs then.
    cluster.silent.clear()
    cluster.look()
    cluster.silent.add(B)
    cluster.looks(SILENT + 1)
    assert len(warned(cluster)) == 1


def test_a_unit_that_reports_seldom_is_not_silent_for_long() -> None:
    """Where there are very many units, each reports less often, and says so."""
    cluster = Cluster()
    cluster.looks(MINUTE)
    seldom = UnitReport(node="node-b", unit=1, generation=1, interval_ms=10_000, copies=[])
    cluster.observed.take_report(encode_report(seldom), cluster.now_s)
    assert cluster.observed.reports.last(CopyName("node-b", 1)) is not None
    cluster.looks(50)
    assert warned(cluster) == []
    cluster.look()
    assert len(warned(cluster)) == 1


def of_members(cluster: Cluster, leader: str | None = "node-a") -> list[str]:
    words = ("node runs", "no node", "away", "group", "wanted")
    return [each for each in shown(cluster, leader)["warnings"] if any(word in each for word in words)]


def test_a_node_whose_units_go_on_without_it_is_not_called_away() -> None:
    cluster = Cluster()
    cluster.live("ac")
    cluster.look()
    after = "5 min after it went (cluster.replace_after_s) its copies can be made on other nodes"
    assert of_members(cluster) == [
        f"1 node is not in the group of nodes, and its units go on: node-b; see its log: {after}"
    ]
    node = shown(cluster)["nodes"][1]
    assert (node["state"], node["alive"], node["units_go_on"]) == ("away", False, True)
    assert "  node-b  away, units go on  " in as_text(shown(cluster))
    # One that is stopped in order leaves the group first.
    for task in (ONE, OTHER):
        cluster.has(B, task, CopyState.CLOSED)
    cluster.look()
    (away,) = of_members(cluster)
    assert away.startswith("1 node is away: node-b, last heard ")
    assert "units_go_on" not in shown(cluster)["nodes"][1]


def test_a_node_whose_units_go_on_is_none_that_can_have_its_own_copies() -> None:
    cluster = Cluster()
    cluster.live("a")
    cluster.look()
    (apart,) = of_members(cluster)
    assert apart.endswith("node-b; see its log: no other node can have its copies")


def test_where_no_node_is_in_the_group_and_units_go_on_somebody_answers() -> None:
    cluster = Cluster()
    cluster.live("")
    cluster.look()
    assert of_members(cluster, None) == [
        "no node leads: nothing is moved, and no copies are made",
        "2 nodes are not in the group of nodes, and their units go on: node-a, node-b; see their log",
    ]
    cluster.silent |= {A, B, C}
    cluster.looks(6)
    assert of_members(cluster, None) == [
        "no node runs, so nobody answers; start the nodes: events that come until then count once they run"
    ]
