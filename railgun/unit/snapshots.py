"""Makes the snapshots (copies of the last checkpoint) of a unit's tasks that its node's transfer process orders.

The unit's loop calls it in every round. Other nodes fetch the snapshots.
"""

import logging
import re
import shutil
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from railgun.catalog.task_key import TaskKey
from railgun.host.task_host import TaskHost
from railgun.task.errors import SnapshotError
from railgun.task.snapshot_file import SNAPSHOT
from reservoir.executor import Job

_NAME = re.compile(r"[0-9a-f]{1,64}")

_log = logging.getLogger("railgun.unit")


class _Order(NamedTuple):
    task: str
    name: str


class UnitSnapshots:
    """Takes orders for snapshots, and makes them one after the other for each task.

    Threads: any thread may call `ask`; the unit's loop calls `step`.
    folder: each snapshot becomes a folder in it, under its own name. Another process deletes them.
    made: is called by the loop with the snapshot's name and an error in one line, which is empty if the snapshot is
        there. Orders and answers may be lost: an order that comes again is answered again, and not carried out twice.
    """

    def __init__(self, folder: Path, made: Callable[[str, str], object]) -> None:
        self._folder, self._made = folder, made
        self._orders: deque[_Order] = deque()
        self._under_way: list[tuple[_Order, Job[None]]] = []

    def ask(self, task: str, name: str) -> None:
        """Order a snapshot of a task.

        task: stream.created/partitioner/partition.
        name: the name of the folder, in hexadecimal digits.
        """
        self._orders.append(_Order(task, name))

    def step(self, hosts: Mapping[TaskKey, TaskHost]) -> None:
        """Begin the ordered snapshots, and tell which ones have ended. hosts: the hosts of the unit's tasks."""
        if not self._orders and not self._under_way:
            return
        self._tell()
        named = {key.full_name: host for key, host in hosts.items()}
        for _ in range(len(self._orders)):
            order, under_way = self._orders.popleft(), [each for each, _ in self._under_way]
            host = named.get(order.task)
            if order in under_way:
                continue
            if host is not None and host.makes_snapshot:
                self._orders.append(order)
            else:
                self._begin(order, host)

    def _begin(self, order: _Order, host: TaskHost | None) -> None:
        try:
            if not _NAME.fullmatch(order.name):
                raise SnapshotError(f"{order.name!r} is no name of a snapshot")
            if (self._folder / order.name / SNAPSHOT).is_file():
                self._end(order, None)
                return
            if host is None:
                raise SnapshotError(f"{order.task} has no copy here")
            # A process that was killed while it made the snapshot has left links, which are deleted fast.
            shutil.rmtree(self._folder / order.name, ignore_errors=True)
            self._under_way.append((order, host.make_snapshot(self._folder / order.name)))
        except SnapshotError as error:
            self._end(order, error)

    def _tell(self) -> None:
        ended = [each for each in self._under_way if each[1].done()]
        self._under_way = [each for each in self._under_way if each not in ended]
        for order, job in ended:
            self._end(order, job.exception())

    def _end(self, order: _Order, error: BaseException | None) -> None:
        if error is not None and not isinstance(error, SnapshotError):
            raise error
        if error is not None:
            _log.warning("no snapshot of %s is made: %s", order.task, error)
        self._made(order.name, "" if error is None else str(error))
