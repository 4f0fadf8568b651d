"""A copy that has failed keeps its node from being ready, as long as a copy on another node could answer."""

import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyName, CopyState
from railgun.cluster.reports import UnitReport, encode_report
from railgun.messaging.transport import Fetched, TopicPartition
from railgun.node.supervisor import Supervisor
from railgun.unit.clock import Clock
from railgun.unit.copies import UnitCopies
from railgun.unit.report_reader import Heard
from railgun.wire.records import Records
from tests.cluster.some_reports import TASK, report, status
from tests.unit.local_units import awaited

KEY = TaskKey(*TASK.values())  # type: ignore[arg-type]
NAME = CopyName("node-1", 0)


class Copies:
    """The copies of a unit that hears what the test says, and itself."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self._heard: list[Heard] = []
        self.of_unit = UnitCopies(NAME, 5, self._drain, "assignment", clock=Clock(lambda: self.now_s))

    def _drain(self) -> Sequence[Heard]:
        heard, self._heard = self._heard, []
        return heard

    def hear_itself(self) -> None:
        number = self.of_unit.write(0.2)
        self.hear(report(node=NAME.node, unit=NAME.unit, generation=5, number=number))

    def hear(self, said: UnitReport) -> None:
        records = Records.of([encode_report(said)])
        fetched = Fetched(TopicPartition("positions", 0), records.offsets[:1], records, 1)
        self._heard.append(Heard(self.now_s, [fetched]))
        self.of_unit.decide([])

    def could_another_node_answer(self) -> bool:
        return self.of_unit.could_another_node_answer(KEY)


@pytest.fixture
def copies() -> Copies:
    return Copies()


def test_before_all_is_heard_another_node_may_have_one(copies: Copies) -> None:
    assert copies.could_another_node_answer()
    copies.hear_itself()
    assert not copies.could_another_node_answer()


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (CopyState.ANSWERING, True),
        (CopyState.SILENT, True),
        (CopyState.BEHIND, False),
        (CopyState.FAILED, False),
        (CopyState.CLOSED, False),
    ],
)
def test_one_that_has_caught_up_could_answer(copies: Copies, state: CopyState, expected: bool) -> None:
    copies.hear_itself()
    copies.hear(report(status(state=state), node="node-2"))
    assert copies.could_another_node_answer() is expected


def test_one_of_this_node_goes_with_it_and_one_that_is_heard_no_more_is_gone(copies: Copies) -> None:
    copies.hear_itself()
    copies.hear(report(status(), node=NAME.node, unit=1))
    assert not copies.could_another_node_answer()
    copies.hear(report(status(), node="node-2"))
    assert copies.could_another_node_answer()
    for _ in range(12):
        copies.now_s += 0.1
        copies.hear_itself()
    assert not copies.could_another_node_answer()


_FAILED = '{"ready": true, "failed_here": ["s/k/1", "s/k/0"]}'
_WELL = '{"ready": true, "failed_here": []}'


def _saying(folder: Path, *lines: str) -> list[str]:
    """The command of a unit that says a line when a file is there, whose name is its number."""
    code = (
        "import pathlib, sys, time\n"
        f"for number, line in enumerate({lines!r}):\n"
        f"    while not pathlib.Path({str(folder)!r}, str(number)).exists(): time.sleep(0.01)\n"
        "    print(line, flush=True)\n"
        "sys.stdin.read()\n"
    )
    return [sys.executable, "-c", code]


def test_a_node_says_what_it_lacks_and_then_that_it_is_ready(tmp_path: Path) -> None:
    go = tmp_path / "go"
    go.mkdir()
    said: list[str] = []
    supervised = Supervisor(tmp_path / "data", [_saying(go, _FAILED, _WELL, _FAILED)])
    stopped = threading.Event()
    supervision = threading.Thread(
        target=supervised.run,
        args=[stopped, lambda: said.append("ready"), 0.01],
        kwargs={"on_shortfall": said.append},
    )
    assert supervised.waits_for == "starting: units are starting"
    supervision.start()
    try:
        (go / "0").touch()
        awaited(lambda: len(said) == 1)
        assert said == ["not ready: s/k/0, s/k/1: failed here, and another node has a copy that could answer"]
        assert supervised.waits_for == said[0]
        (go / "1").touch()
        awaited(lambda: len(said) == 2)
        assert said[1] == "ready"
        assert supervised.waits_for is None
        # That is for whoever asks: it was said that the node is ready.
        (go / "2").touch()
        awaited(lambda: supervised.shortfall is not None)
        assert len(said) == 2
    finally:
        stopped.set()
        supervision.join()


def test_very_many_are_not_all_named() -> None:
    node = SimpleNamespace(units=[SimpleNamespace(failed_here=[f"s/k/{number}"]) for number in range(9)])
    said = Supervisor.shortfall.fget(cast(Supervisor, node))  # type: ignore[attr-defined]
    assert said.startswith("not ready: s/k/0, s/k/1, s/k/2, s/k/3, s/k/4 and 4 more: failed")
