"""Units wait for a broker that is away. Those that are asked to stop meanwhile end by themselves, in time, and nothing
is lost.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from frontend.kafka import node_beside
from railgun.broker.local import LocalBroker
from railgun.node.ending import DEADLINES, STOP_S, Deadlines, Ending
from tests.broker.faulty_network import FaultyNetwork, NetworkedBroker
from tests.broker.own_topics import own_prefix
from tests.broker.quick_broker import started_again, unheard
from tests.oracle.compare import differences
from tests.oracle.stream import Oracle
from tests.unit.cluster_player import ClusterPlayer
from tests.unit.local_units import awaited
from tests.unit.processes import DEFINITIONS, ROOT, event, unit_process, write_config
from tests.unit.quick_unit import QUICK

_EVENTS = 3_000
_QUICK = "tests.unit.quick_unit"


def cut_off(player: ClusterPlayer, broker_id: int, answered: int) -> None:
    """Kill the broker while so many events are answered, and the others under way, at one stage or another."""
    for number in range(answered):
        player.score(event(number))
    player.flush()
    player.front_end.await_all()
    for number in range(answered, _EVENTS):
        player.score(event(number))
    player.flush()
    os.kill(broker_id, signal.SIGKILL)


def test_the_limits_lie_within_one_another() -> None:
    assert DEADLINES.acknowledged_s + DEADLINES.closed_s < DEADLINES.over_s
    assert DEADLINES.over_s < STOP_S < node_beside._NODE_STOP_S


# By the configuration, what is sent is given up after so long. That is not for units.
_GIVEN_UP_MS = 1_500


@pytest.mark.timeout(400)
def test_a_unit_waits_for_the_broker_longer_than_messages_may_take(tmp_path: Path) -> None:
    network = FaultyNetwork(0, 0)
    broker = NetworkedBroker(tmp_path / "a folder", [network])
    status = broker.start(0, unheard)
    prefix = own_prefix("p")
    config = write_config(tmp_path, network.address, prefix)
    with config.open("a") as file:
        file.write(f"message.timeout.ms = {_GIVEN_UP_MS}\n")
    player = ClusterPlayer(status.address, prefix)
    try:
        player.apply(DEFINITIONS)
        with unit_process(tmp_path / "data", config) as process:
            player.score(event(0))
            player.flush()
            player.front_end.await_all()
            network.refuse()
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(3 * _GIVEN_UP_MS / 1000)
            network.accept()
            player.score(event(1))
            player.flush()
            player.front_end.await_all()
            assert process.poll() is None
    finally:
        player.close()
        broker.stop()
        network.close()


@pytest.mark.timeout(400)
def test_stopped_while_the_broker_is_away_a_unit_ends_by_itself(broker: LocalBroker, tmp_path: Path) -> None:
    status = broker.start(0, unheard)
    prefix = own_prefix("p")
    config = write_config(tmp_path, status.address, prefix)
    player = ClusterPlayer(status.address, prefix)
    try:
        player.apply(DEFINITIONS)
        with unit_process(tmp_path / "data", config, module=_QUICK) as process:
            cut_off(player, status.pid, 300)
            process.send_signal(signal.SIGTERM)
            code = process.wait(STOP_S)
            assert process.stderr is not None
            said = process.stderr.read().decode()
        assert code == 1, said
        assert "unit 0 ends: " in said
        awaited(lambda: broker.status() is None)
        started_again(broker, int(status.address.partition(":")[2]))
        with unit_process(tmp_path / "data", config):
            got = player.replies()
        model = Oracle(DEFINITIONS).streams["s"]
        assert len(got) == _EVENTS
        for number, reply in enumerate(got):
            assert not differences(model.score(event(number)), reply), number
    finally:
        player.close()


@pytest.mark.timeout(400)
def test_a_node_whose_broker_and_parent_are_gone_goes_too(broker: LocalBroker, tmp_path: Path) -> None:
    status = broker.start(0, unheard)
    config = write_config(tmp_path, status.address, own_prefix("p"))
    command = [sys.executable, "-m", "railgun", "node", "--units", "1", "--until-input-ends"]
    node = subprocess.Popen(
        [*command, "--data", str(tmp_path / "data"), "--config", str(config)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=ROOT,
    )
    try:
        assert node.stdin is not None
        assert node.stdout is not None
        assert node.stdout.readline() == b"ready\n"
        os.kill(status.pid, signal.SIGKILL)
        node.stdin.close()
        node.stdout.close()
        node.wait(STOP_S)
    finally:
        node.kill()
        node.wait()


@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    ("module", "deadlines"),
    [(_QUICK, QUICK), pytest.param("railgun.unit", DEADLINES, marks=pytest.mark.real_time)],
)
def test_a_unit_whose_broker_and_node_are_gone_goes_too(
    broker: LocalBroker, tmp_path: Path, module: str, deadlines: Deadlines
) -> None:
    """Nobody is left who would kill it."""
    status = broker.start(0, unheard)
    prefix = own_prefix("p")
    config = write_config(tmp_path, status.address, prefix)
    player = ClusterPlayer(status.address, prefix)
    try:
        player.apply(DEFINITIONS)
        with unit_process(tmp_path / "data", config, module=module) as process:
            cut_off(player, status.pid, 1)
            assert process.stdin is not None
            begun_s = time.monotonic()
            process.stdin.close()
            process.wait(STOP_S)
            assert time.monotonic() - begun_s >= deadlines.acknowledged_s
            process.stdin = None
    finally:
        player.transport.close(0.0)
        player.registry.close()


@pytest.mark.parametrize("ends", [False, True])
def test_what_does_not_come_to_its_end_in_time_is_ended(ends: bool, caplog: pytest.LogCaptureFixture) -> None:
    stopped, left = threading.Event(), list[int]()
    guard = Ending(stopped, "unit 3", 0.2 if not ends else 60.0, left.append)
    time.sleep(0.3)
    assert not left
    stopped.set()
    if ends:
        guard.over()
        time.sleep(0.1)
        assert not left
    else:
        awaited(lambda: bool(left))
        assert left == [1]
        assert "unit 3 ends as it is, 0.2 s after it was asked to" in caplog.text
