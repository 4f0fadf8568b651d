"""Units as processes, under load: killed at any moment, asked to stop, left alone by whoever started them."""

import os
import random
import signal
import subprocess
import sys
import time
import uuid
from contextlib import ExitStack
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from railgun.unit.figures import UNIT_STAGES
from railgun.unit.supervisor import UnitProcess
from tests.oracle.compare import differences
from tests.oracle.stream import Oracle
from tests.proc import children, runs
from tests.unit.cluster_player import ClusterPlayer
from tests.unit.local_units import awaited
from tests.unit.processes import DEFINITIONS, ROOT, event, unit_process, write_config


@pytest.fixture
def prefix() -> str:
    """A cluster of its own on the broker that all tests share."""
    return f"p{uuid.uuid4().hex[:12]}"


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


def _node(folder: Path, config: Path) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "railgun", "node", "--units", "2", "--data", str(folder)]
    return subprocess.Popen([*command, "--config", str(config)], stderr=subprocess.DEVNULL, cwd=ROOT)


@pytest.mark.timeout(400)
def test_a_node_starts_its_units_again_and_takes_them_with_it(
    kafka: str, prefix: str, tmp_path: Path
) -> None:
    config = write_config(tmp_path, kafka, prefix)
    player = ClusterPlayer(kafka, prefix)
    node = _node(tmp_path / "data", config)
    units: list[int] = []
    try:
        player.apply(DEFINITIONS)
        sent = sent_on(player, 0, 100)
        player.front_end.await_all()
        units = children(node.pid)
        assert len(units) == 2
        os.kill(units[0], signal.SIGKILL)
        sent = sent_on(player, sent, 100)
        check(player, sent)
        units = children(node.pid)
        assert len(units) == 2
        # Of a node that is killed nothing is left to disturb the next one.
        node.kill()
        node.wait()
        awaited(lambda: not any(map(runs, units)))
        node = _node(tmp_path / "data", config)
        sent = sent_on(player, sent, 100)
        check(player, sent)
        units = children(node.pid)
        node.terminate()
        assert node.wait(60) == 0
        assert not any(map(runs, units))
    finally:
        node.kill()
        node.wait()
        for unit in units:
            if runs(unit):
                os.kill(unit, signal.SIGKILL)
        player.close()


def test_two_nodes_share_the_tasks(kafka: str, prefix: str, tmp_path: Path) -> None:
    player = ClusterPlayer(kafka, prefix)
    try:
        player.apply(DEFINITIONS)
        with ExitStack() as stack:
            for index in range(2):
                folder = tmp_path / str(index)
                folder.mkdir()
                nodes = f"node_index = {index}\nnode_count = 2\nunits = 1"
                config = write_config(folder, kafka, prefix, nodes)
                stack.enter_context(unit_process(folder / "data", config))
            check(player, sent_on(player, 0, 90))
            player.await_processed()
        shares = [
            {
                str(place.relative_to(tmp_path / str(index)))
                for place in (tmp_path / str(index)).glob("data/tasks/*/*/*")
            }
            for index in range(2)
        ]
        assert [len(share) for share in shares] == [2, 2]
        assert not shares[0] & shares[1]
        names = {heard.copy.node for heard in player.positions.newest.values()}
        assert len(names) == 2
    finally:
        player.close()


def test_what_a_unit_says_of_itself(kafka: str, prefix: str, tmp_path: Path) -> None:
    config = write_config(tmp_path, kafka, prefix)
    place = ["--node-folder", str(tmp_path / "data"), "--index", "0", "--units", "1", "--config", str(config)]
    player = ClusterPlayer(kafka, prefix)
    unit = UnitProcess(0, [sys.executable, "-m", "railgun.unit", *place])
    try:
        player.apply(DEFINITIONS)
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


def _figures(unit: UnitProcess, name: str) -> list[float]:
    found = text_string_to_metric_families(unit.metrics(30.0))
    return [sample.value for family in found for sample in family.samples if sample.name == name]
