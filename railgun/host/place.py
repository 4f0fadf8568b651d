"""Which task it is, and where it lives: its log, its folder, and where history for it is made ready."""

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from railgun.catalog.names import column_name
from railgun.messaging.transport import TopicPartition
from railgun.task.settings import TaskIdentity


class TaskKey(NamedTuple):
    """One task. created: the place at which its stream was made, which tells it from another of the same name."""

    stream: str
    created: int
    partitioner: str
    partition: int

    def __str__(self) -> str:
        return f"{self.stream}/{self.partitioner}/{self.partition}"


@dataclass(frozen=True, slots=True)
class Place:
    """where: the partition that is its log.  history: the folder in which a built history of it would lie."""

    key: TaskKey
    identity: TaskIdentity
    where: TopicPartition
    folder: Path
    history: Path


def task_folder(data: Path, stream: str, created: int, partitioner: str, partition: int) -> Path:
    """Where a task is in a node's data folder."""
    return data / "tasks" / f"{stream}.{created}" / column_name(partitioner) / str(partition)
