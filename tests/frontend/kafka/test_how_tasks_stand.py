"""What a front-end says of tasks that no unit runs any more: not that they run, and how much waits for them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from frontend.kafka import positions
from tests.frontend.conftest import PAYMENTS
from tests.frontend.door.test_input_topic import define
from tests.frontend.kafka.cluster import LocalCluster, RunningFrontEnd
from tests.frontend.serving import until

EVENTS = "/v1/streams/payments/events"
Event = Callable[..., dict[str, Any]]


def _cluster(served: RunningFrontEnd) -> tuple[dict[str, int], int, int]:
    """Tasks by state, nodes, records that wait."""
    said = served.client.get("/v1/status").json()["cluster"]
    return said["tasks"], len(said["nodes"]), said["lag"]


@pytest.mark.parametrize(("is_killed", "state"), [(False, "stopped"), (True, "unknown")])
def test_of_units_that_are_gone(
    kafka: str, tmp_path: Path, event: Event, monkeypatch: pytest.MonkeyPatch, is_killed: bool, state: str
) -> None:
    # Units say how they stand every 5 s at the least.
    monkeypatch.setattr(positions, "_SILENT_S", 7.0)
    with LocalCluster(kafka, tmp_path) as cluster:
        define(cluster, PAYMENTS)
        cluster.start_units(1)
        served = cluster.serve()
        served.score("payments", event())
        until(lambda: set(_cluster(served)[0]) == {"running"} and _cluster(served)[2] == 0)
        tasks = _cluster(served)[0]["running"]
        cluster.stop_units(checkpoint=not is_killed)
        until(lambda: _cluster(served)[0] == {state: tasks})
        assert served.post(f"{EVENTS}?reply=none", [event() for _ in range(3)]).status_code == 202
        until(lambda: _cluster(served)[1:] == (0, 3 * len({"card", "*"})))
        later = cluster.serve()
        assert _cluster(later)[0] in ({state: tasks}, {"unknown": tasks})
        assert _cluster(later)[1] == 0
        cluster.start_units(1)
        until(lambda: _cluster(served) == ({"running": tasks}, 1, 0))
