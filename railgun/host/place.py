"""The place of a task: its identity, its log, its folder, and the folder for history that was built for it.

Engines and units make a `Place` for each task that they run. History is events from before the log.
"""

import stat
from dataclasses import dataclass
from pathlib import Path

from railgun.catalog.names import column_name
from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import Cut, Gap
from railgun.history.manifest import MANIFEST_PLACE, installed_folder, read_manifest, ready_folder
from railgun.host.data_folder import TASKS, stream_folder
from railgun.messaging.transport import TopicPartition
from railgun.task.errors import TaskFolderError
from railgun.task.settings import TaskIdentity


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a task: its log and its folders.

    key, identity: name the task in the cluster, and to the task itself with the stream's secret.
    where: the topic and partition that is its log.
    folder: the task's folder, in which all its files are.
    history: the folder for history that is built for the task and not taken by all yet; it may not exist.
    cut: what the log has lost, if an operator has accepted the loss. A state made of lost records is made again.
    gap: the gap of the log that an operator has accepted last. One state continues behind it.
    """

    key: TaskKey
    identity: TaskIdentity
    where: TopicPartition
    folder: Path
    history: Path
    cut: Cut | None = None
    gap: Gap | None = None

    def check_folder(self) -> None:
        """Raise TaskFolderError if a file has the place of the task's folder, or of one that the folder lies in."""
        for each in (self.folder, *self.folder.parents):
            # Looked at once: another task may make a parent folder meanwhile.
            try:
                is_folder = stat.S_ISDIR(each.stat().st_mode)
            except OSError:
                if not each.is_symlink():
                    continue
                is_folder = False
            if is_folder:
                return
            raise TaskFolderError(
                str(each),
                "the folder of a task belongs here, and this is none. Move it away, and start the node again",
            )

    def built(self, history: str) -> Path:
        """Return the folder of the task that was built with a history: one that is kept, or one that is ready."""
        kept = _kept(self.history, history)
        return kept if kept.is_dir() else self.history


def history_folder(data: Path, stream: str, partitioner: str, partition: int) -> Path:
    """Return the folder in a node's data folder for what is built of a task with history."""
    return ready_folder(data, stream) / column_name(partitioner) / str(partition)


def has_built(data: Path, key: TaskKey, history: str) -> bool:
    """Whether a node's data folder has what was built of a task with a history. Raises HistoryDamagedError and
    OSError.
    """
    ready = history_folder(data, key.stream, key.partitioner, key.partition)
    if (_kept(ready, history) / MANIFEST_PLACE).is_file():
        return True
    return (ready / MANIFEST_PLACE).is_file() and read_manifest(ready).history == history


def _kept(ready: Path, history: str) -> Path:
    return installed_folder(ready.parents[1], history) / ready.parent.name / ready.name


def task_folder(data: Path, stream: str, created: int, partitioner: str, partition: int) -> Path:
    """Return the folder of a task in a node's data folder."""
    return data / TASKS / stream_folder(stream, created) / column_name(partitioner) / str(partition)
