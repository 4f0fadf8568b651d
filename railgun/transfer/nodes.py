"""Reads in the topic `nodes` where the nodes of the cluster serve snapshots, for the transfer process."""

import logging
import threading
from collections.abc import Iterable

from railgun.cluster.records import NodeRecord, decode_statement
from railgun.messaging.kafka.broker_wait import reached
from railgun.messaging.kafka.settings import KafkaSettings
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.messaging.tail import Tail, TailThread, each_record, leave_out
from railgun.messaging.transport import TopicPartition
from railgun.transfer.donor import DonorAddress, DonorBusyError

_LOOK_S = 0.5
_AWAY_S = 1.0
# An order may come as soon as this process has begun.
_FIRST_S = 10.0

_log = logging.getLogger("railgun.transfer")


class NodeAddresses:
    """The newest address of each node. One thread takes records; any thread may ask."""

    def __init__(self) -> None:
        self._known: dict[str, DonorAddress] = {}
        self._are_read = threading.Event()

    def of(self, node: str) -> DonorAddress | None:
        """Return where a node serves snapshots; None if it is not known. Waits a while until `are_read` was called.

        Raises DonorBusyError if it was not: the node may well serve, and is asked later.
        """
        if not self._are_read.wait(_FIRST_S):
            raise DonorBusyError
        return self._known.get(node)

    def serve_none(self, nodes: Iterable[str]) -> bool:
        """Whether it is known that none of these nodes serves snapshots."""
        return self._are_read.is_set() and not any(
            address.url for node in nodes if (address := self._known.get(node)) is not None
        )

    def are_read(self) -> None:
        """Note that all records that were there at the start have been taken."""
        self._are_read.set()

    def take(self, at: int, record: bytes) -> None:
        """Take a record of the topic. Raises RecordError."""
        found = decode_statement(record)
        if isinstance(found, NodeRecord):
            self._known[found.name] = DonorAddress(found.transfer, found.transfer_key)


def follow_nodes(
    addresses: NodeAddresses, topic: str, kafka: KafkaSettings, stopped: threading.Event
) -> None:
    """Read the topic until asked to stop. Waits for the broker. Raises TransportError."""
    if not reached(kafka, _log, stopped):
        return
    with KafkaTransport(kafka) as transport:
        tail = Tail(transport, {TopicPartition(topic, 0): each_record(addresses.take, leave_out)})
        tail.read_to_the_end()
        addresses.are_read()
        reading = TailThread(
            lambda: tail.look(_LOOK_S),
            "nodes",
            lambda error: _log.warning("the addresses of other nodes cannot be read for now: %s", error),
            _AWAY_S,
        )
        reading.start()
        stopped.wait()
        reading.close()
