"""Units that say nothing though their nodes live."""

from typing import Any

from railgun.cli.cluster import as_text
from railgun.cluster.copies import CopyName
from railgun.cluster.overview import overview
from railgun.cluster.reports import UnitReport, encode_report
from railgun.cluster.silence import STARTS_S, UNANSWERED_S
from tests.cluster.test_lately import ONE, OTHER, A, B, C, Cluster

MINUTE, SILENT = round(STARTS_S), round(UNANSWERED_S)
HANGS = (
    "a node kills a unit that hangs after cluster.hung_after_s, and starts it again; if that does not help, see the "
    "log of the node"
)


def shown(cluster: Cluster) -> dict[str, Any]:
    return overview(cluster.observed, cluster.plan, "node-a", [ONE, OTHER], cluster.now_s)


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
