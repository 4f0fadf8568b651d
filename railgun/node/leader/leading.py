"""Reports a node and its data to the cluster, and writes the cluster's plan while the node leads.

`process.py` runs its rounds.
"""

import logging
import math
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import fields
from itertools import chain

import msgspec

from railgun.catalog.catalog import Catalog
from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyName
from railgun.cluster.departed import Departed, departed
from railgun.cluster.health import ClusterHealth, cluster_health
from railgun.cluster.log_room import LogBounds, LogRoom, log_rooms
from railgun.cluster.observed import ObservedCluster
from railgun.cluster.plan import Plan
from railgun.cluster.policy import ClusterPolicy
from railgun.cluster.records import (
    NewerRecordError,
    NodeRecord,
    PlanReader,
    Statement,
    decode_statement,
    drain_key,
    encode_plan,
    encode_statement,
)
from railgun.cluster.reports import encode_report, unit_key
from railgun.cluster.silence import GONE_MS, SAID_AGAIN_S
from railgun.cluster.steps import next_plan
from railgun.messaging.errors import (
    TransportError,
    TransportUnavailableError,
    UnreadableRecordError,
    WriterFencedError,
)
from railgun.messaging.kafka.membership import GroupMembership
from railgun.messaging.kafka.sole_writer import KafkaSoleWriter
from railgun.messaging.tail import Tail, each_record, logged
from railgun.messaging.transport import Entry, Fetched, TopicPartition, Transport
from railgun.node.identity import NodeRefusedError
from railgun.node.leader.clock_check import ClockCheck
from railgun.node.leader.cluster_log import ClusterLog
from railgun.node.leader.start_checks import name_in_use
from railgun.node.parent import UnitEnded
from railgun.registry.topics import Topics
from railgun.wire.records import Records
from railgun.wording import listed

# A round waits for records no longer than this.
_WAIT_S = 0.1
# How often the group is asked for its members.
_MEMBERS_S = 1.0
# Plans follow one another no faster than this, and take a tenth of the time, however many tasks there are.
_PLAN_S, _REST = 0.1, 10.0
# How often the leader deletes the records of nodes and units that are gone for good.
_TIDY_S = 60.0
# How often the leader looks whether logs are about to lose what copies need.
_LOGS_S = 60.0

_log = logging.getLogger("railgun.node")


class Leading:
    """A node's part in the group of nodes. One thread uses it.

    transport: no other part of the process uses it.
    catalog: returns the present catalogue.
    record: returns the present description of the node.
    make_writer: makes the writer of plans, which shuts out all earlier writers.
    now_s: a clock that never goes back, in seconds.
    ended: units of this node whose processes have ended. Any thread may append to it; each round empties it.
    checked_end: the offset up to which the topic `nodes` was read before this node took its name; infinity if no other
        node can have the name.
    log_bounds: returns where the logs of tasks begin and end, as far as that is known.
    """

    def __init__(
        self,
        transport: Transport,
        topics: Topics,
        membership: GroupMembership,
        observed: ObservedCluster,
        catalog: Callable[[], Catalog],
        record: Callable[[], NodeRecord],
        make_writer: Callable[[], KafkaSoleWriter],
        now_s: Callable[[], float],
        ended: deque[UnitEnded],
        checked_end: float = math.inf,
        log_bounds: Callable[[], Mapping[TaskKey, LogBounds]] = dict,
    ) -> None:
        self._transport, self._topics, self._membership = transport, topics, membership
        self._observed, self._catalog, self._record = observed, catalog, record
        self._make_writer, self._now_s, self._ended = make_writer, now_s, ended
        self._assignment = TopicPartition(topics.assignment, 0)
        self._nodes = TopicPartition(topics.nodes, 0)
        self._reports = TopicPartition(topics.positions, 0)
        self._said: NodeRecord | None = None
        self._said_s = -math.inf
        # If another node has taken this one's name between these two offsets, it was first.
        self._checked_end, self._said_at = checked_end, math.inf
        self._log_bounds = log_bounds
        self._plan = PlanReader()
        # Why the newest plan cannot be read. This node must not lead then: it would overwrite the plan of the others.
        self._unread = ""
        self._writer: KafkaSoleWriter | None = None
        self._tail = Tail(
            transport,
            {
                self._assignment: each_record(self._take_plan, self._leave_out_plan),
                self._nodes: self._take_statements,
                self._reports: each_record(
                    lambda _, record: observed.take_report(record, now_s()), logged(_log)
                ),
            },
        )
        self._ends: dict[TopicPartition, int] = {}
        self._members_s = -math.inf
        self._members: set[str] = set()
        self._other_policy: ClusterPolicy | None = None
        self._cluster_log, self._clock_check = ClusterLog(), ClockCheck()
        self._due_s = 0.0
        self._tidied_s, self._logs_seen_s = now_s(), -math.inf

    @property
    def leads(self) -> bool:
        """Whether this node writes the plan."""
        return self._writer is not None

    @property
    def plan(self) -> Plan:
        """The newest plan that was read or written."""
        return self._plan.plan

    @property
    def clock_ahead_ms(self) -> int | None:
        """How far the clock of this machine is ahead of the brokers'; None while that is not known."""
        return self._clock_check.ahead_ms

    def health(self) -> ClusterHealth | None:
        """Return the health of the cluster, if this node leads it."""
        if not self.leads:
            return None
        return cluster_health(self._observed, self.plan, self._now_s(), self._logs())

    def _logs(self) -> dict[TaskKey, LogRoom]:
        return log_rooms(self._log_bounds(), self._observed.reports, self.plan, _now_ms())

    def round(self) -> None:
        """Take part in the group, read new records, and write the next plan if this node leads.

        Raises TransportError for a failure that trying again does not cure, and NodeRefusedError.
        """
        self._membership.poll(0)
        try:
            self._say()
            self._read()
            self._report_ended()
            self._look_at_members()
            if self._is_informed():
                if self._unread:
                    self._lead_no_more("it cannot read the newest plan")
                elif self._membership.leads:
                    self._lead()
                else:
                    self._tidy()
                    self._compare_policies()
        except TransportUnavailableError as error:
            _log.warning("the cluster cannot be led or followed for now: %s", error)
            # After an error a writer cannot go on.
            self._lead_no_more("the broker does not answer")
            self._membership.poll(_MEMBERS_S)
        if not self._membership.leads:
            self._lead_no_more("the lead has gone to another node")

    def resign(self) -> None:
        """Write no more plans, because the process ends."""
        self._lead_no_more("it stops")

    def _lead_no_more(self, why: str) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()
            _log.info("this node leads no more: %s", why)

    def _say(self) -> None:
        """Write the node's description to the topic `nodes` if it has changed, or was written too long ago."""
        record, now_s = msgspec.structs.replace(self._record(), unread=self._unread), self._now_s()
        if record != self._said or now_s - self._said_s > SAID_AGAIN_S:
            said = msgspec.structs.replace(record, said_ms=_now_ms())
            entry = Entry(self._nodes, Records.of([encode_statement(said)]), [record.key])
            (at,) = self._transport.submit([entry]).result()
            self._said, self._said_s, self._said_at = record, now_s, min(self._said_at, at)

    def _report_ended(self) -> None:
        """Write last reports for units that have ended. Without these, others would wait until they miss the units."""
        while self._ended and self._has_read_all():
            ended = self._ended.popleft()
            newest = self._observed.reports.last(CopyName(self._record().name, ended.unit))
            last = None if newest is None or newest.generation > ended.at_ms else newest.ended()
            if last is not None:
                entry = Entry(self._reports, Records.of([encode_report(last)]), [unit_key(*last.copy)])
                self._transport.submit([entry])

    def _read(self) -> None:
        if not self._ends:
            self._tail.begin()
            self._ends = {where: self._transport.end_offset(*where) for where in self._tail.offsets}
        self._tail.look(_WAIT_S)

    def _take_plan(self, _: int, record: bytes) -> None:
        if self._plan.take(record):
            self._unread = ""

    def _leave_out_plan(self, where: TopicPartition, error: UnreadableRecordError) -> None:
        if not isinstance(error, NewerRecordError):
            logged(_log)(where, error)
        elif not self._unread:
            self._unread = str(error)
            _log.warning(
                "%s: this node does not lead, and its units follow the last plan that they could read; start a release "
                "that reads it",
                error,
            )

    def _take_statements(self, fetched: Fetched) -> None:
        # Of several records it is known only when the first one was appended.
        appended_ms = fetched.appended_ms if len(fetched) == 1 else 0

        def take(at: int, record: bytes) -> None:
            said = decode_statement(record)
            self._check_name(said, at)
            self._observed.take_statement(said, self._now_s())
            if appended_ms and isinstance(said, NodeRecord) and self._is_own(said):
                self._clock_check.take(said, appended_ms)

        each_record(take, logged(_log))(fetched)

    def _is_own(self, said: NodeRecord) -> bool:
        own = self._said
        return own is not None and (said.name, said.incarnation) == (own.name, own.incarnation)

    def _check_name(self, said: Statement, at: int) -> None:
        """Raise NodeRefusedError if another node has taken this one's name at the same time, and was first."""
        own = self._said
        if own is None or not isinstance(said, NodeRecord) or said.name != own.name:
            return
        if said.folder != own.folder and self._checked_end <= at < self._said_at:
            raise NodeRefusedError(name_in_use(said.host, own.name))

    def _compare_policies(self) -> None:
        """Log once if the configuration of this node differs from the leader's, which counts for all nodes."""
        policy, own = self.plan.policy, self._observed.policy
        if policy in (None, own, self._other_policy):
            return
        self._other_policy = policy
        differing = ", ".join(
            f"{each.name} is {getattr(policy, each.name)}, here {getattr(own, each.name)}"
            for each in fields(own)
            if getattr(policy, each.name) != getattr(own, each.name)
        )
        _log.warning(
            "the configuration of this node differs from the leader's, which counts for all nodes: %s; "
            "set [cluster] alike on all nodes",
            differing,
        )

    def _is_informed(self) -> bool:
        """Whether all records from before this process began were read, and the members are known."""
        return bool(self._members) and self._has_read_all()

    def _has_read_all(self) -> bool:
        return self._tail.has_reached(self._ends)

    def _look_at_members(self) -> None:
        now_s = self._now_s()
        if now_s - self._members_s < _MEMBERS_S:
            return
        self._members_s = now_s
        try:
            before, self._members = self._members, self._membership.members()
        except TransportError as error:
            _log.debug("who the members are is not known: %s", error)
        else:
            self._observed.take_members(self._members, now_s)
            if self.leads:
                self._cluster_log.members(before, self._members)

    def _lead(self) -> None:
        """Begin to lead; in later rounds, write the next plan if it is due and differs from this one."""
        if self._writer is None:
            try:
                self._writer = self._make_writer()
            except WriterFencedError:
                _log.info("another node leads")
                return
            # The plans of earlier leaders are read first.
            self._ends[self._assignment] = self._transport.end_offset(*self._assignment)
            self._tidied_s = -math.inf
            _log.info(
                "this node leads, from plan %d on; nodes that live: %s",
                self.plan.epoch,
                listed(sorted(self._members)),
            )
            return
        self._tidy()
        self._look_at_logs()
        if self._now_s() < self._due_s:
            return
        tasks, started_s = self._tasks(), self._now_s()
        self._observed.histories = self._catalog().histories
        view = self._observed.view(tasks, self.plan, started_s)
        plan = next_plan(self.plan, view)
        self._due_s = started_s + max(_PLAN_S, _REST * (self._now_s() - started_s))
        if plan is self.plan:
            return
        records = encode_plan(plan, self.plan, self._record().incarnation)
        try:
            self._writer.append(self._assignment, records)
        except WriterFencedError:
            self._lead_no_more("another node leads")
            return
        before = self.plan
        for _, record in records:
            self._plan.take(record)
        self._cluster_log.plan(before, plan, self._members, started_s)

    def _tidy(self) -> None:
        """Forget nodes and units that are gone for good. If this node leads, it deletes their records.

        A leader does so at once. A node that follows waits at first: it may be about to lead, and what it had
        forgotten it could not delete.
        """
        now_s, now_ms, reports = self._now_s(), _now_ms(), self._observed.reports
        if now_s - self._tidied_s < _TIDY_S:
            return
        self._tidied_s = now_s
        if not self.leads:
            # A day later than the leader does: the next leader may have to delete these records.
            reports.forget_silent(self.plan.units, now_s)
            self._observed.forget(departed(self._observed, self.plan, now_ms - GONE_MS).nodes)
            return
        # Of units, only those are forgotten whose records are deleted.
        reports.forget_silent(reports.units(), now_s)
        gone = departed(self._observed, self.plan, now_ms)
        if gone:
            self._delete_records(gone)
            self._observed.forget(gone.nodes, gone.units)

    def _delete_records(self, gone: Departed) -> None:
        said = list(chain.from_iterable((name.encode(), drain_key(name)) for name in sorted(gone.nodes)))
        reported = [unit_key(*unit) for unit in sorted(gone.units)]
        self._transport.submit(
            [
                Entry(where, Records.of([b""] * len(keys)), keys)
                for where, keys in ((self._nodes, said), (self._reports, reported))
                if keys
            ]
        ).result()
        _log.info("forgotten: %s", ", ".join([*sorted(gone.nodes), *map(str, sorted(gone.units))]))

    def _look_at_logs(self) -> None:
        """Log a warning if logs may soon begin behind what copies need."""
        now_s, logs = self._now_s(), self._log_bounds()
        if logs and now_s - self._logs_seen_s >= _LOGS_S:
            self._logs_seen_s = now_s
            self._cluster_log.logs(self._logs(), now_s)

    def _tasks(self) -> Mapping[TaskKey, bool]:
        """Return all tasks. True: nobody can have data of the task, since no plan and no report has named it."""
        placed, reports = self.plan.copies, self._observed.reports
        return {
            name: not (placed.get(name) or any(reports.copies(name))) for name in self._catalog().task_keys
        }


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
