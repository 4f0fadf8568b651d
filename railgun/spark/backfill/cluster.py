"""Backfill of a stream whose log is Kafka: built in a node's data folder, announced in the logs, taken by the units."""

import os
from collections.abc import Iterator

import msgspec

from railgun.catalog.catalog import Catalog
from railgun.catalog.changes import AddHistory, Change
from railgun.catalog.model import StreamDefinition
from railgun.catalog.names import column_name
from railgun.engine.history import check_known, check_possible, plan_of
from railgun.history.build import HistoryPlan, new_history_id
from railgun.history.manifest import verified_manifest
from railgun.messaging.kafka.settings import KafkaSettings
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.messaging.to_the_end import read_to_the_end
from railgun.messaging.transport import TopicPartition
from railgun.plan.program import TIME_MAX
from railgun.registry import evolution
from railgun.registry.kafka_registry import KafkaRegistry
from railgun.registry.task_topics import task_logs
from railgun.registry.topics import PREFIX
from railgun.spark.backfill.installed import note_installed
from railgun.spark.backfill.planned_copies import check_copies
from railgun.spark.backfill.target import BackfillRequest, BackfillTarget
from railgun.task.settings import TaskIdentity, TaskSettings
from railgun.wire.records import EVENT, kind_of

_TIME = 2  # in an event record


class BackfillOfCluster(BackfillTarget):
    """A backfill for a cluster. The request's data folder is that of a node.

    kafka, prefix: the broker, and the prefix of the cluster's topics.
    Raises EngineError, TransportError, RegistryError, TaskError, HistoryError.
    """

    def __init__(self, request: BackfillRequest, kafka: KafkaSettings, prefix: str = PREFIX) -> None:
        super().__init__(request)
        self._kafka, self._prefix = kafka, prefix

    def unregistered(self) -> StreamDefinition | None:
        with KafkaRegistry(self._kafka, self._prefix) as registry:
            return self.request.unregistered(registry.snapshot().catalog)

    def plan(self) -> HistoryPlan:
        request = self.request
        with KafkaRegistry(self._kafka, self._prefix) as registry, KafkaTransport(self._kafka) as transport:
            if request.stream in registry.snapshot().catalog.streams:
                # If the backfill is refused, that comes before metrics are registered.
                self._check(registry, transport)
            registry.change(lambda catalog: evolution.missing(catalog, request.definitions))
            self._check(registry, transport)
            snapshot = registry.snapshot()
            entry = snapshot.catalog.entry(request.stream)
            settings = request.settings or TaskSettings()
            key, last_place = snapshot.keys[request.stream], snapshot.catalog.last_place
            history = new_history_id(os.urandom)
            return plan_of(entry, key, settings, history, request.stated_cut_ms, last_place)

    def _check(self, registry: KafkaRegistry, transport: KafkaTransport) -> None:
        entry = registry.snapshot().catalog.entry(self.request.stream)
        check_copies(transport, registry.topics, entry)
        logs = task_logs(registry.topics, entry.stream)
        check_possible(
            entry, self.request.stated_cut_ms, _starts(transport, logs), _least_ms(transport, logs)
        )

    def install(self) -> None:
        self.bring()
        stream = self.request.stream
        with KafkaRegistry(self._kafka, self._prefix) as registry, KafkaTransport(self._kafka) as transport:
            snapshot = registry.snapshot()
            entry = snapshot.catalog.entry(stream)
            check_copies(transport, registry.topics, entry)
            check_possible(entry, None, {}, TIME_MAX)
            logs = task_logs(registry.topics, entry.stream)
            manifests = [
                verified_manifest(self.ready / column_name(name) / str(number), identity, entry.created)
                for name, number, identity in _tasks(entry.stream, snapshot.keys[stream])
            ]
            check_known(entry, manifests, _least_ms(transport, logs))
            built = manifests[0]

            def announced(catalog: Catalog) -> list[Change]:
                starts, least_ms = _starts(transport, logs), _least_ms(transport, logs)
                check_possible(catalog.entry(stream), built.cut_ms, starts, least_ms)
                place = catalog.last_place + 1
                return [AddHistory(place, stream, built.history, built.cut_ms, built.known_place)]

            # Units that read the change in their logs take the history that is ready at their node.
            registry.change(announced)
            note_installed(self.ready, built.history, entry.created)


def _tasks(stream: StreamDefinition, key: bytes) -> Iterator[tuple[str, int, TaskIdentity]]:
    for name, number in stream.tasks:
        yield name, number, TaskIdentity(stream.name, name, number, key)


def _starts(transport: KafkaTransport, logs: list[TopicPartition]) -> dict[str, int]:
    return {str(where): transport.start_offset(*where) for where in logs}


def _least_ms(transport: KafkaTransport, partitions: list[TopicPartition]) -> int:
    """Return the least time of the first events of all logs, in ms; TIME_MAX if there are no events."""
    return min(_first_ms(transport, where) for where in partitions)


def _first_ms(transport: KafkaTransport, where: TopicPartition) -> int:
    for fetched in read_to_the_end(transport, where):
        for record in fetched.values():
            if kind_of(record) == EVENT:
                return int(msgspec.msgpack.decode(record[1:])[_TIME])
    return TIME_MAX
