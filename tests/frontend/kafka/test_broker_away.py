"""A broker that goes away under a front-end, and comes back: whoever asks how it is hears of it."""

import os
import signal
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from frontend.kafka.backend import Cluster
from railgun.broker.local import LocalBroker
from railgun.catalog.definitions import parse_definitions
from railgun.catalog.stream_reading import stream_to_json
from railgun.messaging.kafka.sole_writer import KafkaSoleWriter
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.registry.topics import Topics
from tests.broker.quick_broker import quick_broker, running, unheard
from tests.frontend.conftest import PAYMENTS
from tests.frontend.kafka.cluster import RunningFrontEnd, define, front_end
from tests.frontend.serving import until
from tests.halting import halt
from tests.unit.local_units import quick_settings


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBroker]:
    """One for these tests, each of which is a cluster of its own and leaves it running."""
    found = quick_broker(tmp_path_factory.mktemp("broker") / "a folder")
    try:
        yield found
    finally:
        found.stop()


def _cluster(address: str) -> Cluster:
    return Cluster(quick_settings(address), f"a{uuid.uuid4().hex[:12]}")


def test_it_is_not_ready_while_the_broker_is_away(broker: LocalBroker) -> None:
    status = running(broker)
    with front_end(_cluster(status.address)) as served:
        assert served.client.get("/v1/cluster").json()["warnings"] == []
        broker.stop()
        until(lambda: served.client.get("/readyz").status_code == 503)
        (warning,) = served.client.get("/v1/cluster").json()["warnings"]
        assert "the broker does not answer: nodes and plan are as they were" in warning
        reason = served.client.get("/readyz").json()["detail"]
        assert f"waiting for the broker, which is asked again: {status.address}: " in reason
        # What can be read without it is read; events are taken, for as long as they may wait.
        assert served.client.get("/v1/streams").status_code == 200
        broker.start(int(status.address.partition(":")[2]), unheard)
        until(lambda: served.client.get("/readyz").status_code == 200)


def test_events_that_want_no_replies_name_the_partitioners_that_they_are_sent_to(
    broker: LocalBroker, event: Callable[..., dict[str, Any]]
) -> None:
    status = running(broker)
    with front_end(_cluster(status.address)) as served:
        define(served.client, PAYMENTS)
        broker.stop()
        events, query = [event(), event(card=None)], {"reply": "none", "timeout_ms": "300"}
        receipt = served.post("/v1/streams/payments/events", events, params=query).json()
        missing = [each["problem"]["partitioners"] for each in receipt["problems"]]
        assert missing == [["card", "*"], ["*"]]
        # It stops at once where the broker is there.
        broker.start(int(status.address.partition(":")[2]), unheard)


def _restarted(broker: LocalBroker, address: str, served: RunningFrontEnd) -> None:
    """Start the broker, and wait until the front-end has it. No unit runs, so that nobody answers the tasks."""
    broker.start(int(address.partition(":")[2]), unheard)
    until(lambda: "waiting for the broker" not in served.client.get("/readyz").text)


def test_changes_that_a_broker_that_is_away_keeps_waiting_never_take_effect(broker: LocalBroker) -> None:
    status = running(broker)
    with front_end(_cluster(status.address)) as served:
        client = served.client
        define(client, PAYMENTS)
        before = client.get("/v1/streams").json()
        broker.stop()
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
        _restarted(broker, status.address, served)
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
    broker: LocalBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    status = running(broker)
    append, halts = KafkaSoleWriter.append, iter([True])

    def halted(self: KafkaSoleWriter, *arguments: Any) -> int:
        if next(halts, False):
            halt(status.pid)
        return append(self, *arguments)

    monkeypatch.setattr(KafkaSoleWriter, "append", halted)
    payments = stream_to_json(parse_definitions(PAYMENTS).streams["payments"])
    cluster = _cluster(status.address)
    with front_end(cluster) as served:
        # So that the broker is not halted for longer than its session: one that is fenced may be lost for good.
        monkeypatch.setattr(served.backend._changes, "_limit_s", 1.0)
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
            for where in Topics(cluster.prefix).partitions(parse_definitions(PAYMENTS).streams["payments"]):
                assert transport.end_offset(*where) >= 1
