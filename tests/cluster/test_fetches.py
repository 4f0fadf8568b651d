"""What is shown of copies that fetch their data from other nodes, and where the data of new copies would come from."""

from typing import Any

import msgspec
import pytest

from railgun.catalog.task_key import TaskKey
from railgun.cli.cluster import as_text, consequences_as_text
from railgun.cli.status import as_text as status_text
from railgun.cluster.copies import CopyName, CopyState, Cut
from railgun.cluster.health import cluster_health
from railgun.cluster.inventory import ClusterNode
from railgun.cluster.log_room import LogRoom
from railgun.cluster.observed import ObservedCluster
from railgun.cluster.overview import node_overview, overview, shown_copy
from railgun.cluster.plan import Drain, Plan, PlannedCopy
from railgun.cluster.policy import ClusterPolicy
from railgun.cluster.records import READS, NodeRecord, decode_statement, encode_statement
from railgun.cluster.reports import Fetching, decode_report, encode_report
from railgun.cluster.view import ClusterView, NodeView, TaskView
from railgun.cluster.what_if import what_if
from tests.cluster.some_reports import TASK, report, status

NAME = TaskKey(*TASK.values())  # type: ignore[arg-type]
HERE, THERE, ELSEWHERE = (CopyName(f"n{number}", 0) for number in (1, 2, 3))
PLAN = Plan(
    1,
    {NAME: (PlannedCopy(HERE, "n1"), PlannedCopy(THERE, "n2"))},
    {NAME: (HERE, THERE)},
    policy=ClusterPolicy(copies=2),
)
KEY = "5ec4e7"
PART = Fetching(donor="n2/0", fetched=840_000_000, total=2_100_000_000)


def _observed(fetching: Fetching | None, silent: str = "") -> ObservedCluster:
    """Three nodes: a copy on n1 that is behind, and one on n2 that answers. silent: the node that serves nothing."""
    observed = ObservedCluster(ClusterPolicy(copies=2), 0.0)
    for name in ("n1", "n2", "n3"):
        transfer = "" if name == silent else f"{name}:7000"
        record = NodeRecord(
            name=name,
            folder=name,
            incarnation=1,
            host="h",
            units=1,
            release="1",
            transfer=transfer,
            transfer_key=KEY,
        )
        observed.take_statement(record, 0.0)
    observed.take_members(["n1", "n2", "n3"], 0.0)
    behind = status(state=CopyState.BEHIND, position=0, end=9, fetching=fetching)
    well = status(state=CopyState.ANSWERING, position=9, end=9, checkpoint=4)
    for node, copy in (("n1", behind), ("n2", well)):
        observed.take_report(encode_report(report(copy, node=node)), 9.0)
    return observed


def _cluster(observed: ObservedCluster, plan: Plan = PLAN) -> dict[str, Any]:
    return overview(observed, plan, "n1", [NAME], 10.0)


def _copies_line(fetching: Fetching | None) -> str:
    return as_text(_cluster(_observed(fetching)), with_tasks=True).splitlines()[-1]


def test_a_report_says_how_far_a_fetch_is() -> None:
    copy = status(fetching=PART, folder_id="f")
    assert decode_report(encode_report(report(copy))) == report(copy)
    record = msgspec.json.decode(encode_report(report(status(fetching=Fetching()))))
    assert record["copies"][0]["fetching"] == {}
    assert status(fetching=Fetching()).is_waiting
    assert not status(fetching=PART).is_waiting
    assert not status().is_waiting


@pytest.mark.parametrize(
    ("fetching", "shown"),
    [
        (None, "n1/0 behind by 9, n2/0 answering"),
        (Fetching(), "n1/0 waits to fetch its data, n2/0 answering"),
        (PART, "n1/0 fetching 40 % of 2.1 GB from n2/0, n2/0 answering"),
        (Fetching(donor="n2/0"), "n1/0 fetching from n2/0, n2/0 answering"),
        (
            Fetching(donor="n2/0", hashed=12_000_000_000),
            "n1/0 fetching from n2/0, 12.0 GB hashed, n2/0 answering",
        ),
    ],
)
def test_how_far_the_fetch_of_a_copy_is(fetching: Fetching | None, shown: str) -> None:
    assert _copies_line(fetching) == f"  s/k/0  {shown}"


def test_the_copies_of_a_cluster_say_how_far_they_are() -> None:
    first, other = _cluster(_observed(PART))["tasks"][0]["copies"]
    assert first["fetching"] == {
        "donor": "n2/0",
        "fetched_bytes": 840_000_000,
        "total_bytes": 2_100_000_000,
        "hashed_bytes": 0,
    }
    assert "fetching" not in other
    waits = _cluster(_observed(Fetching()))["tasks"][0]["copies"][0]["fetching"]
    assert waits == {"donor": None, "fetched_bytes": 0, "total_bytes": 0, "hashed_bytes": 0}


def test_a_status_says_how_far_they_are() -> None:
    observed = _observed(PART)
    copies = [shown_copy(each.copy, each) for each in observed.reports.copies(NAME)]
    task = {
        "partitioner": "k",
        "partition": 0,
        "position": 0,
        "checkpoint": 0,
        "lag": 9,
        "state": "recovering",
        "copies": copies,
    }
    cluster = {"nodes": [], "tasks": {}, "pending_events": 0, "pending_oldest_s": 0}

    def row(node: str) -> str:
        tasks = [{**task, "node": node, "unit": 0}]
        stream = {"name": "s", "metrics": [], "tasks": tasks}
        return status_text({"cluster": cluster, "streams": [stream]}).splitlines()[-1]

    assert "fetching 40 % of 2.1 GB from n2/0  0" in row("n1")
    assert row("n2").endswith("n1/0 fetching 40 % of 2.1 GB from n2/0")


def test_copies_that_fetch_and_that_wait_are_counted() -> None:
    for fetching, counts in ((PART, (1, 0)), (Fetching(), (0, 1)), (None, (0, 0))):
        health = cluster_health(_observed(fetching), PLAN, 10.0)
        assert (health.copies_fetching, health.copies_waiting) == counts
    assert cluster_health(_observed(PART), PLAN, 99.0).copies_fetching == 0


def test_a_drain_says_that_a_copy_fetches() -> None:
    plan = Plan(
        1,
        {NAME: (PlannedCopy(THERE, "n2"), PlannedCopy(HERE, "n1"))},
        {NAME: (HERE, ELSEWHERE)},
        drains={"n2": Drain(1)},
        policy=ClusterPolicy(copies=2),
    )
    for fetching, text in ((PART, "fetches its data"), (Fetching(), "waits to fetch its data")):
        node = node_overview(_observed(fetching), plan, "n2", [NAME], 10.0)
        assert node["waits"][0] == f"s/k/0: n1/0 {text}"


def test_nodes_that_serve_no_data_are_named_if_others_live() -> None:
    def named(observed: ObservedCluster, now_s: float = 60.0) -> list[str]:
        shown = overview(observed, PLAN, "n1", [NAME], now_s)
        return [each for each in shown["warnings"] if "to other nodes" in each]

    assert named(_observed(None)) == []
    observed = _observed(None, silent="n3")
    record, other = observed.nodes["n3"], observed.nodes["n2"]
    for why, reason in (
        ({}, "release 1 does not do that yet"),
        (
            {"reads": READS},
            "the process that does that has not said where; the node's log says why",
        ),
        ({"reads": READS, "transfer_reason": "there is no certificate"}, "there is no certificate"),
    ):
        observed.take_statement(msgspec.structs.replace(record, **why), 0.0)
        assert named(observed) == [
            f"n3 serves no data to other nodes, so no copy can be made from theirs: {reason}"
        ]
    # One that has just started has not said yet where it does; that it cannot is told at once.
    started = msgspec.structs.replace(record, incarnation=record.incarnation + 1, reads=READS)
    observed.take_statement(started, 50.0)
    assert named(observed, 109.0) == []
    assert named(observed, 110.0) != []
    observed.take_statement(msgspec.structs.replace(started, transfer_reason="there is no certificate"), 51.0)
    assert named(observed) != []
    observed.take_statement(msgspec.structs.replace(other, transfer=""), 0.0)
    assert [each.split(" ")[0] for each in named(observed)] == ["n2", "n3"]
    reasons = {"transfer": "", "reads": READS, "transfer_reason": "there is no certificate"}
    observed.take_statement(msgspec.structs.replace(other, **reasons), 0.0)
    assert named(observed) == [
        "n2, n3 serve no data to other nodes, so no copy can be made from theirs: there is no certificate"
    ]
    observed.take_statement(other, 0.0)
    observed.take_members(["n1", "n2"], 10.0)
    assert named(observed) == []
    observed.take_members(["n3"], 10.0)
    assert named(observed) == []


def test_the_key_of_a_transfer_is_shown_nowhere() -> None:
    observed = _observed(PART)
    record = observed.nodes["n1"]
    assert decode_statement(encode_statement(record)) == record
    assert record.transfer_key == KEY
    view = observed.view({NAME: False}, PLAN, 10.0)
    for shown in (
        _cluster(observed),
        node_overview(observed, PLAN, "n1", [NAME], 10.0),
        what_if("add=1", PLAN, view, {}),
        view,
        PLAN,
        record,
        observed.nodes,
    ):
        assert KEY not in str(shown)
        assert KEY not in f"{shown!r}"


def test_copies_that_data_comes_from_have_caught_up_on_nodes_that_serve_it() -> None:
    observed = _observed(None)
    silent = status(state=CopyState.SILENT, position=9, end=9, checkpoint=4)
    observed.take_report(encode_report(report(silent, node="n3")), 9.0)
    assert observed.donors(NAME, 10.0) == (ELSEWHERE, THERE)
    observed.take_members(["n1", "n3"], 10.0)
    assert observed.donors(NAME, 10.0) == (ELSEWHERE,)
    assert observed.donors(NAME, 99.0) == ()
    assert _observed(None, silent="n2").donors(NAME, 10.0) == ()


@pytest.mark.parametrize("lacking", [{"checkpoint": 0}, {"leaving": True}])
def test_no_copy_is_made_from_one_that_has_no_checkpoint_or_is_about_to_leave(
    lacking: dict[str, Any],
) -> None:
    observed = _observed(None)
    copy = status(**{"state": CopyState.SILENT, "position": 9, "end": 9, "checkpoint": 4, **lacking})
    observed.take_report(encode_report(report(copy, node="n3")), 9.0)
    assert observed.donors(NAME, 10.0) == (THERE,)


_AFTER_RECORDS = 10


def _log(end: int, start: int = 0) -> LogRoom:
    return LogRoom(start, None, None, None, None, end)


LOG, SHORT = _log(20), _log(20, start=5)


@pytest.mark.parametrize(
    ("lag", "donors", "log", "source"),
    [
        ({"n3": 7}, [HERE], SHORT, {"source": "own folder"}),
        # The log begins behind what the node has, or the node lacks much.
        ({"n3": 16}, [HERE], SHORT, {"source": "copies", "donors": ["n1/0"]}),
        ({"n3": 16}, [], SHORT, {"source": "nothing"}),
        ({"n3": 11}, [HERE], SHORT, {"source": "copies", "donors": ["n1/0"]}),
        ({"n3": 11}, [], SHORT, {"source": "own folder"}),
        # What no copy has processed is no reason to fetch.
        ({"n1": 5, "n3": 15}, [HERE], LOG, {"source": "own folder"}),
        # So it is for a node without data: a short log is read.
        ({"n1": 0}, [HERE, THERE], _log(_AFTER_RECORDS), {"source": "log"}),
        ({"n1": 5, "n2": 0}, [HERE], _log(_AFTER_RECORDS + 5), {"source": "log"}),
        ({"n1": 5, "n2": 0}, [HERE, THERE], LOG, {"source": "copies", "donors": ["n1/0", "n2/0"]}),
        ({}, [HERE], None, {"source": "copies", "donors": ["n1/0"]}),
        ({}, [ELSEWHERE], LOG, {"source": "log"}),
        ({}, [], None, {"source": "log"}),
        ({}, [], SHORT, {"source": "nothing"}),
    ],
)
def test_where_the_data_of_a_new_copy_would_come_from(
    lag: dict[str, int], donors: list[CopyName], log: LogRoom | None, source: dict[str, Any]
) -> None:
    nodes = [NodeView(ClusterNode(f"n{number}", 1), f"n{number}") for number in (1, 2, 3)]
    view = ClusterView(nodes, [TaskView(NAME, lag=lag)], ClusterPolicy(2))
    logs = {} if log is None else {NAME: log}
    (made,) = what_if("copies=3", PLAN, view, {}, {NAME: donors}, logs, _AFTER_RECORDS)["made"]
    assert {key: made[key] for key in source} == source
    assert ("donors" in made) == ("donors" in source)


def test_a_node_may_lack_what_lies_before_a_short_log() -> None:
    nodes = [NodeView(ClusterNode(f"n{number}", 1), f"n{number}") for number in (1, 2, 3)]
    histories = {(NAME.stream, NAME.created): "h"}
    view = ClusterView(nodes, [TaskView(NAME)], ClusterPolicy(2), histories=histories)
    (made,) = what_if("copies=3", PLAN, view, {}, {NAME: [HERE]}, {NAME: _log(5)}, _AFTER_RECORDS)["made"]
    assert made["source"] == "copies"


def test_a_log_that_begins_with_what_was_accepted_is_whole() -> None:
    nodes = [NodeView(ClusterNode(f"n{number}", 1), f"n{number}") for number in (1, 2, 3)]
    view = ClusterView(nodes, [TaskView(NAME)], ClusterPolicy(2), cuts={NAME: Cut(5, 0, "id", 5)})
    (made,) = what_if("copies=3", PLAN, view, {}, logs={NAME: SHORT})["made"]
    assert made["source"] == "log"


def test_the_command_shows_where_data_would_come_from() -> None:
    observed = _observed(None)
    view = observed.view({NAME: False}, PLAN, 10.0, 2)
    found = what_if("copies=3", PLAN, view, {(NAME, "n2"): 1_000}, {NAME: observed.donors(NAME, 10.0)})
    assert consequences_as_text(found, with_tasks=True).splitlines()[-2:] == [
        "  task   made on  about   from",
        "  s/k/0  n3/0     1.0 kB  n2/0",
    ]
    # A server of an earlier release does not say.
    for each in found["made"]:
        del each["source"], each["donors"]
    assert consequences_as_text(found, with_tasks=True).endswith("1.0 kB  ?\n")
