"""A broker that goes away under a front-end, and comes back: whoever asks how it is hears of it.

The connections are refused by a network between the two. A broker that really stops may leave a client that never
finds it again (docs/decisions/0017), and the front-end ends, as it should: that is tested in `test_lost_brokers`.
"""

import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from frontend.kafka.configuration import FrontEndConfiguration
from railgun.broker.local import Status
from railgun.catalog.definitions import parse_definitions
from railgun.catalog.stream_reading import stream_to_json
from railgun.cli import server_url
from railgun.cli.main import main
from railgun.client import attempts
from railgun.messaging.kafka.sole_writer import KafkaSoleWriter
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.registry.task_topics import task_logs
from railgun.registry.topics import Topics
from tests.broker.faulty_network import FaultyNetwork, NetworkedBroker
from tests.broker.own_topics import own_prefix
from tests.broker.quick_broker import unheard
from tests.frontend.conftest import PAYMENTS
from tests.frontend.kafka.cluster import RunningFrontEnd, define, front_end
from tests.frontend.serving import until
from tests.halting import halt
from tests.unit.local_units import quick_settings


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[FaultyNetwork, Status]]:
    """The network that leads to one for these tests, each of which is a cluster of its own, and that broker."""
    network = FaultyNetwork(0, 0)
    found = NetworkedBroker(tmp_path_factory.mktemp("broker") / "a folder", [network])
    try:
        yield network, found.start(0, unheard)
    finally:
        found.stop()
        network.close()


@pytest.fixture
def network(broker: tuple[FaultyNetwork, Status]) -> FaultyNetwork:
    return broker[0]


def _cluster(network: FaultyNetwork) -> FrontEndConfiguration:
    return FrontEndConfiguration(quick_settings(network.address), own_prefix("a"))


def test_it_is_not_ready_while_the_broker_is_away(
    network: FaultyNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    with front_end(_cluster(network)) as served:
        assert served.client.get("/v1/cluster").json()["warnings"] == []
        network.refuse()
        until(lambda: served.client.get("/readyz").status_code == 503)
        parts = served.backend.running.parts
        assert parts is not None
        with monkeypatch.context() as patched:
            # A broker that is known to be away is not asked, which would take seconds.
            patched.setattr(parts.cluster_state, "_refresh", pytest.fail)
            (warning,) = served.client.get("/v1/cluster").json()["warnings"]
        assert "the broker does not answer: nodes and plan are as they were" in warning
        reason = served.client.get("/readyz").json()["detail"]
        assert f"waiting for the broker, which is asked again: {network.address}: " in reason
        assert served.client.get("/v1/status").json()["cluster"]["broker_away_s"] > 0.0
        # What can be read without it is read; events are taken, for as long as they may wait.
        assert served.client.get("/v1/streams").status_code == 200
        network.accept()
        until(lambda: served.client.get("/readyz").status_code == 200)
        # The broker answers, and so does whoever asks it for the nodes.
        assert served.client.get("/v1/cluster").json()["warnings"] == []
        assert served.client.get("/v1/status").json()["cluster"]["broker_away_s"] is None


def test_an_order_says_what_it_waits_for_and_ends(
    network: FaultyNetwork, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a change of a stream, which waits for as long."""
    monkeypatch.setattr(server_url, "_ORDER_S", 3.0)
    monkeypatch.setattr(attempts, "_TELL_S", 0.0)
    with front_end(_cluster(network)) as served:
        network.refuse()
        until(lambda: served.client.get("/readyz").status_code == 503)
        task = "payments/card/0"
        for command, more in (
            ("drain", ["a"]),
            ("undrain", ["a"]),
            ("cluster accept-gap", [task]),
            ("cluster accept-cut", [task, "--yes"]),
        ):
            begun_s = time.monotonic()
            assert main([*command.split(), *more, "--url", served.service.url]) == 2, command
            # It was patient for 60 s.
            assert time.monotonic() - begun_s < 30.0
            first, last = capsys.readouterr().err.splitlines()
            assert first.startswith(f"railgun {command}: waiting, up to 3 s: ")
            for line in (first, last):
                assert "nothing was changed: the broker does not answer" in line, line
        network.accept()


def test_events_that_want_no_replies_name_the_partitioners_that_they_are_sent_to(
    network: FaultyNetwork, event: Callable[..., dict[str, Any]]
) -> None:
    with front_end(_cluster(network)) as served:
        define(served.client, PAYMENTS)
        network.refuse()
        events, query = [event(), event(card=None)], {"reply": "none", "timeout_ms": "300"}
        receipt = served.post("/v1/streams/payments/events", events, params=query).json()
        missing = [each["problem"]["partitioners"] for each in receipt["problems"]]
        assert missing == [["card", "*"], ["*"]]
        # It stops at once where the broker is there.
        network.accept()


def _accept(network: FaultyNetwork, served: RunningFrontEnd) -> None:
    """Take connections, and wait until the front-end has one. No unit runs, so that nobody answers the tasks."""
    network.accept()
    until(lambda: "waiting for the broker" not in served.client.get("/readyz").text)


def test_changes_that_a_broker_that_is_away_keeps_waiting_never_take_effect(network: FaultyNetwork) -> None:
    with front_end(_cluster(network)) as served:
        client = served.client
        define(client, PAYMENTS)
        before = client.get("/v1/streams").json()
        network.refuse()
        until(lambda: client.get("/readyz").status_code == 503)
        stream, metrics = "/v1/streams/payments", "/v1/streams/payments/metrics"
        pending = [
            ("POST", metrics, {"sql": "SELECT count(*) AS later FROM payments OVER INFINITE"}),
            ("PATCH", stream, {"lateness": "77s"}),
            ("DELETE", f"{metrics}/everyone", None),
        ]
        with ThreadPoolExecutor(len(pending)) as pool:
            answers = list(pool.map(lambda each: client.request(each[0], each[1], json=each[2]), pending))
        # What is known is told meanwhile; metrics that no task is known to answer are `warming`.
        assert [each["name"] for each in client.get(metrics).json()["metrics"]] == [
            "n7",
            "s7",
            "l7",
            "p7",
            "everyone",
        ]
        assert client.get("/v1/status").status_code == 200
        for answer in answers:
            assert answer.status_code == 503
            assert "retry-after" in answer.headers
            assert answer.headers["content-type"] == "application/problem+json"
            detail = answer.json()["detail"]
            assert detail.startswith("nothing was changed: the broker does not answer. Send it again"), detail
        _accept(network, served)
        # This one comes after those that were left behind.
        evolved = client.patch(stream, json={"lateness": "6s"}).json()
        assert evolved == {**before["streams"][0], "lateness": "6s"}
        assert [each["name"] for each in client.get(metrics).json()["metrics"]] == [
            "n7",
            "s7",
            "l7",
            "p7",
            "everyone",
        ]
        again = [client.request(method, path, json=body).status_code for method, path, body in pending]
        assert again == [201, 200, 204]


def test_a_change_that_was_handed_over_is_finished_by_its_repeat(
    broker: tuple[FaultyNetwork, Status], monkeypatch: pytest.MonkeyPatch
) -> None:
    network, status = broker
    append, halts = KafkaSoleWriter.append, iter([True])

    def halted(self: KafkaSoleWriter, *arguments: Any) -> int:
        if next(halts, False):
            halt(status.pid)
        return append(self, *arguments)

    monkeypatch.setattr(KafkaSoleWriter, "append", halted)
    payments = stream_to_json(parse_definitions(PAYMENTS).streams["payments"])
    cluster = _cluster(network)
    with front_end(cluster) as served:
        # So that the broker is not halted for longer than its session: one that is fenced may be lost for good.
        monkeypatch.setattr(served.backend.running.changes, "_limit_s", 1.0)
        try:
            answer = served.post("/v1/streams", payments)
        finally:
            os.kill(status.pid, signal.SIGCONT)
        assert answer.status_code == 503
        assert "retry-after" in answer.headers
        assert "it may still take effect" in answer.json()["detail"]
        until(lambda: served.client.get("/readyz").status_code == 200)
        until(lambda: served.post("/v1/streams", payments).status_code in (200, 201))
        assert served.post("/v1/streams", payments).status_code == 200
        assert [each["name"] for each in served.client.get("/v1/streams").json()["streams"]] == ["payments"]
        with KafkaTransport(quick_settings(status.address)) as transport:
            for where in task_logs(Topics(cluster.prefix), parse_definitions(PAYMENTS).streams["payments"]):
                assert transport.end_offset(*where) >= 1
