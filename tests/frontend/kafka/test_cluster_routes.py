"""A cluster over HTTP and by commands: what is shown, what a change would move, nodes that are emptied.

The nodes have no units, so that their copies never report; `tests/unit/test_unit_process.py` empties real ones.
"""

import logging
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from frontend.kafka import cluster_watch, followed_plan
from frontend.kafka.configuration import FrontEndConfiguration
from frontend.kafka.deadlines import DEADLINES
from railgun.cli.main import main
from railgun.cluster.copies import CopyState
from railgun.cluster.reports import CopyStatus, encode_report, unit_key
from railgun.messaging.kafka import membership
from tests.cluster.some_reports import report
from tests.frontend.kafka.cluster import RunningFrontEnd, front_end
from tests.node.leader.leading_nodes import Nodes
from tests.unit.local_units import awaited, quick_settings

PLACE = "/v1/cluster"


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broker of the tests may be slow, and is not away."""
    monkeypatch.setattr(membership, "_REACHED_S", 30.0)


@pytest.fixture
def nodes(kafka: str) -> Iterator[Nodes]:
    with Nodes(kafka) as opened:
        yield opened


@pytest.fixture
def running(kafka: str, nodes: Nodes) -> Iterator[RunningFrontEnd]:
    deadlines = replace(DEADLINES, silent_s=1.0)
    with front_end(FrontEndConfiguration(quick_settings(kafka), nodes.prefix, deadlines=deadlines)) as opened:
        yield opened


def _shown(running: RunningFrontEnd) -> dict[str, Any]:
    response = running.client.get(PLACE)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


def _states(running: RunningFrontEnd) -> dict[str, str]:
    return {node["name"]: node["state"] for node in _shown(running)["nodes"]}


def _detail(response: Any, status: int) -> str:
    assert response.status_code == status, response.text
    return str(response.json()["detail"])


def test_who_changed_what(running: RunningFrontEnd) -> None:
    response = running.client.post("/v1/streams", json={"name": "made", "fields": {"a": "string"}})
    assert response.status_code == 201, response.text
    newest, *before = running.client.get("/v1/log").json()["changes"]
    keys = ("who", "from", "kind", "stream", "what")
    assert tuple(newest[key] for key in keys) == (
        None,
        "127.0.0.1",
        "stream",
        "made",
        "created with 1 field",
    )
    # The test's own program made the stream that the nodes have.
    assert {each["from"] for each in before} == {None}


def test_a_plan_that_is_not_read_is_no_broker_that_is_away(
    nodes: Nodes, running: RunningFrontEnd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread that reads it may lag, or have ended. The broker answers all the same."""
    monkeypatch.setattr(followed_plan, "_PLAN_S", 0.5)
    assert "the plan was not read" not in "".join(_shown(running)["warnings"])
    parts = running.backend.running.parts
    assert parts is not None
    parts.task_states.close()
    nodes.start(1)
    awaited(lambda: nodes.places() == {frozenset({"node-1"})})
    (warning, *_) = _shown(running)["warnings"]
    assert warning.startswith(
        "the plan was not read within 0.5 s, see the log of this front-end: nodes and plan are as they were "
    )
    detail = _detail(running.client.get(f"{PLACE}/plan?what_if=add=1"), 503)
    assert "the plan was not read within 0.5 s. See the log of this front-end" in detail
    assert "broker" not in detail


def test_nodes_are_shown_and_emptied(
    nodes: Nodes,
    running: RunningFrontEnd,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    assert _shown(running)["nodes"] == []
    assert "no node has led" in _detail(running.client.get(f"{PLACE}/plan?what_if=add=1"), 503)
    nodes.start(1)
    nodes.start(2)
    awaited(lambda: nodes.places() == {frozenset({"node-1", "node-2"})})
    awaited(lambda: _states(running) == {"node-1": "live", "node-2": "live"})
    shown = _shown(running)
    assert (shown["copies"], shown["moves"]) == (2, 0)
    assert shown["leader"] in ("node-1", "node-2"), "whichever came first"
    assert [node["copies"] for node in shown["nodes"]] == [4, 4]
    assert [(copy["state"], copy["planned"]) for task in shown["tasks"] for copy in task["copies"]] == 8 * [
        (None, True)
    ]

    url = ["--url", running.service.url]
    assert main(["cluster", "--tasks", *url]) == 0
    said = capsys.readouterr().out
    assert re.search("2 nodes, 4 units, 4 tasks × 2 copies; leader node-[12]", said)
    assert "0 copies behind, 8 do not report" in said
    # What `/readyz` calls unanswered, and as soon as that does.
    awaited(lambda: running.client.get("/readyz").status_code == 503)
    assert "nobody answers 4 tasks: s/card/0, " in "".join(_shown(running)["warnings"])
    assert main(["cluster", "plan", "--what-if", "remove=node-2", *url]) == 0
    assert "WARNING: 4 tasks would have fewer than 2 copies" in capsys.readouterr().out
    assert main(["cluster", "plan", *url]) == 2

    # Of two nodes with two copies none is emptied unless that is said, and nothing stays of the order.
    assert main(["drain", "node-2", *url]) == 1
    assert "1 node would be left for 2 copies" in capsys.readouterr().err
    awaited(lambda: not nodes.running[1].plan.drains)
    assert _states(running)["node-2"] == "live"
    assert main(["drain", "node-2", "--fewer-copies", "--no-wait", *url]) == 0
    assert "node-2 is draining: 4 copies left" in capsys.readouterr().out
    awaited(lambda: _states(running) == {"node-1": "live", "node-2": "draining"})
    # A copy has to report before another one goes.
    awaited(lambda: any("does not report yet" in each for each in _shown(running)["nodes"][1]["waits"]))
    assert main(["undrain", "node-2", *url]) == 0
    assert capsys.readouterr().out == "node-2 is used again: live\n"
    # The one that was refused is not among them.
    lines = [each for each in caplog.records if each.name == "railgun.audit"]
    assert [each.getMessage() for each in lines] == [
        "drain of node-2 with fewer copies",
        "undrain of node-2",
    ]
    assert [each.__dict__["fields"] for each in lines] == 2 * [{"who": None, "client": "127.0.0.1"}]
    assert main(["undrain", "node-2", *url]) == 0
    assert capsys.readouterr().out == "node-2 was not drained: nothing is changed; it is live\n"

    # Without a leader the order stands, and the next one follows it.
    nodes.stop(1)
    nodes.stop(2)
    assert "no node leads" in _detail(
        running.post(f"{PLACE}/nodes/node-1/drain", {"fewer_copies": True}), 503
    )
    lines = [each.getMessage() for each in caplog.records if each.name == "railgun.audit"]
    assert lines[-1] == "drain of node-1 with fewer copies"
    assert _states(running) == {"node-1": "away", "node-2": "away"}
    assert _shown(running)["warnings"][0].startswith("no node runs, so nobody answers")
    nodes.start(2)
    awaited(lambda: nodes.running[2].plan.is_drained("node-1"))
    # The order is to a node that is away: that does not hide it, nor has it to be stopped.
    awaited(lambda: _states(running)["node-1"] in ("draining", "drained"))
    assert not _shown(running)["nodes"][0]["alive"]


def test_what_happens_is_noted_though_nobody_looks(
    kafka: str, nodes: Nodes, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cluster_watch, "_EVERY_S", 0.1)
    before_ms = time.time_ns() // 1_000_000
    with front_end(FrontEndConfiguration(quick_settings(kafka), nodes.prefix)) as running:
        parts = running.backend.running.parts
        assert parts is not None

        def noted() -> list[str]:
            # What was noted is looked at, and nothing is asked for it.
            return [each["text"] for each in parts.cluster_state._lately.shown(0.0)["entries"]]

        awaited(lambda: parts.cluster_state._lately.has_looked)
        nodes.start(1)
        awaited(lambda: noted() == ["node-1 is new"])
        nodes.stop(1)
        awaited(lambda: noted() == ["node-1 is gone", "node-1 is new"])
        lately = _shown(running)["lately"]
        assert before_ms <= lately["since_ms"] <= lately["entries"][-1]["at_ms"]
        assert [(each["kind"], each["times"]) for each in lately["entries"]] == [
            ("node_gone", 1),
            ("node_new", 1),
        ]
        assert main(["cluster", "--url", running.service.url]) == 0
        assert re.search(
            r"\nlately, as the server has noted since 20\S+Z:\n  20\S+Z node-1 is gone\n  20\S+Z node-1 is new\n",
            capsys.readouterr().out,
        )


def test_what_cannot_be_asked_is_refused(nodes: Nodes, running: RunningFrontEnd) -> None:
    nodes.start(1)
    awaited(lambda: bool(nodes.places()))
    awaited(lambda: _states(running) == {"node-1": "live"})
    assert "did you mean node-1?" in _detail(running.post(f"{PLACE}/nodes/node-2/drain"), 404)
    assert "did you mean node-1?" in _detail(running.post(f"{PLACE}/nodes/nod-1/undrain"), 404)
    assert "no other node" in _detail(
        running.post(f"{PLACE}/nodes/node-1/drain", {"fewer_copies": True}), 409
    )
    assert "true or false" in _detail(running.post(f"{PLACE}/nodes/node-1/drain", {"fewer_copies": 1}), 422)
    assert "fewer_copy" in _detail(running.post(f"{PLACE}/nodes/node-1/drain", {"fewer_copy": True}), 422)
    assert "takes none" in _detail(running.client.get(f"{PLACE}?tasks=1"), 422)
    for change, why in (
        ("", "remove=NODE, add=NUMBER or copies=NUMBER"),
        ("remove=node-7", "there are: node-1"),
        ("add=0", "a whole number from 1 to 1,000"),
        ("copies=x", "a whole number from 1 to 100"),
        ("add=99999999999999999999", "a whole number"),
    ):
        assert why in _detail(running.client.get(f"{PLACE}/plan", params={"what_if": change}), 422)
    assert "takes what_if" in _detail(running.client.get(f"{PLACE}/plan?what_if=add=1&more=1"), 422)


def test_a_loss_that_no_copy_has_found_is_not_accepted(
    nodes: Nodes, running: RunningFrontEnd, capsys: pytest.CaptureFixture[str]
) -> None:
    """`tests/failover/test_lost_records.py` loses real ones."""
    nodes.start(1)
    awaited(lambda: bool(nodes.places()))
    awaited(lambda: _states(running) == {"node-1": "live"})
    task = {"stream": "s", "partitioner": "card", "partition": 0}
    for said, status, why in (
        (task, 409, "there is nothing to accept"),
        ({**task, "stream": "t"}, 404, "no task t/card/0"),
        ({**task, "partitioner": "car"}, 404, "no task s/car/0"),
        ({**task, "partition": 99}, 404, "no task s/card/99"),
        ({**task, "partition": -1}, 422, "partition"),
        ({**task, "partition": "0"}, 422, "partition"),
        ({"stream": "s"}, 422, "partitioner"),
        ({**task, "records": 1}, 422, "records"),
    ):
        assert why in _detail(running.post(f"{PLACE}/accept-cut", said), status), said
        if "records" not in said:
            gap = "there is no gap to accept" if status == 409 else why
            assert gap in _detail(running.post(f"{PLACE}/accept-gap", said), status), said
    gap = _detail(running.post(f"{PLACE}/accept-gap", {**task, "first": 5}), 422)
    assert "offset" in gap
    url = ["--url", running.service.url]
    assert main(["cluster", "accept-gap", "s/card/0", *url]) == 2
    assert "there is no gap to accept" in capsys.readouterr().err
    assert main(["cluster", "accept-gap", "s/card", *url]) == 2
    assert main(["cluster", "--yes", *url]) == 2
    assert "--yes belongs to railgun cluster accept-cut and accept-gap" in capsys.readouterr().err
    assert main(["cluster", "accept-cut", "s/card/0", "--from", "node-1", *url]) == 2
    assert "--from belongs to railgun cluster accept-gap" in capsys.readouterr().err
    assert main(["cluster", "accept-cut", "s/card/0", "--yes", *url]) == 2
    assert "there is nothing to accept" in capsys.readouterr().err
    assert main(["cluster", "plan", "s/card/0", "--what-if", "add=1", *url]) == 2
    assert "only accept-cut and accept-gap take the name of a task" in capsys.readouterr().err
    for wrong in ([], ["s/card"], ["s/card/x"]):
        assert main(["cluster", "accept-cut", *wrong, *url]) == 2
        assert "STREAM/PARTITIONER/PARTITION" in capsys.readouterr().err


def test_a_task_does_not_begin_anew_while_an_earlier_release_runs(
    nodes: Nodes, running: RunningFrontEnd
) -> None:
    """It would read the new topic on with the state of the old one. These nodes do not say what they read."""
    nodes.start(1)
    awaited(lambda: _states(running) == {"node-1": "live"})
    task = next(iter(nodes.player.registry.snapshot().catalog.task_keys))
    where = nodes.player.registry.topics.positions
    for replaced, status, why in (
        ("another id", 409, "this order is not known to the release of node-1: upgrade or stop"),
        (None, 409, "there is nothing to accept"),
    ):
        of_copy = CopyStatus(
            **task._asdict(), state=CopyState.FAILED, position=1, replied=1, end=1, replaced=replaced
        )
        said = report(of_copy, number=1 if replaced else 2)
        nodes.write(where, unit_key("node-1", 0), encode_report(said))
        order = {key: value for key, value in task._asdict().items() if key != "created"}
        awaited(lambda: why in running.post(f"{PLACE}/accept-cut", order).json()["detail"])  # noqa: B023
        assert running.post(f"{PLACE}/accept-cut", order).status_code == status
