"""The identity of a task, and where it lives: its log, its folder, and the folder for history that was
built for it.
"""

from dataclasses import dataclass
from pathlib import Path

from railgun.catalog.names import column_name
from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import Cut
from railgun.history.manifest import installed_folder
from railgun.messaging.transport import TopicPartition
from railgun.task.settings import TaskIdentity


@dataclass(frozen=True, slots=True)
class Place:
    """Where a task lives.

    where: the topic and partition that is its log.
    history: the folder for history that is built for the task and not taken by all yet; it may not exist.
    cut: what the log has lost, if that was accepted: a state that was made of it is made anew.
    """

    key: TaskKey
    identity: TaskIdentity
    where: TopicPartition
    folder: Path
    history: Path
    cut: Cut | None = None

    def built(self, history: str) -> Path:
        """Return the folder of the task that was built with a history: one that is kept, or one that is ready."""
        kept = (
            installed_folder(self.history.parents[1], history) / self.history.parent.name / self.history.name
        )
        return kept if kept.is_dir() else self.history


def stream_folder(stream: str, created: int) -> str:
    """Return the name of the folder with a stream's tasks, in the folder `tasks` of a node."""
    return f"{stream}.{created}"


def task_folder(data: Path, stream: str, created: int, partitioner: str, partition: int) -> Path:
    """Return the folder of a task in a node's data folder."""
    return data / "tasks" / stream_folder(stream, created) / column_name(partitioner) / str(partition)
