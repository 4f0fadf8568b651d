"""The broker of nodes that are processes is stopped and started, killed, and halted: every event is answered, once, and
rightly, the copies have equal data, and events are answered again within 30 s.
"""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from railgun.broker.local import LocalBroker
from tests.broker.quick_broker import started_again, unheard
from tests.failover.running_cluster import RunningCluster
from tests.halting import halt
from tests.unit.local_units import awaited

_TIMES, _HALTED_S = 5, 30.0


def _restarted(broker: LocalBroker, port: int) -> None:
    broker.stop()
    started_again(broker, port)


def _killed(broker: LocalBroker, port: int) -> None:
    os.kill(_pid(broker), signal.SIGKILL)
    awaited(lambda: broker.status() is None)
    started_again(broker, port)


def _halted(broker: LocalBroker, port: int) -> None:
    pid = _pid(broker)
    halt(pid)
    time.sleep(_HALTED_S)
    os.kill(pid, signal.SIGCONT)


def _pid(broker: LocalBroker) -> int:
    status = broker.status()
    assert status is not None
    return status.pid


@pytest.mark.torture
@pytest.mark.parametrize("outage", [_restarted, _killed, _halted])
def test_the_broker_goes_and_comes_back(
    broker: LocalBroker, tmp_path: Path, outage: Callable[[LocalBroker, int], None]
) -> None:
    """Nobody sends events while it is away: of those before, some have not been answered yet."""
    status = broker.start(0, unheard)
    port = int(status.address.partition(":")[2])
    cluster = RunningCluster(status.address, tmp_path, 1, 2)
    try:
        for _ in range(_TIMES):
            cluster.drive(2.0)
            outage(broker, port)
            cluster.await_healed()
        cluster.drive(5.0)
        cluster.await_answers()
        cluster.check_replies()
        cluster.check_quiet(5.0)
        cluster.check_copies()
    finally:
        cluster.close()
