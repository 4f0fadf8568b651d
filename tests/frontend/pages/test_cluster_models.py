"""The models of the cluster's routes have all that is known of copies: FastAPI leaves out what a model lacks."""

from typing import Any

from msgspec import structs

from frontend.pages.cluster.models import Cluster, Consequences
from railgun.cluster.copies import CopyState
from railgun.cluster.lately import Lately
from railgun.cluster.observed import ObservedCluster
from railgun.cluster.overview import overview
from railgun.cluster.plan import Plan, PlannedCopy
from railgun.cluster.policy import ClusterPolicy
from railgun.cluster.records import EndedUnit, NodeRecord
from railgun.cluster.reports import Fetching, encode_report
from railgun.cluster.what_if import what_if
from tests.cluster.some_reports import report, status
from tests.cluster.test_fetches import HERE, NAME, THERE

_COPIES = {NAME: (HERE, THERE)}
_PLAN = Plan(
    1,
    {NAME: (PlannedCopy(HERE, "n1"), PlannedCopy(THERE, "n2"))},
    _COPIES,
    policy=ClusterPolicy(copies=2),
)


def _observed() -> ObservedCluster:
    """A copy that fetches on n1, and one that answers on n2; and a node without copies."""
    observed = ObservedCluster(ClusterPolicy(copies=2), 0.0)
    for name in ("n1", "n2", "n3"):
        observed.take_statement(
            NodeRecord(
                name=name, folder=name, incarnation=1, host="h", units=1, release="1", transfer=f"{name}:7000"
            ),
            0.0,
        )
    observed.take_members(["n1", "n2", "n3"], 0.0)
    fetching = Fetching(donor="n2/0", fetched=1, total=2)
    fetches = status(state=CopyState.BEHIND, position=0, end=9, fetching=fetching)
    answers = status(state=CopyState.ANSWERING, position=9, end=9, checkpoint=4)
    for node, copy in (("n1", fetches), ("n2", answers)):
        observed.take_report(encode_report(report(copy, node=node)), 9.0)
    return observed


def _lately() -> dict[str, Any]:
    """What a front-end notes where a node goes away."""
    observed, lately = _observed(), Lately(0, 0.0)
    lately.look(observed, _PLAN, 9.0, 9_000)
    observed.take_members(["n1", "n2"], 10.0)
    lately.look(observed, _PLAN, 10.0, 10_000)
    shown = lately.shown(10.0)
    assert [each["text"] for each in shown["entries"]] == ["n3 is gone"]
    return shown


def test_a_cluster() -> None:
    observed = _observed()
    ended = EndedUnit(unit=0, times=2, last_ms=5, error="no space")
    observed.take_statement(structs.replace(observed.nodes["n1"], ended=[ended]), 9.0)
    away = report(status(state=CopyState.CLOSED), node="n2")
    observed.take_report(encode_report(structs.replace(away, said_ms=9_000)), 9.0)
    observed.take_members(["n1", "n3"], 9.0)
    shown = overview(observed, _PLAN, "n1", [NAME], 10.0)
    assert shown["tasks"][0]["copies"][0]["fetching"]
    assert (
        shown["nodes"][0]["ended"][0]["text"]
        == "unit 0 of n1 ended 2 times in the last 10 minutes; last: no space"
    )
    assert shown["nodes"][1]["heard_ms"] == 9_000
    # The front-end adds these.
    shown["tasks"][0]["log"] = None
    shown["lately"] = _lately()
    assert Cluster.model_validate(shown).model_dump(exclude_unset=True) == shown


def test_a_node_whose_units_go_on() -> None:
    observed = _observed()
    observed.take_members(["n1", "n3"], 9.0)
    shown = overview(observed, _PLAN, "n1", [NAME], 10.0)
    assert shown["nodes"][1]["units_go_on"]
    # The front-end adds these.
    shown["tasks"][0]["log"] = None
    shown["lately"] = _lately()
    assert Cluster.model_validate(shown).model_dump(exclude_unset=True) == shown


def test_the_consequences_of_a_change() -> None:
    observed = _observed()
    view, donors = observed.view({NAME: False}, _PLAN, 10.0), {NAME: observed.donors(NAME, 10.0)}
    shown = what_if("copies=3", _PLAN, view, {}, donors)
    assert [(each["source"], each["donors"]) for each in shown["made"]] == [("copies", ["n2/0"])]
    assert Consequences.model_validate(shown).model_dump(exclude_unset=True) == shown
