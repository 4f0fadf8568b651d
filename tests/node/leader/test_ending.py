"""The end of a node's part in the group of nodes."""

import json
import signal
import subprocess
from pathlib import Path

import pytest

from tests.broker.faulty_network import FaultyNetwork, NetworkedBroker
from tests.broker.own_topics import own_prefix
from tests.broker.quick_broker import unheard
from tests.forked import Forked
from tests.unit.processes import write_config


@pytest.mark.timeout(200)
def test_while_the_broker_is_away_it_does_not_keep_its_node_from_ending(tmp_path: Path) -> None:
    network = FaultyNetwork(0, 0)
    broker = NetworkedBroker(tmp_path / "broker", [network])
    broker.start(0, unheard)
    config = write_config(tmp_path, network.address, own_prefix("e"))
    place = ["--node-folder", str(tmp_path / "data"), "--units", "1", "--release", "0", "--began-ms", "1"]
    (tmp_path / "data").mkdir()
    process = Forked(
        "railgun.node.leader",
        [*place, "--config", str(config)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        next(line for line in process.stdout if json.loads(line).get("leads"))
        network.cut()
        process.send_signal(signal.SIGTERM)
        assert process.wait(60.0) == 0
        assert b"the leader's process ends as it is, 5 s after it was asked to" in process.stderr.read()
    finally:
        process.kill()
        process.communicate()
        network.mend()
        broker.stop()
        network.close()
