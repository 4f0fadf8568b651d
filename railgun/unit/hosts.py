"""The hosts of a unit's tasks: each runs one copy of a task, in this process.

`UnitLoop` uses it. Hosts are opened and closed outside the unit's loop, and one that fails stops alone.
"""

import logging
import re
from collections.abc import Callable, Collection, Sequence
from functools import partial

from railgun.catalog.task_key import TaskKey
from railgun.cluster.reports import Fetching
from railgun.host.data_folder import fetching_folder
from railgun.host.fetched import forget_fetch
from railgun.host.fetcher import FetchEnd, Fetcher, NoFetcher
from railgun.host.host_state import DAMAGE, OF_ONE_TASK, HostState, one_line
from railgun.host.place import Place
from railgun.host.task_host import TaskHost
from railgun.messaging.errors import TopicMissingError, TransportError, TransportUnavailableError
from railgun.state.errors import StoreError, StoreLockedError
from railgun.task.errors import (
    DataDamagedError,
    HistoryMissingError,
    LogCutError,
    LogGapError,
    LogHoleError,
    LogReplacedError,
    StateLeftBehindError,
)
from railgun.unit.clock import CLOCK, Clock
from railgun.unit.log_faults import GONE_S
from reservoir.errors import StorageFailedError
from reservoir.executor import Job

# Pauses before a host is opened again: its folder was locked, the broker or every node with its data was away, or
# neither the log nor another node had its data.
_LOCKED_S, _AWAY_S, _UNSERVED_S = 0.5, 1.0, 5.0
# The last pause doubles each time that it has helped nothing, up to this: a fetch that fails costs its donor a
# snapshot.
_UNSERVED_MOST_S = 300.0
# A waiting fetch ends if no node that may give the data is heard for this long.
_NO_DONOR_S = 10.0
_LOOK_S = 1.0

# Numbers, and random names. Errors that differ in these alone have one cause.
_VARYING = re.compile(r"\b[0-9a-f]*[0-9][0-9a-f]*\b")

_log = logging.getLogger("railgun.unit")


class UnitHosts:
    """Opens and closes the hosts of a unit's tasks. One thread uses it.

    make: makes the hosts of tasks that begin together, in their order.
    closed: is called with each host that was closed while the unit continues.
    fetcher: fetches the data of tasks from other nodes.
    by_key: the hosts of the unit's tasks.
    Raises the errors that stop the whole unit: TransportError, and errors of the disk.
    """

    def __init__(
        self,
        make: Callable[[Sequence[Place]], Sequence[TaskHost]],
        closed: Callable[[TaskHost], None],
        clock: Clock = CLOCK,
        fetcher: Fetcher | None = None,
    ) -> None:
        self._make, self._closed, self._clock = make, closed, clock
        self._fetcher = fetcher or NoFetcher()
        # The tasks whose data is fetched, each with the last time when a node was known that may give it.
        self._fetching: dict[TaskKey, float] = {}
        # Failed hosts whose data may be had later, each with the time of the next look.
        self._unserved: dict[TaskKey, float] = {}
        # How often hosts have failed since they were opened because their data was missing.
        self._vain: dict[TaskKey, int] = {}
        # Offsets before which a task needs what this node lacks: only the data of another node helps.
        self._needed: dict[TaskKey, int] = {}
        # What was found damaged of tasks' data while they ran. It must not be opened again.
        self._damage: dict[TaskKey, str] = {}
        # Why the data of tasks cannot be had, as far as it is logged already.
        self._said: dict[TaskKey, set[str]] = {}
        self.by_key: dict[TaskKey, TaskHost] = {}
        self._opening: dict[TaskKey, Job[None]] = {}
        self._again: dict[TaskKey, float] = {}
        # The tasks whose topics are missing, each with the time since when.
        self._missed: dict[TaskKey, float] = {}
        self._closing: dict[TaskKey, tuple[TaskHost, Job[None]]] = {}

    @property
    def are_open(self) -> bool:
        """Whether no host is waiting to be opened or being opened, or for its data."""
        return not self._opening and not self._again and not self._fetching

    def assign(self, places: Sequence[Place]) -> bool:
        """Set which tasks the unit runs. Returns whether that is a change.

        Hosts of other tasks are closed. Hosts are opened for new tasks, and for tasks that go on after a loss of
        records, or behind a gap, that an operator has accepted.
        """
        needed = {place.key: place for place in places}
        dropped = [
            key
            for key, host in self.by_key.items()
            if key not in needed or (needed[key].cut, needed[key].gap) != (host.place.cut, host.place.gap)
        ]
        for key in dropped:
            self._forget_failures(key)
            self._vain.pop(key, None)
            self._let_go(key)
        new = [place for key, place in needed.items() if key not in self.by_key]
        if new:
            self.by_key |= {host.place.key: host for host in self._make(new)}
        for place in new:
            self._open(place.key)
        return bool(new or dropped)

    def advance(self) -> None:
        """Note which hosts have been opened, changed or closed since the last call, and open hosts again whose folder
        was locked, whose broker was away, or whose data has come from another node.
        """
        for key, opening in list(self._opening.items()):
            if opening.done():
                del self._opening[key]
                self._opened(key, opening)
        for key in list(self._fetching):
            self._look_at_fetch(key)
        if names := self._fetcher.unordered():
            self._stop_fetches(names)
        for key in [key for key, look_s in self._unserved.items() if self._clock.now() >= look_s]:
            self._begin_again(key)
        for key, again_s in list(self._again.items()):
            if self._clock.now() >= again_s:
                del self._again[key]
                self._open(key)
        for key, (host, closing) in list(self._closing.items()):
            if closing.done():
                del self._closing[key]
                closing.result()
                self._closed(host)

    def wait(self) -> None:
        """Wait until no host is being opened or closed."""
        for future in (*self._opening.values(), *(closing for _, closing in self._closing.values())):
            future.exception()

    def run_isolated(self, host: TaskHost, do: Callable[[], bool | None]) -> bool:
        """Run a function on a host, and return its result. An error that concerns only the host's task stops this task.

        A host closes itself if it has to begin anew while the broker is away. Such a host is opened again. A host that
        has to go on as another task does so in its lane.
        """
        try:
            has_more = bool(do())
            if host.is_changing:
                _log.info("%s prepares the task that its log orders", host.place.identity)
                self._opening[host.place.key] = host.lane.submit(host.change)
            return has_more
        except TransportUnavailableError as error:
            if host.state is not HostState.CLOSED:
                raise
            self._open_later(host.place.key, error)
            return False
        except OF_ONE_TASK as error:
            self.stop(host, error)
            return False

    def _open(self, key: TaskKey) -> None:
        if key in self._closing:
            # The unit had this task before, and its old host is still closing. `advance` tries again.
            self._again[key] = 0.0
            return
        host = self.by_key[key]
        donors, needed, damage = (
            self._fetcher.donors(key),
            self._needed.get(key, 0),
            self._damage.get(key, ""),
        )
        self._opening[key] = host.lane.submit(partial(host.open, donors, needed, damage))

    def _opened(self, key: TaskKey, opening: Job[None]) -> None:
        host = self.by_key[key]
        if not isinstance(opening.exception(), TopicMissingError):
            self._missed.pop(key, None)
        try:
            opening.result()
        except StoreLockedError:
            # Another process still holds the folder.
            self._again[key] = self._clock.now() + _LOCKED_S
        except TransportUnavailableError as error:
            self._open_later(key, error)
        except TopicMissingError as error:
            since_s = self._missed.setdefault(key, self._clock.now())
            if self._clock.now() - since_s < GONE_S:
                self._open_later(key, error)
            else:
                stop_task(host, LogReplacedError(str(host.place.where), error.reason, host.topic_id))
        except OF_ONE_TASK as error:
            self.stop(host, error)
        else:
            if host.state is HostState.FETCHING:
                self._fetch(host)
                return
            if host.position >= self._needed.get(key, 0):
                self._forget_failures(key)
            # It was opened from its own data: an earlier fetch, also one that waits, is of no use any more.
            self._fetcher.stop(key)
            if fetching_folder(host.place.folder).exists():
                host.lane.submit(partial(forget_fetch, host.place.folder))

    def stop(self, host: TaskHost, error: Exception) -> None:
        """Stop a task for an error of its own.

        A task that may be made of another node's data begins again: its log lacks the records that it needs next, this
        node lacks its history, or its data here is damaged. One that ran until now is opened again at once, which finds
        out whether another node gives its data. If that helps nothing, it waits until one may. Further failures for
        the same cause are not logged.
        """
        key = host.place.key
        if isinstance(error, HistoryMissingError) and self._needs_history(host, error):
            return
        ran = host.is_running
        if not _may_be_elsewhere(error, ran=ran):
            stop_task(host, error)
            return
        if isinstance(error, LogHoleError):
            self._needed[key] = error.next_offset
        elif isinstance(error, DAMAGE):
            self._damage[key] = one_line(error)
        vain = self._vain[key] = self._vain.get(key, 0) + 1
        if ran and vain == 1:
            stop_task(host, error, is_news=False)
            self._open_anew(key)
            return
        pause_s = min(_UNSERVED_S * 2.0 ** (vain - 1), _UNSERVED_MOST_S)
        self._unserved[key] = self._clock.now() + pause_s
        stop_task(host, error, is_news=self._is_news(key, f"stopped: {error}"))

    def _needs_history(self, host: TaskHost, error: HistoryMissingError) -> bool:
        """Note that a task needs data which has its history. Returns whether it is opened again, to fetch that."""
        key = host.place.key
        known, self._needed[key] = self._needed.get(key), host.position + 1
        if known == self._needed[key] or not self._has_donor(key):
            return False
        if error.damage:
            _log.warning("%s", error)
        else:
            _log.info("%s: this node lacks history %s", host.place.identity, error.history)
        self._again[key] = self._clock.now()
        return True

    def _fetch(self, host: TaskHost) -> None:
        """Have the data of a task fetched. If no node is known that may give it, look again soon."""
        key, order, damage = host.place.key, host.source.order, host.source.damage
        host.fetching = Fetching()
        if order is None:
            self._again[key] = self._clock.now() + _AWAY_S
        else:
            if not damage and key not in self._said:
                _log.info("%s: its data is fetched from another node", host.place.identity)
            elif damage and self._is_news(key, damage):
                _log.warning(
                    "%s: its data is damaged, and is fetched from another node: %s",
                    host.place.identity,
                    damage,
                )
            self._fetcher.begin(host.place, order)
            self._fetching[key] = self._clock.now()

    def _look_at_fetch(self, key: TaskKey) -> None:
        host, found = self.by_key[key], self._fetcher.look(key)
        if not isinstance(found, FetchEnd):
            host.fetching = found
            if not self._has_no_donor(key, found):
                return
            self._fetcher.stop(key)
            found = FetchEnd("it waited for its turn, and no copy is heard any more that could give it")
        del self._fetching[key]
        pause_s = host.source.note(found)
        host.fetching = Fetching()
        if found.error and self._is_news(key, found.error):
            _log.warning("%s: its data could not be fetched: %s", host.place.identity, found.error)
        self._again[key] = self._clock.now() + pause_s

    def _has_no_donor(self, key: TaskKey, found: Fetching) -> bool:
        """Whether a fetch that has not begun waits in vain, because no node that may give the data has been known for a
        while.
        """
        now_s, known_s = self._clock.now(), self._fetching[key]
        if now_s - known_s < _LOOK_S:
            return False
        if found.donor or self._fetcher.donors(key).known:
            self._fetching[key] = now_s
            return False
        return now_s - known_s >= _NO_DONOR_S

    def _stop_fetches(self, names: Collection[str]) -> None:
        """Stop fetches for tasks that run: the message that stopped them was lost, or an earlier run of the unit has
        ordered them.
        """
        for key, host in self.by_key.items():
            if host.is_running and key.full_name in names:
                self._fetcher.stop(key)

    def _begin_again(self, key: TaskKey) -> None:
        """Replace a host that has failed because nothing had its data, if a donor is known now."""
        self._unserved[key] = self._clock.now() + _UNSERVED_S
        if self._has_donor(key):
            self._open_anew(key)

    def _open_anew(self, key: TaskKey) -> None:
        """Replace the host of a task, and open the new one once the old one is closed."""
        place = self.by_key[key].place
        self._let_go(key)
        [self.by_key[key]] = self._make([place])
        self._open(key)

    def _has_donor(self, key: TaskKey) -> bool:
        """Whether somebody is known who may give the data that a task needs."""
        needed = self._needed.get(key, 0)
        return any(donor.position >= needed for donor in self._fetcher.donors(key).known)

    def _forget_failures(self, key: TaskKey) -> None:
        # What was fetched in place of damaged data may be damaged too, which is found later.
        if self._damage.pop(key, None) is None:
            self._vain.pop(key, None)
        self._needed.pop(key, None)
        self._said.pop(key, None)

    def _is_news(self, key: TaskKey, why: str) -> bool:
        """Whether this cause is not logged yet for a task. From now on it is."""
        cause, said = _VARYING.sub("", why), self._said.setdefault(key, set())
        is_news = cause not in said
        said.add(cause)
        return is_news

    def _open_later(self, key: TaskKey, error: TransportError) -> None:
        _log.warning("%s cannot be opened for now: %s", self.by_key[key].place.identity, error)
        self._again[key] = self._clock.now() + _AWAY_S

    def _let_go(self, key: TaskKey) -> None:
        host = self.by_key.pop(key)
        self._opening.pop(key, None)
        self._again.pop(key, None)
        self._missed.pop(key, None)
        self._unserved.pop(key, None)
        if self._fetching.pop(key, None) is not None:
            self._fetcher.stop(key)
        # The lane runs this after the opening.
        self._closing[key] = host, host.lane.submit(host.close)


def _may_be_elsewhere(error: Exception, *, ran: bool) -> bool:
    """Whether a task that has failed may go on with another node's data. ran: whether it ran; else it was opened."""
    if ran:
        return isinstance(error, (StateLeftBehindError, LogHoleError, *DAMAGE))
    if isinstance(error, LogCutError | LogReplacedError):
        return False
    return isinstance(error, LogGapError | HistoryMissingError | DataDamagedError)


def stop_task(host: TaskHost, error: Exception, *, is_news: bool = True) -> None:
    """Stop a task for an error of its own. An error of the disk is raised instead, so that the unit starts again.

    is_news: whether it is logged.
    """
    if isinstance(error, StorageFailedError) or type(error) is StoreError:
        raise error
    host.fail(error, _remedy(host.place, error), is_news=is_news)


def _remedy(place: Place, error: Exception) -> str:
    """Return what an operator can do, besides what the error says, if the log has lost records or is another one."""
    order = f"`railgun cluster accept-cut {place.key}`"
    if isinstance(error, LogCutError):
        return f". {order} has the task go on without them"
    if isinstance(error, LogReplacedError):
        return f". {order} has the task begin anew, without what was in the old one"
    return ""
