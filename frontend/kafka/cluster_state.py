"""Shows what a front-end knows of its cluster, and passes on orders to the node that leads the cluster.

operations.py calls it in threads: each call reads what is new from the broker.
"""

import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from frontend.backend.cluster import GapOrder
from frontend.kafka.accepted_gaps import GapOutcome, found_gap, shown_before, standing_of, told_gap
from frontend.kafka.accepted_losses import accepted_loss, check_goes_on
from frontend.kafka.followed_plan import PlanNotReadError
from frontend.kafka.task_states import TaskStates
from frontend.problems import OrderStandsError, refusal
from railgun.catalog.catalog import Catalog
from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import Gap
from railgun.cluster.departed import departed
from railgun.cluster.lately import KEPT_MAX, Lately
from railgun.cluster.log_room import LogRoom
from railgun.cluster.observed import ObservedCluster
from railgun.cluster.overview import node_overview, overview
from railgun.cluster.plan import Drain, Plan
from railgun.cluster.policy import ClusterPolicy
from railgun.cluster.records import (
    AcceptedCut,
    AcceptedGap,
    DrainOrder,
    decode_statement,
    encode_statement,
)
from railgun.cluster.what_if import WhatIfError, what_if
from railgun.language.errors import nearest
from railgun.messaging.errors import TransportUnavailableError
from railgun.messaging.kafka.membership import GroupMembers
from railgun.messaging.kafka.settings import KafkaSettings
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.messaging.tail import Tail, each_record, leave_out
from railgun.messaging.transport import Entry, TopicPartition
from railgun.registry.kafka_registry import KafkaRegistry
from railgun.registry.topics import Topics
from railgun.wire.records import Records

# How long to wait for the leader, which decides on an order in its next round, and how often to look.
_DECIDED_S, _AGAIN_S = 10.0, 0.1


class ClusterState:
    """Reads the new records in each call. Any thread may call every method; each raises TransportError.

    states: reads the reports of units, and the plan.
    is_away: returns whether the broker is known not to answer. It is not asked for an overview then.
    """

    def __init__(
        self,
        transport: KafkaTransport,
        kafka: KafkaSettings,
        topics: Topics,
        states: TaskStates,
        is_away: Callable[[], bool] = lambda: False,
    ) -> None:
        self._transport, self._topics, self._states, self._is_away = transport, topics, states, is_away
        self._members = GroupMembers(kafka, topics.nodes)
        # A node that is away is shown for as long as the plan names it.
        policy = ClusterPolicy(replace_after_s=math.inf)
        self._observed = ObservedCluster(policy, time.monotonic(), states.reports)
        self._plan = Plan()
        self._leader: str | None = None
        # Records that cannot be read are left out, since nodes log them.
        self._tail = Tail(transport, {self._nodes: each_record(self._take_statement, leave_out)})
        self._refreshed_s = -math.inf
        self._lately = Lately(time.time_ns() // 1_000_000, time.monotonic())
        self._lock = threading.Lock()

    def overview(
        self,
        catalog: Catalog,
        unanswered: Sequence[TaskKey],
        logs: Mapping[TaskKey, LogRoom],
        lately_max: int = KEPT_MAX,
    ) -> dict[str, Any]:
        """Return what `GET /v1/cluster` shows. While the broker is away, or the plan is not read, it is the last state.

        catalog: the newest that is known.  unanswered: the tasks that no copy answers.  logs: those that are known.
        lately_max: how much of what has happened lately.
        """
        with self._lock:
            outdated = self._read_new()
            self._observed.histories = catalog.histories
            tasks, now_s = catalog.task_keys, time.monotonic()
            found = overview(self._observed, self._plan, self._leader, tasks, now_s, unanswered, logs)
            return {
                **found,
                "warnings": [*outdated, *found["warnings"]],
                "lately": self._lately.shown(now_s, lately_max),
            }

    def _read_new(self) -> list[str]:
        """Read what is new. If that cannot be done, return a warning that what was read before is old."""
        why, has_read = "the broker does not answer", self._refreshed_s > -math.inf
        if not (has_read and self._is_away()):
            try:
                self._refresh()
            except (TransportUnavailableError, PlanNotReadError) as error:
                if not has_read:
                    raise
                if isinstance(error, PlanNotReadError):
                    why = f"{error.reason}, see the log of this front-end"
            else:
                return []
        ago_s = time.monotonic() - self._refreshed_s
        return [f"{why}: nodes and plan are as they were {ago_s:.0f} s ago"]

    def note(self) -> bool:
        """Note what has happened since the last call. It has to be called every few seconds.

        Return False, and note nothing, as long as reports from before the start are read: they would be taken for news.
        """
        if not self._states.has_read_earlier:
            return False
        with self._lock:
            self._refresh()
            self._lately.look(self._observed, self._plan, time.monotonic(), time.time_ns() // 1_000_000)
        return True

    def what_if(
        self, change: str, catalog: Catalog, logs: Mapping[TaskKey, LogRoom], after_records: int
    ) -> dict[str, Any]:
        """Return which copies a change would move. Raises ProblemError.

        logs: those that are known.
        after_records: a copy that lacks more of its log than this gets its data from another node.
        """
        with self._lock:
            self._refresh()
            plan, nodes = self._plan, self._observed.nodes.values()
            if not plan.epoch:
                raise refusal(503, "there is no plan yet: no node has led; is one running?")
            self._observed.histories = catalog.histories
            tasks = dict.fromkeys(catalog.task_keys, False)
            now_s = time.monotonic()
            view = self._observed.view(tasks, plan, now_s, plan.wanted)
            donors = {task: self._observed.donors(task, now_s) for task in tasks}
            sizes = {(disk.task, node.name): disk.size_bytes for node in nodes for disk in node.disk}
        try:
            return what_if(change, plan, view, sizes, donors, logs, after_records)
        except WhatIfError as error:
            raise refusal(422, str(error), [(("query", "what_if"), str(error))]) from None

    def order(
        self, node: str, tasks: Iterable[TaskKey], *, is_on: bool, fewer_copies: bool = False
    ) -> dict[str, Any]:
        """Pass on an order to empty a node or to use it again. Return the node's state once the leader has accepted it.

        Raises ProblemError.
        """
        with self._lock:
            self._refresh()
            self._check_known(node)
            given = self._observed.orders.get(node)
            before_ms = 0 if given is None else given.asked_ms
            was_drained = given is not None and given.is_on
            order = DrainOrder(
                node=node,
                asked_ms=max(time.time_ns() // 1_000_000, before_ms + 1),
                is_on=is_on,
                fewer_copies=fewer_copies,
            )
            if is_on or was_drained:
                self._send(order)
                # Read the order back, so that an earlier one to the node is not taken for it.
                self._refresh()
        # Another order may follow meanwhile: the leader decides on the newest one.
        plan = self._await(lambda plan: _is_decided(plan, node, self._observed.orders.get(node)))
        self._check_outcome(order, plan.drains.get(node))
        with self._lock:
            self._refresh()
            found = node_overview(self._observed, self._plan, node, tasks, time.monotonic())
        return found if is_on else {**found, "was_drained": was_drained}

    def _check_outcome(self, order: DrainOrder, drain: Drain | None) -> None:
        """Raise ProblemError if an order is not followed. drain: the plan's answer to the newest order to the node."""
        node = order.node
        if order.is_on and drain is None:
            # Another that waited may have withdrawn the order, since it was refused.
            why = self._states.plan.refusal(node, order.asked_ms) or "a later order has it used again"
            raise refusal(409, f"{node} is not drained: {why}")
        if order.is_on and drain is not None and drain.refusal:
            if drain.asked_ms == order.asked_ms:
                self._send(DrainOrder(node=node, asked_ms=order.asked_ms + 1, is_on=False))
            raise refusal(409, f"{node} is not drained: {drain.refusal}")
        if not order.is_on and drain is not None and not drain.refusal:
            raise refusal(409, f"{node} is not used again: a later order has it drained")

    def accept_cut(self, task: TaskKey, registry: KafkaRegistry) -> dict[str, Any]:
        """Have a task go on without the records that its log has lost; or begin again, if its log is another one.
        Return which records are lost. An order that was given before is only waited for.

        Raises ProblemError, also if the loss is accepted but the task needs another order to go on, and what `registry`
        raises.
        """
        where = TopicPartition(self._topics.tasks(task.stream, task.partitioner), task.partition)
        with self._lock:
            self._refresh()
            heard = [copy.status for copy in standing_of(self._observed, task, time.monotonic()).heard]
            accepted = self._observed.cuts.get(task)
            copies = [copy.status for copy in self._observed.reports.copies(task)]
            if any(copy.replaced is not None for copy in copies):
                self._check_releases()
            found = accepted_loss(self._transport, registry, task, copies, heard, accepted)
            if found.cut != accepted:
                self._send(AcceptedCut(**task._asdict(), **asdict(found.cut)))
        self._await(lambda plan: found.cut.is_in(plan.cuts.get(task)))
        check_goes_on(self._transport, where, task, found.cut, heard)
        return {
            "stream": task.stream,
            "partitioner": task.partitioner,
            "partition": task.partition,
            "outcome": found.outcome,
            "offset": found.cut.offset,
            "records": found.records,
        }

    def accept_gap(self, task: TaskKey, registry: KafkaRegistry, order: GapOrder) -> dict[str, Any]:
        """Have a task go on behind a gap of its log, with the newest state that is heard, or with that of a node.
        Return which records are lost. An order that was given before is only waited for.

        Raises ProblemError, and what `registry` raises.
        """
        where = TopicPartition(self._topics.tasks(task.stream, task.partitioner), task.partition)
        with self._lock:
            self._refresh()
            standing = standing_of(self._observed, task, time.monotonic())
            stream = registry.snapshot().catalog.entry(task.stream).stream
            found = found_gap(self._transport, where, task, standing, stream.future_limit_ms, order)
            if isinstance(found, Gap):
                outcome, shown, gap = GapOutcome.ACCEPTED_BEFORE, shown_before(found), found
            else:
                self._check_releases()
                outcome, shown = GapOutcome.WOULD_CROSS, found.shown()
                if not order.is_asked:
                    outcome, gap = GapOutcome.CROSSED, told_gap(registry, task, found)
                    self._send(AcceptedGap(**task._asdict(), gap=gap))
        if not order.is_asked:
            self._await(lambda plan: gap.is_crossing_of(plan.gaps.get(task)))
        return {
            "stream": task.stream,
            "partitioner": task.partitioner,
            "partition": task.partition,
            "outcome": outcome,
            **shown,
        }

    @property
    def _nodes(self) -> TopicPartition:
        return TopicPartition(self._topics.nodes, 0)

    def _send(self, order: DrainOrder | AcceptedCut | AcceptedGap) -> None:
        entry = Entry(self._nodes, Records.of([encode_statement(order)]), [order.key])
        self._transport.submit([entry]).result()

    def _await(self, is_decided: Callable[[Plan], bool]) -> Plan:
        """Wait for a plan for which `is_decided` is true, and return it. Raises OrderStandsError."""
        until_s = time.monotonic() + _DECIDED_S
        while not is_decided(plan := self._plan):
            if time.monotonic() > until_s:
                raise OrderStandsError(
                    503,
                    f"the order stands, and no node has decided on it within {_DECIDED_S:g} s: "
                    + (f"{self._leader} leads" if self._leader else "no node leads; is one running?"),
                )
            time.sleep(_AGAIN_S)
            with self._lock:
                self._refresh()
        return plan

    def _check_releases(self) -> None:
        """Raise ProblemError if a live node does not know orders to begin anew, or to cross a gap."""
        if earlier := self._observed.of_earlier_releases():
            raise refusal(
                409,
                f"this order is not known to the release of {', '.join(earlier)}: upgrade or stop these nodes first",
            )

    def _check_known(self, name: str) -> None:
        known = sorted({*self._observed.nodes, *self._observed.members})
        if name not in known:
            near = nearest(name, known)
            hint = f"did you mean {near}?" if near else f"there are: {', '.join(known) or 'none'}"
            raise refusal(404, f"there is no node {name[:80]!r}; {hint}")

    def _refresh(self) -> None:
        # The members are read first, since that soon shows if the broker is away.
        members = self._members.now()
        now_s = time.monotonic()
        self._plan = self._states.plan.newest()
        self._tail.read_to_the_end()
        self._leader, self._refreshed_s = members.leader, now_s
        self._observed.take_members(members.names, now_s)
        # The thread that reads reports forgets units.
        self._observed.forget(departed(self._observed, self._plan, time.time_ns() // 1_000_000).nodes)

    def _take_statement(self, _: int, record: bytes) -> None:
        self._observed.take_statement(decode_statement(record), time.monotonic())


def _is_decided(plan: Plan, node: str, newest: DrainOrder | None) -> bool:
    """Whether a plan follows the newest order to a node, or says why it does not."""
    drain = plan.drains.get(node)
    if newest is None or not newest.is_on:
        return drain is None
    return drain is not None and drain.asked_ms == newest.asked_ms
