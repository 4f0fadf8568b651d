"""Opening the tasks of an engine: from their folders and their logs, several at once."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from railgun.catalog.catalog import StreamEntry
from railgun.engine.folder import DataFolder
from railgun.engine.members import Member
from railgun.messaging.embedded import EmbeddedLog
from railgun.messaging.transport import TopicPartition
from railgun.registry.topics import topic_of
from railgun.task.errors import HistoryMissingError
from railgun.task.identity import TaskIdentity
from railgun.task.processor import TaskProcessor
from railgun.task.settings import TaskSettings
from railgun.task.task_folder import beside, current_folder
from railgun.unit.memory import MemoryShares
from railgun.unit.start import Start
from railgun.unit.task_log import TaskLog


class Opening:
    """memory: what tasks get of it.  threads: how many may be kept busy."""

    def __init__(self, folder: DataFolder, log: EmbeddedLog, memory: MemoryShares, threads: int) -> None:
        self._folder, self._log, self._memory, self._threads = folder, log, memory, threads

    def members(
        self, entries: Sequence[StreamEntry], keys: Mapping[str, bytes], start: Start
    ) -> list[Member]:
        """The tasks of streams, which have processed what their logs hold; topics that are missing are made.

        keys: by stream.  start: told how far it is.  Where one fails none is left open; the first failure is raised.
        """
        places: list[tuple[TaskIdentity, TaskLog]] = []
        for entry in entries:
            stream = entry.stream
            for partitioner in stream.partitioners:
                self._log.create_topic(topic_of(stream.name, partitioner), stream.partitions_of(partitioner))
            for task in stream.tasks:
                identity = TaskIdentity(stream.name, *task, keys[stream.name])
                places.append((identity, TaskLog(self._log, log_of(stream.name, task))))
        if not places:
            return []
        at_once = min(self._threads, len(places))
        settings, readers = self._memory.take(len(places)), max(1, self._threads // at_once)
        with ThreadPoolExecutor(at_once, "recovery") as pool:
            futures = [pool.submit(self._member, *place, settings, readers, start) for place in places]
        failures = [error for each in futures if (error := each.exception()) is not None]
        if failures:
            for each in futures:
                if each.exception() is None:
                    each.result().task.close()
            raise failures[0]
        return [each.result() for each in futures]

    def _member(
        self, identity: TaskIdentity, log: TaskLog, settings: TaskSettings, readers: int, start: Start
    ) -> Member:
        place = self._folder.place(identity.stream, identity.partitioner, identity.partition)

        def opened(folder: Path) -> TaskProcessor:
            task = recovered(self._log, log, folder, identity, settings)
            try:
                log.catch_up(task, readers, start)
            except BaseException:
                task.close()
                raise
            return task

        try:
            task = opened(current_folder(place))
        except HistoryMissingError as error:
            if not beside(place, error.history).is_dir():
                raise
            # Another has taken over there, and was not moved to yet.
            task = opened(beside(place, error.history))
        return Member(identity.partitioner, task, log)


def recovered(
    log: EmbeddedLog, own: TaskLog, folder: Path, identity: TaskIdentity, settings: TaskSettings
) -> TaskProcessor:
    """A task as its folder has it; `own` is its part of the log. Raises what `TaskLog.recover` raises."""
    return own.recover(folder, identity, settings, lambda _: log.sync())


def log_of(stream: str, task: tuple[str, int]) -> TopicPartition:
    """The log of a task, by its (partitioner, partition)."""
    partitioner, partition = task
    return TopicPartition(topic_of(stream, partitioner), partition)
