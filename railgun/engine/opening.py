"""Opens the tasks of an engine from their folders and logs, several at once, within the limit of open files.

`EngineStreams` calls it at a start and for each new stream.
"""

import os
import resource
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from railgun.catalog.catalog import StreamEntry
from railgun.catalog.names import column_name
from railgun.catalog.task_key import TaskKey
from railgun.engine.errors import OpenFilesError
from railgun.engine.folder import DataFolder
from railgun.engine.stream_hosts import DirectReplies
from railgun.history.manifest import ready_folder
from railgun.history.request_files import DeepeningRequest
from railgun.host.lanes import HostLanes
from railgun.host.memory import MemoryShares
from railgun.host.place import Place
from railgun.host.reply_sink import WarmWriter
from railgun.host.start import StartProgress
from railgun.host.task_host import TaskHost
from railgun.host.task_log import TaskLog
from railgun.messaging.embedded.log import EmbeddedLog
from railgun.messaging.transport import TopicPartition
from railgun.registry.topics import topic_of
from railgun.task.environment import TaskEnvironment
from railgun.task.settings import TaskIdentity, TaskSettings

# A task without events has 8 files open: its lock, its mark, its folder and those of RocksDB. A task with events also
# has its newest segment and some tables.
EMPTY_TASK_FILES, TASK_FILES = 8, 12
# Files of the embedded log, of the program itself, and of connections.
_OTHER_FILES = 128

_OPEN = Path("/proc/self/fd")


def check_new_tasks(place: str, existing: int, new: int) -> None:
    """Raise OpenFilesError if this process may not have enough open files for new tasks, now or when the folder is
    opened again.
    """
    needed = max(_OTHER_FILES + TASK_FILES * existing, _open_files()) + TASK_FILES * new
    _check(f"{place}: its {new} tasks", needed, TASK_FILES)


def check_opening(place: str, tasks: int) -> None:
    """Raise OpenFilesError if this process may not have enough open files for all tasks of a folder."""
    _check(f"{place}: its {tasks} tasks", _open_files() + EMPTY_TASK_FILES * tasks, EMPTY_TASK_FILES)


def _check(what: str, needed: int, of_each: int) -> None:
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit != resource.RLIM_INFINITY and needed > limit:
        raise OpenFilesError(
            f"{what} need about {of_each} open files each, {needed} with all others; the limit is {limit}: raise it "
            "(ulimit -n), or have fewer partitions"
        )


def _open_files() -> int:
    return len(os.listdir(_OPEN)) if _OPEN.is_dir() else 0


def task_count(entries: Iterable[StreamEntry]) -> int:
    """Return how many tasks streams have."""
    return sum(len(entry.stream.tasks) for entry in entries)


class Opening:
    """Opens the tasks of streams.

    memory: divides the memory limit among the tasks.
    threads: how many threads opening may use.
    kept: for each log, the offset before which it may be trimmed.
    offered: returns which successors the tasks of a stream may open.
    environment: clocks, randomness and executor for the tasks.
    """

    def __init__(
        self,
        folder: DataFolder,
        log: EmbeddedLog,
        memory: MemoryShares,
        threads: int,
        write_warm: WarmWriter,
        kept: Mapping[TopicPartition, int],
        offered: Callable[[str], DeepeningRequest | None],
        environment: TaskEnvironment,
        lanes: HostLanes,
    ) -> None:
        self._folder, self._log, self._memory, self._threads = folder, log, memory, threads
        self._write_warm, self._kept, self._offered = write_warm, kept, offered
        self._sink, self._environment, self._lanes = DirectReplies(log), environment, lanes

    def hosts(
        self, entries: Sequence[StreamEntry], keys: Mapping[str, bytes], start: StartProgress
    ) -> list[TaskHost]:
        """Open the tasks of streams, and process what their logs hold. Missing topics are created.

        keys: the secret key of each stream, by name.
        start: is told about the progress.
        If a task cannot be opened, all others are closed and the first error is raised.
        """
        places = [place for entry in entries for place in self._places(entry, keys[entry.stream.name])]
        if not places:
            return []
        at_once = min(self._threads, len(places))
        settings, readers = self._memory.take(len(places)), max(1, self._threads // at_once)
        hosts = [self._host(place, settings) for place in places]

        def opened(host: TaskHost) -> None:
            host.open()
            host.catch_up(readers, start)

        with ThreadPoolExecutor(at_once, "recovery") as pool:
            futures = [pool.submit(opened, host) for host in hosts]
        failures = [error for each in futures if (error := each.exception()) is not None]
        if failures:
            for host in hosts:
                with suppress(Exception):  # the first failure is what is told
                    host.close()
            raise failures[0]
        return hosts

    def _places(self, entry: StreamEntry, key: bytes) -> list[Place]:
        stream, found = entry.stream, list[Place]()
        for partitioner in stream.partitioners:
            self._log.create_topic(topic_of(stream.name, partitioner), stream.partitions_of(partitioner))
        for partitioner, partition in stream.tasks:
            below = ready_folder(self._folder.path, stream.name) / column_name(partitioner) / str(partition)
            found.append(
                Place(
                    TaskKey(stream.name, entry.created, partitioner, partition),
                    TaskIdentity(stream.name, partitioner, partition, key),
                    log_of(stream.name, (partitioner, partition)),
                    self._folder.place(stream.name, partitioner, partition),
                    below,
                )
            )
        return found

    def _host(self, place: Place, settings: TaskSettings) -> TaskHost:
        log = TaskLog(self._log, place.where, self._environment, self._kept)
        name = place.key.stream
        return TaskHost(
            place,
            log,
            self._sink,
            settings,
            self._write_warm,
            lambda: self._offered(name),
            self._lanes.next(),
        )


def log_of(stream: str, task: tuple[str, int]) -> TopicPartition:
    """Return the log of a task, which is given as (partitioner, partition)."""
    partitioner, partition = task
    return TopicPartition(topic_of(stream, partitioner), partition)
