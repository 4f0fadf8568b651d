"""Opening the tasks of an engine: from their folders and their logs, several at once."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from railgun.catalog.catalog import StreamEntry
from railgun.catalog.names import column_name
from railgun.engine.folder import DataFolder
from railgun.engine.stream_hosts import DirectReplies
from railgun.history.manifest import ready_folder
from railgun.history.request_files import Asked
from railgun.host.lanes import HostLanes
from railgun.host.memory import MemoryShares
from railgun.host.place import Place, TaskKey
from railgun.host.start import Start
from railgun.host.task_host import TaskHost
from railgun.host.task_log import TaskLog
from railgun.host.warm_writer import WarmWriter
from railgun.messaging.embedded.log import EmbeddedLog
from railgun.messaging.transport import TopicPartition
from railgun.registry.topics import topic_of
from railgun.task.environment import TaskEnvironment
from railgun.task.identity import TaskIdentity
from railgun.task.settings import TaskSettings


class Opening:
    """memory: what tasks get of it.  threads: how many may be kept busy.  kept: by log, the offset from which on it
    must not be trimmed.  offered: by stream, the successors that its tasks may open.  environment: of the tasks.
    """

    def __init__(
        self,
        folder: DataFolder,
        log: EmbeddedLog,
        memory: MemoryShares,
        threads: int,
        write_warm: WarmWriter,
        kept: Mapping[TopicPartition, int],
        offered: Callable[[str], Asked | None],
        environment: TaskEnvironment,
        lanes: HostLanes,
    ) -> None:
        self._folder, self._log, self._memory, self._threads = folder, log, memory, threads
        self._write_warm, self._kept, self._offered = write_warm, kept, offered
        self._sink, self._environment, self._lanes = DirectReplies(log), environment, lanes

    def hosts(
        self, entries: Sequence[StreamEntry], keys: Mapping[str, bytes], start: Start
    ) -> list[TaskHost]:
        """The tasks of streams, which have processed what their logs hold; topics that are missing are made.

        keys: by stream.  start: told how far it is.  Where one fails none is left open; the first failure is raised.
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
    """The log of a task, by its (partitioner, partition)."""
    partitioner, partition = task
    return TopicPartition(topic_of(stream, partitioner), partition)
