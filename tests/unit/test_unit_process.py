"""Units as processes, under load: killed at any moment, asked to stop, left alone by whoever started them."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from railgun.node.child_process import ChildProcess
from railgun.unit.figures import UNIT_STAGES
from tests.broker.own_topics import own_prefix
from tests.oracle.compare import differences
from tests.oracle.stream import Oracle
from tests.proc import children, runs, units
from tests.unit.cluster_player import ClusterPlayer
from tests.unit.fixed_plan import write_plan
from tests.unit.local_units import awaited
from tests.unit.processes import DEFINITIONS, ROOT, event, unit_process, write_config


@pytest.fixture
def prefix() -> str:
    """A cluster of its own on the broker that all tests share."""
    return own_prefix("p")


def check(player: ClusterPlayer, sent: int) -> None:
    """Every reply to the events so far is the oracle's."""
    model = Oracle(DEFINITIONS).streams["s"]
    got = player.replies()
    assert len(got) == sent
    for number, reply in enumerate(got):
        found = differences(model.score(event(number)), reply)
        assert not found, f"event {number}: {found}"


def sent_on(player: ClusterPlayer, first: int, count: int) -> int:
    for number in range(first, first + count):
        player.score(event(number))
    player.flush()
    return first + count


def killed(kafka: str, prefix: str, folder: Path, times: int, seed: int, each: int) -> ClusterPlayer:
    """Play while the only unit is killed again and again; returns the player, all replies checked."""
    chance, sent = random.Random(seed), 0
    config = write_config(folder, kafka, prefix)
    player = ClusterPlayer(kafka, prefix)
    try:
        player.apply(DEFINITIONS)
        for _ in range(times):
            with unit_process(folder / "data", config):
                for _ in range(3):
                    sent = sent_on(player, sent, each)
                    player.front_end.await_all()
                    # What follows is under way when it is killed, at one moment or another.
                    sent = sent_on(player, sent, each)
                    if chance.random() < 0.3:
                        break
                time.sleep(0.02 * chance.random())
        with unit_process(folder / "data", config):
            check(player, sent)
    finally:
        player.close()
    return player


@pytest.mark.timeout(600)
def test_killed_under_load(kafka: str, prefix: str, tmp_path: Path) -> None:
    killed(kafka, prefix, tmp_path, 5, seed=1, each=40)


@pytest.mark.torture
def test_killed_under_load_many_times(kafka: str, prefix: str, tmp_path: Path) -> None:
    killed(kafka, prefix, tmp_path, 200, seed=2, each=10)


@pytest.mark.timeout(300)
def test_asked_to_stop_it_answers_and_checkpoints_everything(kafka: str, prefix: str, tmp_path: Path) -> None:
    config = write_config(tmp_path, kafka, prefix)
    player = ClusterPlayer(kafka, prefix)
    try:
        player.apply(DEFINITIONS)
        with unit_process(tmp_path / "data", config) as process:
            sent = sent_on(player, 0, 200)
            player.front_end.await_all()
            sent = sent_on(player, sent, 300)
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
        player.positions.read()
        stands = player.positions.newest.values()
        assert len(stands) == 4
        for each in stands:
            assert each.status.checkpoint == each.status.replied == each.status.position
        with unit_process(tmp_path / "data", config):
            check(player, sent)
            sent = sent_on(player, sent, 50)
            check(player, sent)
        assert player.front_end.repeats == 0
    finally:
        player.close()


def _node(folder: Path, config: Path, stderr: int = subprocess.DEVNULL) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "railgun", "node", "--units", "2", "--data", str(folder)]
    return subprocess.Popen([*command, "--config", str(config)], stderr=stderr, cwd=ROOT)


def test_a_name_that_another_node_has_is_refused(kafka: str, prefix: str, tmp_path: Path) -> None:
    config = write_config(tmp_path, kafka, prefix, 'node_name = "a"\nsession_timeout_s = "6s"')
    first = _node(tmp_path / "first", config)
    try:
        player = ClusterPlayer(kafka, prefix)
        player.apply(DEFINITIONS)
        check(player, sent_on(player, 0, 30))
        player.close()
        second = _node(tmp_path / "second", config, subprocess.PIPE)
        _, said = second.communicate(timeout=120)
        assert second.returncode == 2
        (line,) = [each for each in said.decode().splitlines() if "is called a" in each]
        assert "cluster.node_name: another node" in line
        assert "give this one a name of its own" in line
    finally:
        first.terminate()
        assert first.wait(90) == 0
    # Nor may a node use its folder with another cluster, which does not have its streams: they would be deleted.
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    config = write_config(elsewhere, kafka, f"{prefix}x", 'node_name = "a"\ndrop_grace_s = "0s"')
    stray = _node(tmp_path / "first", config, subprocess.PIPE)
    _, said = stray.communicate(timeout=120)
    assert stray.returncode == 2
    (line,) = [each for each in said.decode().splitlines() if "of another cluster" in each]
    assert "name the folder of a node of this cluster, or an empty one" in line
    assert list((tmp_path / "first" / "tasks").iterdir())


@pytest.mark.timeout(400)
def test_a_node_starts_its_units_again_and_takes_them_with_it(
    kafka: str, prefix: str, tmp_path: Path
) -> None:
    config = write_config(tmp_path, kafka, prefix)
    player = ClusterPlayer(kafka, prefix)
    node = _node(tmp_path / "data", config)
    of_node: list[int] = []
    try:
        player.apply(DEFINITIONS)
        sent = sent_on(player, 0, 100)
        player.front_end.await_all()
        of_node = units(node.pid)
        assert len(of_node) == 2
        os.kill(of_node[0], signal.SIGKILL)
        sent = sent_on(player, sent, 100)
        check(player, sent)
        of_node = units(node.pid)
        assert len(of_node) == 2
        # Of a node that is killed nothing is left to disturb the next one.
        node.kill()
        node.wait()
        awaited(lambda: not any(map(runs, of_node)))
        node = _node(tmp_path / "data", config)
        sent = sent_on(player, sent, 100)
        check(player, sent)
        of_node = units(node.pid)
        node.terminate()
        assert node.wait(60) == 0
        assert not any(map(runs, of_node))
    finally:
        node.kill()
        node.wait()
        for unit in of_node:
            if runs(unit):
                os.kill(unit, signal.SIGKILL)
        player.close()


@pytest.mark.timeout(400)
def test_two_nodes_have_copies_and_one_goes_on_alone(kafka: str, prefix: str, tmp_path: Path) -> None:
    player = ClusterPlayer(kafka, prefix)
    nodes: dict[str, subprocess.Popen[bytes]] = {}

    def states() -> list[str]:
        player.positions.read()
        return sorted(
            "/".join(sorted(copy.status.state for copy in player.positions.copies(heard.status.task)))
            for heard in player.positions.newest.values()
        )

    def answering() -> set[str]:
        player.positions.read()
        return {heard.copy.node for heard in player.positions.newest.values()}

    def answered_by_b() -> int:
        player.positions.read()
        copies = [
            copy
            for heard in player.positions.newest.values()
            for copy in player.positions.copies(heard.status.task)
        ]
        return sum(copy.copy.node == "b" and copy.status.state == "answering" for copy in copies)

    try:
        player.apply(DEFINITIONS)
        for name in ("a", "b"):
            (tmp_path / name).mkdir()
            config = write_config(tmp_path / name, kafka, prefix, f'node_name = "{name}"')
            nodes[name] = _node(tmp_path / name / "data", config)
        sent = sent_on(player, 0, 90)
        check(player, sent)
        awaited(lambda: states() == ["answering/silent"] * 4)
        # The second one takes its share once it has caught up.
        awaited(lambda: answering() == {"a", "b"})
        # All of one node is gone at once.
        for pid in (nodes["a"].pid, *children(nodes["a"].pid)):
            os.kill(pid, signal.SIGKILL)
        sent = sent_on(player, sent, 90)
        check(player, sent)
        # Before the other says so, what was last heard of both reads as if nothing had happened.
        awaited(lambda: answered_by_b() == 4)
        config = write_config(tmp_path / "a", kafka, prefix, 'node_name = "a"')
        nodes["a"].wait()
        nodes["a"] = _node(tmp_path / "a" / "data", config)
        awaited(lambda: states() == ["answering/silent"] * 4)
        sent = sent_on(player, sent, 90)
        check(player, sent)
    finally:
        for node in nodes.values():
            node.terminate()
        codes = [node.wait(90) for node in nodes.values()]
        player.close()
    assert codes == [0, 0]


def test_what_a_unit_says_of_itself(kafka: str, prefix: str, tmp_path: Path) -> None:
    config = write_config(tmp_path, kafka, prefix)
    place = ["--node-folder", str(tmp_path / "data"), "--index", "0", "--units", "1", "--config", str(config)]
    player = ClusterPlayer(kafka, prefix)
    unit = ChildProcess(0, [sys.executable, "-m", "railgun.unit", *place])
    try:
        player.apply(DEFINITIONS)
        write_plan([(config, tmp_path / "data")])
        unit.watch()
        check(player, sent_on(player, 0, 60))
        awaited(lambda: unit.is_ready)
        player.await_processed()
        awaited(lambda: _figures(unit, "railgun_task_state") == [1.0] * 4)
        records = sum(
            player.transport.end_offset(player.registry.topics.tasks("s", name), partition)
            for name in ("card", "shop")
            for partition in range(2)
        )
        awaited(lambda: sum(_figures(unit, "railgun_task_position")) == records)
        assert sum(_figures(unit, "railgun_unit_records_total")) == records
        assert _figures(unit, "railgun_task_lag_records") == [0.0] * 4
        assert sum(_figures(unit, "railgun_reply_records_total")) > 0
        assert min(_figures(unit, "railgun_unit_stage_seconds_count")) > 0
        assert len(_figures(unit, "railgun_unit_stage_seconds_count")) == len(UNIT_STAGES)
        assert _figures(unit, "railgun_rebalances_total") == [1.0]
    finally:
        unit.ask_to_stop()
        code = unit.end(time.monotonic() + 60)
        player.close()
    assert code == 0


def _figures(unit: ChildProcess, name: str) -> list[float]:
    found = text_string_to_metric_families(unit.metrics(30.0))
    return [sample.value for family in found for sample in family.samples if sample.name == name]
