"""The hosts of a stream's tasks in an engine, together with their logs.

Records are made durable and processed at the same time. `LiveStream` appends records by it.
"""

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from railgun.engine.errors import FolderError
from railgun.host.start import StartProgress
from railgun.host.task_host import TaskHost
from railgun.messaging.embedded.log import EmbeddedLog
from railgun.messaging.transport import Entry, Fetched, Transport
from railgun.task.processor import TaskProcessor
from railgun.task.replies import Replies, discard_replies
from railgun.wire.records import Records


class DirectReplies:
    """The reply sink of tasks whose callers wait for the answers.

    Records count as answered as soon as they are processed. `wait` syncs the log.
    """

    def __init__(self, log: EmbeddedLog) -> None:
        self._log = log

    def deliver(self, task: TaskProcessor, replies: Replies) -> None:
        """Do nothing: no caller waits for replies to records that are read from the log."""

    def note(self, fetched: Fetched, took_s: float) -> None:
        """Do nothing: the engine's callers count records themselves."""

    def has_room(self) -> bool:
        return True

    def drops_replies(self) -> bool:
        return False

    def replied(self, position: int) -> int:
        return position

    def wait(self, before_offset: int) -> None:
        self._log.sync()

    def give_up(self, at_s: float = -math.inf) -> None:
        """Do nothing: no acknowledgement is ever awaited."""


class StreamHosts:
    """The hosts of a stream's tasks, by partitioner in its order. One thread uses them.

    is_usable: False after an error in the middle of an operation. The tasks and logs must be opened again then.
    """

    def __init__(self, log: Transport, hosts: Sequence[TaskHost]) -> None:
        self._log = log
        self._hosts = tuple(hosts)
        self._by_place = {(h.place.key.partitioner, h.place.key.partition): h for h in hosts}
        self.is_usable = True

    def __iter__(self) -> Iterator[TaskHost]:
        return iter(self._hosts)

    def at(self, partitioner: str, partition: int) -> TaskHost:
        """Return the host of one task."""
        return self._by_place[partitioner, partition]

    @contextmanager
    def critical(self) -> Iterator[None]:
        """Mark the hosts as unusable if the block raises an error of any kind."""
        before, self.is_usable = self.is_usable, False
        yield
        self.is_usable = before

    @contextmanager
    def appending(self, sent: Sequence[tuple[TaskHost, Records]]) -> Iterator[None]:
        """Append records while the block processes the same records. They are durable when the block is left.

        Appending and processing can overlap because the offsets are known in advance: only this process writes to
        these logs.
        If the append is refused at once, nothing is appended, and the block does not run.
        """
        if not sent:
            yield
            return
        positions = [host.position for host, _ in sent]
        future = self._log.submit([Entry(host.place.where, records) for host, records in sent])
        with self.critical():
            yield
            offsets = future.result()
            if offsets != positions:
                raise FolderError(f"the log gave offsets {offsets}, not {positions}; open the folder again")

    def control(self, hosts: Sequence[TaskHost], records: Records) -> None:
        """Append the same control records to the logs of some tasks, and apply them in these tasks."""
        with self.appending([(host, records) for host in hosts]):
            for host in hosts:
                host.process(records, discard_replies)

    def replace(self, records: Records, threads: int) -> None:
        """Append control records that replace the tasks by others.

        The records are appended before they are processed, because the new tasks read them from the log.

        threads: how many threads may be used.
        """
        with self.critical():
            self._log.submit([Entry(host.place.where, records) for host in self._hosts]).result()
            catch_up(self._hosts, threads, StartProgress())

    def work(self) -> bool:
        """Let each task do a brief step of background work. Returns whether there is more to do now."""
        more = False
        with self.critical():
            for host in self._hosts:
                more |= host.work(brief=True)
        return more

    def expedite(self) -> None:
        """Do a slice of the work that warming metrics wait for, including checkpoints."""
        with self.critical():
            for host in self._hosts:
                host.expedite()

    def checkpoint(self) -> None:
        """Take a checkpoint of every task and wait for it."""
        with self.critical():
            for host in self._hosts:
                host.checkpoint()

    def close(self) -> None:
        """Close every task. An error does not keep the others open; the first error is raised."""
        failures: list[Exception] = []
        for host in self._hosts:
            try:
                host.close()
            except Exception as error:  # noqa: BLE001 - the other tasks are closed too before it is raised
                failures.append(error)
        if failures:
            raise failures[0]


def catch_up(hosts: Sequence[TaskHost], threads: int, start: StartProgress) -> None:
    """Let tasks process what their logs hold, several at once. Raises the first error, after all
    threads have ended.
    """
    at_once = max(1, min(threads, len(hosts)))
    readers = max(1, threads // at_once)
    with ThreadPoolExecutor(at_once, "recovery") as pool:
        futures = [pool.submit(host.catch_up, readers, start) for host in hosts]
    for each in futures:
        each.result()
