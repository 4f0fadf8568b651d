"""A node does not start beside nodes of a release without copies, and is not held up by what they have left."""

import threading
import time
from collections.abc import Iterator

import msgspec
import pytest

from railgun.messaging.kafka.transport import KafkaTransport
from railgun.messaging.transport import Entry, TopicPartition
from railgun.node.leader.start_checks import NodeRefusedError, check_releases
from railgun.registry.topics import Topics
from railgun.wire.records import Records
from tests.broker.own_topics import own_prefix
from tests.unit.local_units import quick_settings

_DAY_S = 86_400.0


class _OldNode:
    """Writes what a unit of an earlier release wrote of one task; again and again, once it runs."""

    def __init__(self, transport: KafkaTransport, positions: TopicPartition) -> None:
        self._transport, self._positions = transport, positions
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def report(self, state: str = "running") -> None:
        body = {
            "version": 1, "node": "old-7", "unit": 0, "generation": 9, "warming": [],
            "stream": "s", "created": 1, "partitioner": "k", "partition": 0,
            "state": state, "processed": 5, "replied": 4, "checkpointed": 2, "end": 6,
        }  # fmt: skip
        records = Records.of([msgspec.json.encode(body)])
        self._transport.submit([Entry(self._positions, records, [b"railgun.s.by.k-0"])]).result(30)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(4.5):
            self.report()


@pytest.fixture
def transport(kafka: str) -> Iterator[KafkaTransport]:
    with KafkaTransport(quick_settings(kafka)) as opened:
        yield opened


def test_beside_nodes_of_an_earlier_release_none_starts(transport: KafkaTransport) -> None:
    positions = TopicPartition(Topics(own_prefix("r")).positions, 0)
    transport.create_topic(positions.topic, 1)
    old = _OldNode(transport, positions)
    check_releases(transport, positions, threading.Event())
    old.report()
    old.start()
    try:
        with pytest.raises(
            NodeRefusedError, match=r"node old-7 runs a release without copies .* stop all nodes"
        ):
            check_releases(transport, positions, threading.Event())
    finally:
        old.stop()
    # One that stops meanwhile is no reason.
    old.report()
    closing = threading.Timer(1.0, lambda: old.report("stopped"))
    closing.start()
    check_releases(transport, positions, threading.Event())
    closing.join()
    # What is left over is told from it by its age, without waiting, or by waiting.
    check_releases(transport, positions, threading.Event(), lambda: time.time() + _DAY_S)
    check_releases(transport, positions, threading.Event())
