"""Where a task of a unit lives."""

from dataclasses import dataclass
from pathlib import Path

from railgun.catalog.names import column_name
from railgun.messaging.transport import TopicPartition
from railgun.task.identity import TaskIdentity
from railgun.unit.spread import TaskKey


@dataclass(frozen=True, slots=True)
class Place:
    """Where a task lives: its key and identity, its log, its folder; and where a history for it would be ready."""

    key: TaskKey
    identity: TaskIdentity
    where: TopicPartition
    folder: Path
    history: Path


def task_folder(data: Path, stream: str, created: int, partitioner: str, partition: int) -> Path:
    """Where a task is in a node's data folder."""
    return data / "tasks" / f"{stream}.{created}" / column_name(partitioner) / str(partition)
