"""The hosts of a stream's tasks, kept together with their logs: records are made durable and processed at once."""

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
    """The replies of tasks whose callers wait for them: they are answered for good as soon as they are processed, and
    so is the log once it is synced."""

    def __init__(self, log: EmbeddedLog) -> None:
        self._log = log

    def deliver(self, task: TaskProcessor, replies: Replies) -> None:
        """Nobody waits for what is read from the log."""

    def note(self, fetched: Fetched, took_s: float) -> None:
        """The callers count."""

    def replied(self, position: int) -> int:
        return position

    def wait(self, before_offset: int) -> None:
        self._log.sync()

    def give_up(self, at_s: float = -math.inf) -> None:
        """Nothing waits for others."""


class StreamHosts:
    """The hosts of a stream's tasks, by partitioner in its order. One thread uses them.

    is_whole: False once something went wrong half-way; tasks and logs must then be opened again.
    """

    def __init__(self, log: Transport, hosts: Sequence[TaskHost]) -> None:
        self._log = log
        self._hosts = tuple(hosts)
        self._by_place = {(h.place.key.partitioner, h.place.key.partition): h for h in hosts}
        self.is_usable = True

    def __iter__(self) -> Iterator[TaskHost]:
        return iter(self._hosts)

    def at(self, partitioner: str, partition: int) -> TaskHost:
        """One of them."""
        return self._by_place[partitioner, partition]

    @contextmanager
    def critical(self) -> Iterator[None]:
        """An error in the block, of any kind, leaves them unusable."""
        before, self.is_usable = self.is_usable, False
        yield
        self.is_usable = before

    @contextmanager
    def appending(self, sent: Sequence[tuple[TaskHost, Records]]) -> Iterator[None]:
        """Append records while the block processes the same ones; on leaving it they are durable.

        Both are done at once because the offsets are known before: only this process writes to these logs.
        Appending that is refused at once has taken nothing.
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
        """Append the same control records to the logs of some, and bring them into force."""
        with self.appending([(host, records) for host in hosts]):
            for host in hosts:
                host.process(records, discard_replies)

    def replace(self, records: Records, threads: int) -> None:
        """Append control records by which other tasks take the place of these: they read the log, so it has them first.

        threads: how many may be kept busy.
        """
        with self.critical():
            self._log.submit([Entry(host.place.where, records) for host in self._hosts]).result()
            catch_up(self._hosts, threads, StartProgress())

    def work(self) -> bool:
        """A brief step of what each task needs beside records. True: there is more to do now."""
        more = False
        with self.critical():
            for host in self._hosts:
                more |= host.work(brief=True)
        return more

    def expedite(self) -> None:
        """A slice of what warming metrics wait for, checkpoints included."""
        with self.critical():
            for host in self._hosts:
                host.expedite()

    def checkpoint(self) -> None:
        """Take a checkpoint of every task and wait for it."""
        with self.critical():
            for host in self._hosts:
                host.checkpoint()

    def close(self) -> None:
        """Let every task go, whatever fails. Raises the first failure."""
        failures: list[Exception] = []
        for host in self._hosts:
            try:
                host.close()
            except Exception as error:  # noqa: BLE001 - the other tasks are closed too before it is raised
                failures.append(error)
        if failures:
            raise failures[0]


def catch_up(hosts: Sequence[TaskHost], threads: int, start: StartProgress) -> None:
    """Let tasks process what their logs hold, several at once. Raises the first failure, once none is at work."""
    at_once = max(1, min(threads, len(hosts)))
    readers = max(1, threads // at_once)
    with ThreadPoolExecutor(at_once, "recovery") as pool:
        futures = [pool.submit(host.catch_up, readers, start) for host in hosts]
    for each in futures:
        each.result()
