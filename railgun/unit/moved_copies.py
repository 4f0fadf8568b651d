"""Deletes the data of copies of tasks that have moved to other nodes. The loop of one unit of each node calls it.

The data is kept for a while: the copy may come back, and would have less to catch up.
"""

import logging
import math
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

from railgun.catalog.task_key import TaskKey
from railgun.cluster.plan import Plan
from railgun.cluster.records import PlanReader
from railgun.history.durable_files import gone_name, is_set_aside, remove_whole
from railgun.host.data_folder import fetching_folder, replaced_folder
from railgun.host.place import task_folder
from railgun.messaging.errors import TransportError
from railgun.messaging.tail import Tail, each_record, leave_out
from railgun.messaging.transport import TopicPartition, Transport
from railgun.state.errors import StoreLockedError
from railgun.state.lock import holding_all
from railgun.unit.clock import Clock

# How long other nodes must have had all copies of a task, caught up, before its data here is deleted.
KEPT_S = 3_600.0
_LOOK_S = 60.0

_log = logging.getLogger("railgun.unit")


def in_a_thread(do: Callable[[], None]) -> Callable[[], bool]:
    """Run a function in a thread that the process does not wait for at its end. Returns what tells whether it runs."""
    thread = threading.Thread(target=do, name="deletions", daemon=True)
    thread.start()
    return thread.is_alive


@contextmanager
def reading_plan(transport: Transport, assignment: TopicPartition) -> Iterator[Callable[[], Plan]]:
    """Yield a function that returns the plan as it is in its topic now, and raises TransportError. The first call reads
    the whole topic, later ones what is new.
    """
    reader = PlanReader()
    tail = Tail(transport, {assignment: each_record(lambda _, record: reader.take(record), leave_out)})

    def newest() -> Plan:
        tail.read_to_the_end()
        return reader.plan

    try:
        yield newest
    finally:
        transport.release(*assignment)


class MovedCopies:
    """The data of moved copies on a node. One thread of one of its units uses it.

    data: the node's data folder.
    is_elsewhere: returns whether other nodes have all wanted copies of a task, caught up, and none is planned here by a
        plan; None: by the one that the unit knows.
    reading_plan: yields a function that reads the plan again, and raises TransportError.
    run: runs a function outside the unit's loop, and returns what tells whether it still runs.
    """

    def __init__(
        self,
        data: Path,
        is_elsewhere: Callable[[TaskKey, Plan | None], bool],
        reading_plan: Callable[[], AbstractContextManager[Callable[[], Plan]]],
        clock: Clock,
        run: Callable[[Callable[[], None]], Callable[[], bool]] = in_a_thread,
    ) -> None:
        self._data, self._is_elsewhere, self._clock = data, is_elsewhere, clock
        self._reading_plan, self._run = reading_plan, run
        self._looked_s = -math.inf
        self._since_s: dict[TaskKey, float] = {}
        self._is_deleting: Callable[[], bool] = lambda: False

    def look(self, tasks: Iterable[TaskKey]) -> None:
        """Look once a minute which of these tasks have moved, and delete their data when their time is over."""
        now_s = self._clock.now()
        if now_s - self._looked_s < _LOOK_S or self._is_deleting():
            return
        self._looked_s = now_s
        moved = {key for key in tasks if any(self._folders(key)) and self._is_elsewhere(key, None)}
        self._since_s = {key: self._since_s.get(key, now_s) for key in moved}
        due = [key for key, since_s in self._since_s.items() if now_s - since_s >= KEPT_S]
        if due:
            self._is_deleting = self._run(lambda: self._delete_all(due))

    def _folders(self, key: TaskKey) -> list[Path]:
        """Return the existing folders of a task: its own, those beside it that a fetch has left, and the remains of one
        whose deletion a crash has cut off.
        """
        own = self._folder(key)
        names = own, fetching_folder(own), replaced_folder(own)
        return [each for each in (*names, *map(gone_name, names)) if each.is_dir()]

    def _folder(self, key: TaskKey) -> Path:
        return task_folder(self._data, key.stream, key.created, key.partitioner, key.partition)

    def _delete_all(self, keys: Sequence[TaskKey]) -> None:
        with self._reading_plan() as newest_plan:
            for key in keys:
                self._delete_moved(key, newest_plan)

    def _delete_moved(self, key: TaskKey, newest_plan: Callable[[], Plan]) -> None:
        try:
            with ExitStack() as held:
                for folder in self._folders(key):
                    held.enter_context(holding_all(folder))
                # A unit that is to have the task from now on cannot open it before this is over.
                if self._is_elsewhere(key, newest_plan()):
                    for folder in self._folders(key):
                        self._delete(key, folder)
        except StoreLockedError:
            _log.info("%s: the data of a copy that has moved is kept: it is open", key)
        except (OSError, TransportError) as error:
            _log.warning(
                "%s: the data of a copy that has moved to other nodes is not deleted: %s", key, error
            )

    def _delete(self, key: TaskKey, folder: Path) -> None:
        if is_set_aside(folder):
            shutil.rmtree(folder, ignore_errors=True)
            return
        # A host that opens the task meanwhile begins again.
        remove_whole(folder)
        _log.info("%s: the data of a copy that has moved to other nodes is deleted", key)
