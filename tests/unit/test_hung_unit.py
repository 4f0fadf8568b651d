"""A real unit under the supervisor of its node: its disk does not answer, or the broker does not."""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from railgun.broker.local import LocalBroker
from railgun.node.supervisor import Supervisor
from tests.broker.own_topics import own_prefix
from tests.broker.quick_broker import unheard
from tests.halting import halted
from tests.oracle.compare import differences
from tests.oracle.stream import Oracle
from tests.unit.cluster_player import ClusterPlayer
from tests.unit.fixed_plan import write_plan
from tests.unit.local_units import awaited
from tests.unit.processes import DEFINITIONS, event, write_config

_HUNG_AFTER_S = 6.0


@contextmanager
def supervised(folder: Path, config: Path, *command: str) -> Iterator[Supervisor]:
    """A node of one unit, which has all tasks and is ready, without a leader. command: of the unit."""
    data = folder / "data"
    write_plan([(config, data)])
    place = ["--node-folder", str(data), "--index", "0", "--units", "1", "--config", str(config)]
    node = Supervisor(data, [[sys.executable, "-m", *command, *place]], hung_after_s=_HUNG_AFTER_S)
    stopped = threading.Event()
    supervision = threading.Thread(target=node.run, args=[stopped])
    supervision.start()
    try:
        awaited(lambda: node.waits_for is None)
        yield node
    finally:
        stopped.set()
        supervision.join()


def send(player: ClusterPlayer, first: int, count: int) -> int:
    for number in range(first, first + count):
        player.score(event(number))
    player.flush()
    return first + count


def check(player: ClusterPlayer, sent: int) -> None:
    """Every reply to the events so far is the oracle's."""
    model, got = Oracle(DEFINITIONS).streams["s"], player.replies()
    assert len(got) == sent
    for number, reply in enumerate(got):
        found = differences(model.score(event(number)), reply)
        assert not found, f"event {number}: {found}"


@pytest.mark.timeout(600)
@pytest.mark.parametrize("times", [1, pytest.param(10, marks=pytest.mark.torture)])
def test_a_unit_whose_disk_does_not_answer_is_started_again(kafka: str, tmp_path: Path, times: int) -> None:
    prefix, stuck = own_prefix("p"), tmp_path / "stuck"
    config = write_config(tmp_path, kafka, prefix)
    player, sent = ClusterPlayer(kafka, prefix), 0
    try:
        player.apply(DEFINITIONS)
        with supervised(tmp_path, config, "tests.unit.stuck_unit", str(stuck)) as node:
            for number in range(times):
                sent = send(player, sent, 40)
                player.front_end.await_all()
                stuck.touch()
                sent = send(player, sent, 40)
                awaited(lambda: "unit 0 has said nothing for " in str(node.waits_for))
                awaited(lambda number=number: node.units[0].starts == number + 2)  # type: ignore[misc]
                stuck.unlink()
                sent = send(player, sent, 40)
                player.front_end.await_all()
                awaited(lambda: node.waits_for is None)
            check(player, sent)
    finally:
        player.close()


@pytest.mark.timeout(400)
@pytest.mark.torture
@pytest.mark.parametrize("kind", ["halted", "killed"])
def test_a_unit_that_waits_for_the_broker_is_not_killed(
    broker: LocalBroker, tmp_path: Path, kind: str
) -> None:
    status = broker.start(0, unheard)
    prefix = own_prefix("p")
    config = write_config(tmp_path, status.address, prefix)
    player = ClusterPlayer(status.address, prefix)
    try:
        player.apply(DEFINITIONS)
        with supervised(tmp_path, config, "railgun.unit") as node:
            send(player, 0, 3_000)
            awaited(lambda: player.front_end.collect() or len(player.front_end.answers) > 0)
            pid = node.units[0].pid
            until_s = time.monotonic() + 3 * _HUNG_AFTER_S
            if kind == "killed":
                os.kill(status.pid, signal.SIGKILL)
            with halted([status.pid] if kind == "halted" else []):
                while time.monotonic() < until_s:
                    assert node.units[0].hang is None
                    time.sleep(0.05)
            assert node.units[0].pid == pid
            if kind == "halted":
                player.front_end.await_all(120.0)
                check(player, 3_000)
    finally:
        player.close()
