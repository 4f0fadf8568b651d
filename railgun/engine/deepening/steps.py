"""The steps of a deepening, each of them a call of the engine: begin, install, take over, finish, give up.

A deepening gives a live stream older events than its log has. For each task a successor is built, a task with the older
events, which then replaces it. `Engine` and installing.py call the steps.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from railgun.catalog.catalog import StreamEntry
from railgun.catalog.changes import Change, Deepen
from railgun.engine.deepening.deepening import Deepening, DeepeningPreparation
from railgun.engine.deepening.deepenings import Deepenings
from railgun.engine.errors import HistoryRefusedError
from railgun.engine.history import history_id
from railgun.engine.live_stream import LiveStream
from railgun.engine.opening import check_new_tasks, task_count
from railgun.engine.status import DeepeningStatus
from railgun.engine.stream_hosts import StreamHosts
from railgun.history.build import HistoryPlan
from railgun.host.task_host import TaskHost
from railgun.registry.catalog_log import CatalogLog
from railgun.registry.evolution import stream_entry
from railgun.registry.origin import Origin


class DeepeningSteps:
    """Deepens the streams of an engine. One thread at a time may use it.

    deepenings: those that are under way.
    changes: the catalogue's log.
    live: the streams that are open, by name.
    change: records changes in the catalogue's log, and applies them in every task.
    """

    def __init__(
        self,
        deepenings: Deepenings,
        changes: CatalogLog,
        live: Mapping[str, LiveStream],
        change: Callable[[Sequence[Change], Origin], None],
    ) -> None:
        self._deepenings, self._changes, self._live, self._change = deepenings, changes, live, change
        self._turn = 0

    # --- building ----------------------------------------------------------------------------------

    def begin(self, stream: str, cut_ms: int | None) -> tuple[DeepeningPreparation, HistoryPlan] | None:
        """Begin a deepening. Returns what is to be written, with the plan; None if it has begun already.

        cut_ms: where the older history ends, in ms; None chooses the least time that leaves no gap.
        Raises UnknownNameError, HistoryRefusedError, OSError.
        """
        entry, hosts = self._entry(stream), list(self._live[stream].hosts)
        place = self._changes.catalog.last_place
        return self._deepenings.begin(entry, self._changes.keys[stream], hosts, cut_ms, place)

    def begun(self, stream: str) -> None:
        """Note that writing the plan of a stream's deepening has ended, with or without an error."""
        self._deepenings.begun(stream, self._changes.catalog.streams.get(stream))

    def plan(self, stream: str) -> HistoryPlan:
        """Return the plan of a deepening that has begun. Raises HistoryRefusedError if there is none, or if it is
        damaged.
        """
        return self._deepenings.wanted(stream).plan

    def status(self, stream: str) -> DeepeningStatus | None:
        """Return the status of a stream's deepening; None if none is under way. Raises UnknownNameError."""
        entry, found = self._entry(stream), self._deepenings.of(stream)
        if found is None:
            return None
        plan, hosts = found.plan, self._live[stream].hosts
        state = "installing" if found.is_installing or _has_taken_over(entry, found) else "building"
        if found.damage is not None:
            state = "damaged"
        failures = [host.take_over.failure for host in hosts if host.take_over.failure is not None]
        failure = found.damage or next(iter(failures), None)
        behind = sum(s.behind for host in hosts if (s := host.take_over.successor) is not None)
        return DeepeningStatus(stream, plan.history, plan.cut_ms, state, str(found.folder), behind, failure)

    def give_up(self, stream: str) -> Deepening | None:
        """Give up a deepening. Returns it, for the caller to remove its files; None if none is under way.

        Raises UnknownNameError, HistoryRefusedError, OSError.
        """
        entry, found = self._entry(stream), self._deepenings.of(stream)
        if found is None:
            return None
        if found.is_installing:
            raise HistoryRefusedError(f"{stream}: its deepening is being installed; wait for that")
        if _has_taken_over(entry, found):
            raise HistoryRefusedError(
                f"{stream}: the tasks of its deepening answer already; install it again to bring it to its end"
            )
        found.rename_for_deletion(history_id(entry))
        return self._deepenings.forget(stream)

    # --- installing --------------------------------------------------------------------------------

    def begin_installing(self, stream: str) -> Deepening:
        """Return the deepening that the caller will install. Its tasks may open their successors from now on.

        Raises UnknownNameError, HistoryRefusedError, OpenFilesError.
        """
        entry = self._entry(stream)
        deepening = self._deepenings.wanted(stream)
        if deepening.is_installing:
            raise HistoryRefusedError(f"{stream}: its deepening is being installed already")
        if not _has_taken_over(entry, deepening):
            deepening.check_built()
            existing, new = task_count(self._changes.catalog.streams.values()), task_count([entry])
            check_new_tasks(f"the deepening of {stream}", existing, new)
        deepening.begin_installing()
        for host in self._live[stream].hosts:
            host.take_over.look_soon()
        return deepening

    def take_over(self, deepening: Deepening, origin: Origin) -> bool:
        """Let the successors take over if all of them are near the ends of their logs. Returns whether they have
        taken over.

        origin: who asked for it.
        Raises HistoryRefusedError if the stream was dropped. If a successor cannot follow, raises the error that
        stops it.
        """
        self._deepenings.check_under_way(deepening)
        stream = deepening.stream
        if _has_taken_over(self._changes.catalog.streams[stream], deepening):
            return True
        hosts = self._live[stream].hosts
        _check_following(hosts, deepening)
        successors = [host.take_over.successor for host in hosts]
        if not all(each is not None and each.is_near for each in successors):
            return False
        for each in successors:
            assert each is not None
            each.catch_up()
        plan, place = deepening.plan, self._changes.catalog.last_place + 1
        self._change([Deepen(place, stream, plan.history, plan.cut_ms)], origin)
        return True

    def is_settled(self, deepening: Deepening) -> bool:
        """Whether the places of all tasks that took over point to their new folders.

        Raises HistoryRefusedError if the stream was dropped. If a task could not be moved, raises the error.
        """
        self._deepenings.check_under_way(deepening)
        hosts = self._live[deepening.stream].hosts
        _check_following(hosts, deepening)
        return not any(host.take_over.is_moving for host in hosts)

    def finish_installing(self, deepening: Deepening) -> None:
        """Note that a deepening is installed, and forget it. The caller must then delete what is no longer needed, with
        `remove`.

        Raises OSError.
        """
        if self._deepenings.of(deepening.stream) is deepening:
            deepening.rename_for_deletion(deepening.plan.history)
            self._deepenings.forget(deepening.stream)

    def installing_failed(self, deepening: Deepening) -> None:
        """Note that installing a deepening has failed. A caller may try again.

        The next attempt starts from the beginning, unless the successors have taken over already.
        """
        deepening.is_installing, deepening.offer = False, None
        if self._deepenings.of(deepening.stream) is deepening:
            for host in self._live[deepening.stream].hosts:
                host.take_over.withdraw()

    def finish_if_taken_over(self, stream: str) -> None:
        """At the start of an engine, finish a deepening whose tasks have all taken over."""
        deepening, hosts = self._deepenings.of(stream), self._live[stream].hosts
        if deepening is None or deepening.damage is not None:
            return
        if any(host.task.history != deepening.plan.history for host in hosts):
            return
        for host in hosts:
            host.take_over.settle(host.task)
        if not any(host.take_over.is_moving for host in hosts):
            self.finish_installing(deepening)
            deepening.remove()

    # --- following ---------------------------------------------------------------------------------

    def follow(self) -> bool:
        """Let one successor do a brief step, in turns, and with it each successor that would fall behind otherwise.

        Returns whether there is more to do now.
        """
        following = [host for host in self._hosts if host.take_over.successor is not None]
        self._turn += 1
        more = False
        for number, host in enumerate(following):
            successor = host.take_over.successor
            if number == self._turn % len(following) or (successor is not None and successor.has_backlog):
                more |= host.take_over.step()
        behind = [s.behind for host in following if (s := host.take_over.successor) is not None]
        return more or any(behind)

    @property
    def _hosts(self) -> Iterator[TaskHost]:
        return (host for live in self._live.values() for host in live.hosts)

    def _entry(self, stream: str) -> StreamEntry:
        return stream_entry(self._changes.catalog, stream)


def _has_taken_over(entry: StreamEntry, deepening: Deepening) -> bool:
    return history_id(entry) == deepening.plan.history


def _check_following(hosts: StreamHosts, deepening: Deepening) -> None:
    """Raise the error of a successor that cannot be opened, cannot follow or cannot be moved, if it belongs to the
    present offer.
    """
    for host in hosts:
        error = host.take_over.error
        if error is not None and host.take_over.offer == deepening.offer:
            raise error
