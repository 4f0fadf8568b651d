"""The hosts of a unit's tasks: opened and closed in lanes, beside the loop; one that fails stops alone."""

from collections.abc import Callable, Sequence

from railgun.host.host_state import OF_ONE_TASK
from railgun.host.place import Place, TaskKey
from railgun.host.task_host import TaskHost
from railgun.messaging.errors import TopicMissingError
from railgun.state.errors import StoreError, StoreLockedError
from railgun.task.errors import LogGapError
from railgun.unit.clock import CLOCK, Clock
from reservoir.errors import StorageFailedError
from reservoir.executor import Job

_LOCKED_S = 0.5


class UnitHosts:
    """One thread uses it.

    make: the host of a task, one of so many that are made together.  closed: told of each that was let go while the
    unit goes on.  Raises what stops the whole unit: TransportError, and errors of the disk.
    """

    def __init__(
        self,
        make: Callable[[Place, int], TaskHost],
        closed: Callable[[TaskHost], None],
        clock: Clock = CLOCK,
    ) -> None:
        self._make, self._closed, self._clock = make, closed, clock
        self.by_key: dict[TaskKey, TaskHost] = {}
        self._opening: dict[TaskKey, Job[None]] = {}
        self._locked: dict[TaskKey, float] = {}
        self._closing: dict[TaskKey, tuple[TaskHost, Job[None]]] = {}

    @property
    def are_open(self) -> bool:
        """Whether no host is still to be opened."""
        return not self._opening and not self._locked

    def assign(self, places: Sequence[Place]) -> bool:
        """From now on the unit runs the tasks of these places; whether that is a change."""
        needed = {place.key: place for place in places}
        dropped = [key for key in self.by_key if key not in needed]
        for key in dropped:
            self._let_go(key)
        new = [place for key, place in needed.items() if key not in self.by_key]
        for left, place in enumerate(reversed(new), 1):
            self.by_key[place.key] = self._make(place, left)
        for place in new:
            self._open(place.key)
        return bool(new or dropped)

    def advance(self) -> None:
        """Take note of what has been opened and closed since; try again what was locked."""
        for key, opening in list(self._opening.items()):
            if opening.done():
                del self._opening[key]
                self._opened(key, opening)
        for key, again_s in list(self._locked.items()):
            if self._clock.now() >= again_s:
                del self._locked[key]
                self._open(key)
        for key, (host, closing) in list(self._closing.items()):
            if closing.done():
                del self._closing[key]
                closing.result()
                self._closed(host)

    def wait(self) -> None:
        """Return once nothing is being opened or closed."""
        for future in (*self._opening.values(), *(closing for _, closing in self._closing.values())):
            future.exception()

    def run_isolated(self, host: TaskHost, do: Callable[[], bool | None]) -> bool:
        """Do something with a host that runs. An error of its task alone stops that task. True: as `do` said."""
        try:
            return bool(do())
        except OF_ONE_TASK as error:
            stop_task(host, error)
            return False

    def _open(self, key: TaskKey) -> None:
        if key in self._closing:
            # The unit had the task before: it is looked at again.
            self._locked[key] = 0.0
            return
        host = self.by_key[key]
        self._opening[key] = host.lane.submit(host.open)

    def _opened(self, key: TaskKey, opening: Job[None]) -> None:
        host = self.by_key[key]
        try:
            opening.result()
        except StoreLockedError:
            # Another process holds its folder for now.
            self._locked[key] = self._clock.now() + _LOCKED_S
        except TopicMissingError as error:
            stop_task(host, LogGapError(str(host.place.where), error.reason))
        except OF_ONE_TASK as error:
            stop_task(host, error)

    def _let_go(self, key: TaskKey) -> None:
        host = self.by_key.pop(key)
        self._opening.pop(key, None)
        self._locked.pop(key, None)
        # In its lane: behind its opening.
        self._closing[key] = host, host.lane.submit(host.close)


def stop_task(host: TaskHost, error: Exception) -> None:
    """Stop a task for an error of its own. Where the disk failed it is raised: the unit starts again."""
    if isinstance(error, StorageFailedError) or type(error) is StoreError:
        raise error
    host.fail(error)
