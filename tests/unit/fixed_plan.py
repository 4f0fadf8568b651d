"""Plans that a test makes itself, in the place of a leader's."""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from railgun.catalog.catalog import Catalog
from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyName
from railgun.cluster.plan import Plan, PlannedCopy
from railgun.cluster.records import encode_plan
from railgun.config.loading import settings_of
from railgun.messaging.kafka.configured import kafka_settings
from railgun.messaging.kafka.sole_writer import KafkaSoleWriter
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.messaging.transport import TopicPartition
from railgun.node.identity import Identity, node_identity
from railgun.registry.cluster_topics import make_topics
from railgun.registry.kafka_registry import KafkaRegistry
from tests.forked import ROOT


class FixedPlan:
    """Every task has these copies, in this order of preference."""

    version = 1

    def __init__(self, order: Sequence[CopyName]) -> None:
        self.order = order

    def mine(self, catalog: Catalog) -> Mapping[TaskKey, Sequence[CopyName]]:
        return dict.fromkeys(catalog.task_keys, self.order)


class FixedSpread:
    """The tasks of unit `index` of `units`, dealt out one by one; each has one copy."""

    version = 1

    def __init__(self, index: int, units: int, name: CopyName) -> None:
        self._index, self._units, self._name = index, units, name

    def mine(self, catalog: Catalog) -> Mapping[TaskKey, Sequence[CopyName]]:
        keys = list(catalog.task_keys)
        return {key: [self._name] for number, key in enumerate(keys) if number % self._units == self._index}


def write_plan(nodes: Sequence[tuple[Path, Path]], units: int = 1, before: Sequence[str | Path] = ()) -> None:
    """Write a plan by which each node has a copy of every task that there is by now; its units share them.

    nodes: the configuration and the data folder of each.
    before: words before a command that sees these folders.
    """
    settings = settings_of(str(nodes[0][0]), None)
    names = [settings_of(str(config), None).cluster.node_name for config, _ in nodes]
    identities = [_identity(folder, name, before) for (_, folder), name in zip(nodes, names, strict=True)]
    kafka = kafka_settings(settings)
    with KafkaTransport(kafka) as transport, KafkaRegistry(kafka, settings.cluster.topic_prefix) as registry:
        topics = registry.topics
        make_topics(transport, topics)
        where = TopicPartition(topics.assignment, 0)
        copies = {
            key: tuple(
                PlannedCopy(CopyName(identity.name, number % units), identity.folder)
                for identity in identities
            )
            for number, key in enumerate(registry.snapshot().catalog.task_keys)
        }
        # Later plans have greater epochs.
        plan = Plan(1 + transport.end_offset(*where), copies)
        with KafkaSoleWriter(kafka, topics.assignment) as writer:
            writer.append(where, encode_plan(plan, Plan(), incarnation=1))


_IDENTIFY = """
import pathlib, sys
from railgun.node.identity import node_identity
folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
found = node_identity(folder, sys.argv[2])
print(found.name, found.folder)
"""


def _identity(folder: Path, name: str, before: Sequence[str | Path]) -> Identity:
    if not before:
        folder.mkdir(parents=True, exist_ok=True)
        return node_identity(folder, name)
    command = [*before, sys.executable, "-c", _IDENTIFY, str(folder), name]
    return Identity(
        *subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout.split()
    )
