"""The loop of a processor unit, a process that runs copies of tasks.

Each round processes the records that were read from logs, task by task, and does other work that is due. `process.py`
runs the rounds.
"""

import contextlib
import logging
from collections.abc import Collection, Mapping
from functools import partial
from itertools import chain
from pathlib import Path

from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyState
from railgun.cluster.hearing import Timing
from railgun.host.limits import awaited_fill, parted_at_limit
from railgun.host.place import Place, history_folder, task_folder
from railgun.host.task_host import TaskHost
from railgun.messaging.errors import (
    OffsetOutOfRangeError,
    TopicMissingError,
    TransportError,
    TransportUnavailableError,
)
from railgun.messaging.transport import Fetched, TopicPartition, Transport
from railgun.node.ending import DEADLINES
from railgun.registry.follower import Snapshot
from railgun.registry.topics import Topics
from railgun.task.settings import TaskIdentity
from railgun.unit.assignments import Assignments
from railgun.unit.clock import CLOCK, Clock, IdleMeter
from railgun.unit.copies import UnitCopies
from railgun.unit.cut_logs import CutLogs, check_limit
from railgun.unit.dropped_streams import DroppedStreams
from railgun.unit.hosts import UnitHosts
from railgun.unit.last_checkpoints import take_last_checkpoints
from railgun.unit.log_faults import LogFaults
from railgun.unit.moved_copies import MovedCopies, reading_plan
from railgun.unit.positions import Positions
from railgun.unit.query_server import QueryServer
from railgun.unit.replaced_logs import ReplacedLogs
from railgun.unit.sending import Sending
from railgun.unit.snapshots import UnitSnapshots
from reservoir.executor import Lane

# How much is read for each task in each round. A busy task makes the others wait for no longer than processing this
# takes.
ROUND_RECORDS, ROUND_BYTES = 2_048, 4 << 20
# After this time a round ends with the batch that it is processing, because other work waits. So does the background
# work before it.
ROUND_S = 0.05
_IDLE_S, _AWAY_S = 0.05, 0.5
# A silent copy processes its log only up to its limit. It looks this often whether it may process more.
_LIMITED_S = 0.01
_LEAVE_S = Timing().leave_s

_log = logging.getLogger("railgun.unit")


class UnitLoop:
    """Runs the tasks that `assignments` gives this unit in the newest catalogue.

    Threads: any thread may call `follow`. One thread calls everything else.
    copies: decides which of the hosts answer.
    hosts: the hosts of the unit's tasks.
    queries: the value queries to these tasks.
    snapshots: the snapshots of these tasks that were ordered.
    questions: the lane in which the broker is asked about logs.
    removes: whether this unit deletes folders: those of dropped streams, `grace_s` seconds after it hears of the drop,
        and those of copies that have moved to other nodes.
    waiting: measures when the loop may have nothing to do.
    Raises the errors that stop the whole unit: TransportError, and errors of the disk.
    """

    def __init__(
        self,
        transport: Transport,
        topics: Topics,
        assignments: Assignments,
        positions: Positions,
        sending: Sending,
        copies: UnitCopies,
        hosts: UnitHosts,
        folder: Path,
        queries: QueryServer,
        snapshots: UnitSnapshots,
        questions: Lane,
        *,
        removes: bool,
        grace_s: float,
        waiting: IdleMeter,
        clock: Clock = CLOCK,
    ) -> None:
        self._clock = clock
        self._transport, self._topics, self._assignments = transport, topics, assignments
        self._positions, self._sending, self._copies = positions, sending, copies
        self._hosts, self._folder, self._queries = hosts, folder, queries
        self._snapshots = snapshots
        self._removes = removes
        self._waiting_for_more = waiting
        self._newest: Snapshot | None = None
        self._changed = False
        self._assigned_version = 0
        self._snapshot: Snapshot | None = None
        # The records that were fetched and are not processed yet, with the task's position at that time; oldest first.
        self._fetched: dict[TopicPartition, tuple[int, Fetched]] = {}
        # The records that copies may not process yet, and when to look at them again.
        self._held: dict[TopicPartition, tuple[float, Fetched]] = {}
        self._cut_logs = CutLogs(transport, questions, clock)
        self._faults = LogFaults(transport, questions, clock)
        self._replaced = ReplacedLogs(transport, questions, clock)
        # The task whose turn it is to do background work.
        self._turn: TopicPartition | None = None
        self._moved = MovedCopies(
            folder,
            copies.are_elsewhere,
            partial(reading_plan, transport, TopicPartition(topics.assignment, 0)),
            clock,
        )
        # Copies that the plan does not name any more, and that answer until others do.
        self._leaving: set[TaskKey] = set()
        self._dropped = DroppedStreams(folder, grace_s, clock)
        self.records = 0

    def follow(self, snapshot: Snapshot) -> None:
        """Receive a new snapshot of the catalogue. The next round applies it."""
        self._newest = snapshot
        self._changed = True

    @property
    def hosts(self) -> Mapping[TaskKey, TaskHost]:
        """The hosts of the unit's tasks, by key."""
        return self._hosts.by_key

    @property
    def is_ready(self) -> bool:
        """Whether every task that can run has caught up."""
        hosts = self.hosts.values()
        return (
            self._snapshot is not None
            and self._assigned_version > 0
            and self._hosts.are_open
            and (not self._changed or self._has_all())
            and all(host.failure or self._has_caught_up(host) for host in hosts)
        )

    def failed_here(self) -> list[TaskKey]:
        """Return the tasks whose copy has failed in this unit, and that another node could answer."""
        return [
            key
            for key, host in self.hosts.items()
            if host.failure is not None and self._copies.could_another_node_answer(key)
        ]

    def _has_caught_up(self, host: TaskHost) -> bool:
        state = self._copies.state(host)
        return state is CopyState.SILENT or (state is CopyState.ANSWERING and host.is_ready)

    def _has_all(self) -> bool:
        """Whether the unit already has a host for each of its tasks in the newest catalogue.

        A change of metrics adds no task.
        """
        newest = self._newest
        return newest is None or all(key in self.hosts for key in self._assignments.mine(newest.catalog))

    def leave(self, within_s: float = _LEAVE_S) -> None:
        """Go on answering until other copies do, for some seconds at most."""
        until_s = self._clock.now() + within_s
        self._copies.leave()
        self.round()
        while self._copies.answers_anything and self._clock.now() < until_s:
            self.round()

    def round(self) -> None:
        """Do one round: apply changes of the catalogue, process records, and do other work that is due."""
        if self._has_to_reassign():
            self._changed = False
            self._reassign()
        self._hosts.advance()
        # A host that another thread opens during this round waits for the next: whether it answers is not decided yet.
        running = {host.place.where: host for host in self.hosts.values() if host.is_running}
        self._decide()
        self._sending.look(self._copies.reached_since_s)
        has_more = self._work(running)
        may_answer = self._sending.has_room_beside_slow
        self._read(running, 0.0 if has_more or (may_answer and self._queries.has_work) else _IDLE_S)
        if may_answer:
            self._queries.answer(self._hosts.run_isolated)
        still = [host for host in running.values() if host.is_running]
        self._faults.forget_others(still)
        self._stop_wrong_logs(still)
        self._snapshots.step(self.hosts)
        self._positions.note(self.hosts.values())
        if self._removes and self._snapshot is not None:
            self._dropped.remove(self._snapshot.catalog)
            self._moved.look(self._snapshot.catalog.task_keys)

    def _stop_wrong_logs(self, hosts: Collection[TaskHost]) -> None:
        """Stop tasks whose logs lack records that they need, or were replaced by other topics."""
        for host, error in chain(self._replaced.find(hosts), self._cut_logs.find(hosts), self._faults.find()):
            if host.is_running:
                self._hosts.stop(host, error)

    def stop(self, within_s: float = DEADLINES.acknowledged_s) -> None:
        """Wait for the replies, take a checkpoint of every task that runs, and close all tasks.

        A task that is being opened or replaced takes no checkpoint, since the other tasks would wait for it: its last
        one stands. After an error the other tasks are closed all the same; the first error is raised.
        within_s: how many seconds it may wait for all replies and checkpoints together.
        """
        until_s = self._clock.now() + within_s
        for host in self.hosts.values():
            host.sink.give_up(until_s)
        running = [host for host in self.hosts.values() if host.is_running]
        failures = take_last_checkpoints(running, until_s, self._clock)
        try:
            self._positions.say_last(self.hosts.values(), until_s)
        except Exception as error:  # noqa: BLE001 - all tasks are closed before it is raised
            failures.append(error)
        self.abandon()
        if failures:
            raise failures[0]

    def abandon(self) -> None:
        """Close every task without a checkpoint. The next start continues from the last checkpoints."""
        self._hosts.wait()
        for host in self.hosts.values():
            try:
                host.close()
            except Exception as error:  # noqa: BLE001 - something worse is on its way already
                _log.error("%s: %s", host.place.identity, error)

    def _decide(self) -> None:
        """Decide which copies answer. Raises TransportUnavailableError if the unit does not hear the others."""
        try:
            self._copies.decide(self.hosts.values())
        except TransportUnavailableError:
            # A last report saves others the time until they miss this unit.
            with contextlib.suppress(TransportError):
                self._positions.say_last(self.hosts.values(), self._clock.now())
            raise

    def _work(self, running: Mapping[TopicPartition, TaskHost]) -> bool:
        """Let tasks do background work in turn, for ROUND_S. Returns whether there is more work."""
        until_s, has_more = self._clock.now() + ROUND_S, False
        order = list(running)
        turn = self._turn
        first = 0 if turn is None or turn not in running else order.index(turn)
        for where in (*order[first:], *order[:first]):
            if self._clock.now() >= until_s:
                self._turn = where
                return True
            host = running[where]
            has_more |= self._hosts.run_isolated(host, partial(_do_a_slice, host))
            self._positions.note(self.hosts.values())
        return has_more

    def _read(self, running: Mapping[TopicPartition, TaskHost], timeout_s: float) -> None:
        self._drop_outdated(running)
        if not running:
            with self._waiting_for_more.maybe():
                self._clock.sleep(timeout_s)
            return
        self._release_held(running)
        oldest = next(iter(self._fetched), None)
        self._fetch(running, 0.0 if self._fetched else timeout_s)
        ready = [where for where in self._fetched if self._has_room(running[where])]
        if self._fetched and not ready:
            self._clock.sleep(_LIMITED_S)
            return
        until_s = self._clock.now() + ROUND_S
        # The shortest batches come first: their tasks answer events as they happen. Longer batches may have to wait for
        # the next rounds, but the batch that has waited longest is processed in any case.
        for where in sorted(ready, key=lambda each: len(self._fetched[each][1])):
            self._process(running[where], *self._fetched.pop(where))
            self._positions.note(self.hosts.values())
            if self._clock.now() >= until_s:
                break
        if oldest in ready and oldest in self._fetched:
            self._process(running[oldest], *self._fetched.pop(oldest))

    def _has_room(self, host: TaskHost) -> bool:
        """Whether a task may process more: it is silent, or there is room for its replies.

        A task that answers must not wait for room while it processes: the others, and the reports, would wait too.
        """
        return host.limit is not None or host.sink.has_room()

    def _process(self, host: TaskHost, position: int, fetched: Fetched) -> None:
        """Have a task process records that were fetched for it at a position."""
        if not host.is_running or host.position != position:
            return
        self._hosts.run_isolated(host, partial(self._take, host, fetched))

    def _take(self, host: TaskHost, fetched: Fetched) -> None:
        limit = host.limit
        if limit is not None:
            check_limit(host, fetched)
        fetched, later = parted_at_limit(host.task, fetched, None if limit is None else limit.offset)
        host.awaits = None
        if later is not None:
            # If no record may be processed, a metric may have to read its history first.
            host.awaits = None if len(fetched) else awaited_fill(later)
            again_s = self._clock.now() + (_LIMITED_S if host.is_filling else 0.0)
            self._held[later.where] = again_s, later
        host.take(fetched)
        self.records += len(fetched)

    def _drop_outdated(self, running: Mapping[TopicPartition, TaskHost]) -> None:
        """Drop records that wait for tasks that were closed or begin again. Their logs are read again from the tasks'
        positions.
        """
        for where, (position, _) in list(self._fetched.items()):
            if where not in running or running[where].position != position:
                del self._fetched[where]

    def _release_held(self, running: Mapping[TopicPartition, TaskHost]) -> None:
        """Give copies the held records that they may process by now."""
        now_s = self._clock.now()
        for where, (again_s, held) in list(self._held.items()):
            host = running.get(where)
            if host is None or held.offsets[0] != host.position:
                # The task was closed, or begins again: its log is read again from its position.
                del self._held[where]
            elif now_s >= again_s and (host.limit is None or host.limit.offset > host.position):
                del self._held[where]
                self._fetched[where] = host.position, held

    def _fetch(self, running: Mapping[TopicPartition, TaskHost], timeout_s: float) -> None:
        positions = {
            where: host.position
            for where, host in running.items()
            if host.is_running
            and where not in self._held
            and where not in self._fetched
            and not self._faults.is_doubtful(where)
        }
        queries = self._queries.positions(running.values())
        if not positions and not queries:
            if not self._fetched:
                self._clock.sleep(min(timeout_s, _LIMITED_S))
            return
        if not positions:
            timeout_s = min(timeout_s, _LIMITED_S)
        try:
            with self._waiting_for_more.maybe() if timeout_s else contextlib.nullcontext():
                found = self._transport.fetch(positions | queries, ROUND_RECORDS, ROUND_BYTES, timeout_s)
            for fetched in found:
                if not self._queries.take(fetched):
                    self._fetched[fetched.where] = positions[fetched.where], fetched
        except TransportUnavailableError as error:
            _log.warning("nothing can be read for now: %s", error)
            self._clock.sleep(_AWAY_S)
        except (TopicMissingError, OffsetOutOfRangeError) as error:
            if not self._queries.handle_fault(error):
                _log.warning("something is wrong with a log: %s", error)
                self._faults.ask(error, running)

    # --- assignment --------------------------------------------------------------------------------

    def _has_to_reassign(self) -> bool:
        return self._newest is not None and (
            self._changed
            or self._assignments.version != self._assigned_version
            or any(not self._copies.is_held(key) for key in self._leaving)
        )

    def _reassign(self) -> None:
        assert self._newest is not None
        self._snapshot = snapshot = self._newest
        version = self._assignments.version
        planned = self._assignments.mine(snapshot.catalog)
        self._copies.follow(planned)
        self._leaving = {key for key in self.hosts if key not in planned and self._has_to_stay(key, snapshot)}
        for key in set(self.hosts) - set(planned) - self._leaving:
            self._copies.forget(key)
        places = [self._place(snapshot, key) for key in (*planned, *sorted(self._leaving))]
        self._sending.figures.rebalances += self._hosts.assign(places)
        self._dropped.note(snapshot.catalog)
        # This comes last, because a unit is not ready before its first hosts are there.
        self._assigned_version = version

    def _has_to_stay(self, key: TaskKey, snapshot: Snapshot) -> bool:
        """Whether a copy that is not planned any more still has to answer."""
        entry = snapshot.catalog.streams.get(key.stream)
        is_known = entry is not None and entry.created == key.created
        return is_known and self.hosts[key].is_running and self._copies.is_held(key)

    def _place(self, snapshot: Snapshot, key: TaskKey) -> Place:
        identity = TaskIdentity(key.stream, key.partitioner, key.partition, snapshot.keys[key.stream])
        where = TopicPartition(self._topics.tasks(key.stream, key.partitioner), key.partition)
        folder = task_folder(self._folder, key.stream, key.created, key.partitioner, key.partition)
        history = history_folder(self._folder, key.stream, key.partitioner, key.partition)
        plan = self._copies.plan
        return Place(key, identity, where, folder, history, plan.cuts.get(key), plan.gaps.get(key))


def _do_a_slice(host: TaskHost) -> bool:
    """Do some background work of a task. Returns whether there is more."""
    more = host.work()
    return host.take_over.step() or more
