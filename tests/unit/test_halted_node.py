"""Two nodes as processes, of which one stands still for a moment: the other one answers, and goes on for a while."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from railgun.cluster.hearing import Timing
from tests.broker.own_topics import own_prefix
from tests.halting import halted
from tests.proc import children
from tests.unit.cluster_player import ClusterPlayer
from tests.unit.local_units import awaited
from tests.unit.processes import DEFINITIONS, ROOT, write_config
from tests.unit.test_unit_process import check, sent_on

_TASKS = 4


class _Nodes:
    def __init__(self, broker: str, folder: Path) -> None:
        prefix = own_prefix("h")
        self.player = ClusterPlayer(broker, prefix)
        self.player.apply(DEFINITIONS)
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        for name in ("a", "b"):
            (folder / name).mkdir()
            config = write_config(folder / name, broker, prefix, f'node_name = "{name}"')
            self.processes[name] = subprocess.Popen(
                [
                    sys.executable, "-m", "railgun", "node", "--data", str(folder / name / "data"),
                    "--units", "1", "--config", str(config),
                ],
                cwd=ROOT,
            )  # fmt: skip

    def answering(self) -> list[str]:
        """The nodes that answer, one for each task that one copy answers while the other is silent."""
        self.player.positions.read()
        found = []
        for heard in self.player.positions.newest.values():
            copies = list(self.player.positions.copies(heard.status.task))
            if sorted(copy.status.state for copy in copies) == ["answering", "silent"]:
                found += [copy.copy.node for copy in copies if copy.status.state == "answering"]
        return sorted(found)

    def end(self) -> list[int]:
        for process in self.processes.values():
            process.terminate()
        codes = [process.wait(90) for process in self.processes.values()]
        self.player.close()
        return codes


@pytest.mark.timeout(300)
def test_it_takes_its_tasks_back_after_a_while(kafka: str, tmp_path: Path) -> None:
    nodes = _Nodes(kafka, tmp_path)
    try:
        awaited(lambda: set(nodes.answering()) == {"a", "b"} and len(nodes.answering()) == _TASKS)
        before = nodes.answering()
        sent = sent_on(nodes.player, 0, 60)
        process = nodes.processes["a"]
        with halted([process.pid, *children(process.pid)]):
            sent = sent_on(nodes.player, sent, 60)
            check(nodes.player, sent)
        awaited(lambda: nodes.answering() == ["b"] * _TASKS)
        passed_s = time.monotonic()
        sent = sent_on(nodes.player, sent, 60)
        while time.monotonic() - passed_s < Timing().back_s / 2:
            assert "a" not in nodes.answering()
            time.sleep(0.05)
        awaited(lambda: nodes.answering() == before)
        check(nodes.player, sent_on(nodes.player, sent, 60))
    finally:
        codes = nodes.end()
    assert codes == [0, 0]
