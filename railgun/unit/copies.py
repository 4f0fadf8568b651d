"""Reads the plan and the reports of all units, and decides for each copy of a task in this unit whether it answers.

A unit is a process that runs copies of tasks. Its loop calls `decide` in every round; the rules are those of
`railgun/cluster/answering.py`.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence

from railgun.catalog.task_key import TaskKey
from railgun.cluster.answering import Answering
from railgun.cluster.copies import CopyName, CopyReport, CopyState
from railgun.cluster.donors import Donors, donors_of
from railgun.cluster.hearing import Hearing, Timing
from railgun.cluster.plan import Plan
from railgun.cluster.records import NewerRecordError, PlanReader
from railgun.cluster.reports import UnitReport, decode_report
from railgun.cluster.silence import DONORS_HEARD_S, FORGETS_S, FORGOTTEN_S
from railgun.host.task_host import TaskHost
from railgun.messaging.errors import TransportUnavailableError, UnreadableRecordError
from railgun.messaging.tail import each_record
from railgun.messaging.transport import Fetched, TopicPartition
from railgun.unit.clock import CLOCK, Clock
from railgun.unit.report_reader import Heard
from railgun.wording import listed

_log = logging.getLogger("railgun.unit")


class UnitCopies:
    """The copies of a unit's tasks. One thread uses it.

    name: the name of the unit's copies.
    generation: when the unit started, in ms since 1970.
    drain: returns the records that were read from the topics since the last call.
    assignment: the topic of the plan. The other topics have reports.
    timing: its `takeover_s` counts until a plan has another value.
    """

    def __init__(
        self,
        name: CopyName,
        generation: int,
        drain: Callable[[], Sequence[Heard]],
        assignment: str,
        timing: Timing | None = None,
        clock: Clock = CLOCK,
    ) -> None:
        self._name, self._generation, self._drain = name, generation, drain
        self._assignment, self._plan = assignment, PlanReader()
        self._keeps_plan = False
        self._timing, self._clock = timing or Timing(), clock
        self._hearing = Hearing(self._timing, clock.now())
        self._answering: dict[TaskKey, Answering] = {}
        # By task and copy: the newest report, and when it was heard.
        self._heard: dict[TaskKey, dict[CopyName, tuple[float, CopyReport]]] = {}
        self._forgot_s = clock.now()
        self._is_leaving = False
        self._units: tuple[Plan, int] = self.plan, 0

    @property
    def generation(self) -> int:
        """The number of this run of the unit in its reports. It is greater than that of each run before."""
        return self._generation

    @property
    def takeover_s(self) -> float:
        """After this time without a report a unit may count as gone."""
        return self._timing.takeover_s

    @property
    def units(self) -> int:
        """How many units of the cluster have copies."""
        if self._units[0] is not self.plan:
            self._units = self.plan, len(self.plan.units)
        return self._units[1]

    @property
    def plan(self) -> Plan:
        """The newest plan."""
        return self._plan.plan

    @property
    def answers_anything(self) -> bool:
        """Whether a copy of the unit answers."""
        return any(each.is_answering for each in self._answering.values())

    def write(self, interval_s: float) -> int:
        """Return the number of a report that the unit writes now. interval_s: the next one follows within this time."""
        return self._hearing.write(self._clock.now(), interval_s)

    def acknowledge(self, number: int) -> None:
        """Note that a report of this unit is in the log."""
        self._hearing.acknowledge(number, self._clock.now())

    @property
    def reached_since_s(self) -> float:
        """Since when the broker has taken this unit's reports without a pause; infinity if it does not now."""
        return self._hearing.reached_since_s(self._clock.now())

    def follow(self, planned: Mapping[TaskKey, Sequence[CopyName]]) -> None:
        """Take over the plan for this unit: its tasks, each with all its copies in order of preference.

        A copy that is not planned any more leaves. It has to stay as long as `is_held` is true of it.
        """
        now_s = self._clock.now()
        for name, order in planned.items():
            copy = self._answering.get(name)
            is_other = copy is not None and copy.cut != self.plan.cuts.get(name)
            if copy is None or is_other or (copy.is_leaving and not self._is_leaving):
                self._answering[name] = self._made(name, order)
            else:
                copy.follow(order, now_s)
        for name, copy in self._answering.items():
            if name not in planned:
                copy.leave(now_s)

    def leave(self) -> None:
        """Let all copies leave, because the unit stops."""
        self._is_leaving = True
        for copy in self._answering.values():
            copy.leave(self._clock.now())

    def is_held(self, key: TaskKey) -> bool:
        """Whether a copy still answers, so that it cannot be closed yet."""
        copy = self._answering.get(key)
        return copy is not None and copy.is_answering

    def are_elsewhere(self, key: TaskKey, plan: Plan | None = None) -> bool:
        """Whether other nodes have as many caught-up copies of a task as is wanted, and none is planned here.

        Any thread may ask. plan: None: the newest that the unit has taken in.
        """
        plan = plan or self.plan
        planned, heard = plan.copies.get(key, ()), self._heard.get(key, {})
        return 0 < plan.wanted <= len(planned) and all(
            each.copy.node != self._name.node and each.copy in heard and self._is_caught_up(*heard[each.copy])
            for each in planned
        )

    def donors(self, key: TaskKey) -> Donors:
        """Return the copies of other nodes that may give the data of a task."""
        now_s, node = self._clock.now(), self._name.node
        heard = [(self._is_fresh(*each), each[1]) for each in self._heard.get(key, {}).values()]
        listens_s = now_s - self._hearing.silence_since_s(now_s)
        has_others = any(each.copy.node != node for each in self.plan.copies.get(key, ()))
        return donors_of(key, node, heard, may_come=has_others and listens_s < DONORS_HEARD_S)

    def _is_caught_up(self, reported_s: float, report: CopyReport) -> bool:
        return self._is_fresh(reported_s, report) and report.state.is_caught_up

    def _is_fresh(self, reported_s: float, report: CopyReport) -> bool:
        return self._clock.now() - reported_s <= self._timing.silence_s(report.interval_s)

    def forget(self, key: TaskKey) -> None:
        """Forget a copy that was closed."""
        self._answering.pop(key, None)

    def decide(self, hosts: Iterable[TaskHost]) -> None:
        """Take in the plan and the reports that came, and set for each host whether it answers. Called in every round.

        Raises TransportUnavailableError if the unit's own reports do not come back.
        """
        for heard in self._drain():
            self._hearing.look(heard.at_s)
            for fetched in heard.fetched:
                self._take(fetched, heard.at_s)
        now_s = self._clock.now()
        if now_s - self._forgot_s >= FORGETS_S:
            self._forgot_s = now_s
            self._forget_silent(now_s)
        if self._hearing.is_deaf(now_s):
            raise TransportUnavailableError(
                self._name.node,
                f"what this unit reports has not come back for {self._timing.deaf_s:g} s: it hears no other unit",
                "It is started again",
            )
        begun: list[str] = []
        ended: list[str] = []
        # The same for all hosts of a unit: their replies go through one producer.
        drops_replies: bool | None = None
        for host in hosts:
            copy = self._answering.get(host.place.key)
            if copy is None:
                continue
            answered = copy.is_answering
            if not host.is_running:
                copy.is_answering = False
            elif host.is_filling:
                # The copy can process no record for now: another copy may have filled the metric already.
                copy.is_answering, host.limit = False, copy.limit
            else:
                if drops_replies is None:
                    drops_replies = host.sink.drops_replies()
                answers = copy.decide(
                    now_s, host.position, host.position + host.lag, drops_replies=drops_replies
                )
                host.limit = None if answers else copy.limit
                warming = host.task.metrics.warming
                host.may_warm = copy.filled_elsewhere(warming, now_s) if answers and warming else ()
            if copy.is_answering is not answered:
                (ended if answered else begun).append(str(host.place.key))
        self._log_changes(begun, ended)

    def _log_changes(self, begun: Sequence[str], ended: Sequence[str]) -> None:
        """Log which copies begin to answer and which end. Operators read the times of a failover from these lines."""
        if begun:
            _log.info("%s answers from now on: %s", self._name, listed(sorted(begun)))
        if ended:
            _log.info("%s answers no more: %s", self._name, listed(sorted(ended)))

    def state(self, host: TaskHost) -> CopyState:
        """Return the state that the copy of a host reports."""
        if host.failure is not None:
            return CopyState.FAILED
        copy = self._answering.get(host.place.key)
        if copy is None or not host.is_running or host.is_filling:
            return CopyState.BEHIND
        return copy.state(self._clock.now())

    def could_another_node_answer(self, key: TaskKey) -> bool:
        """Whether a copy on another node could answer a task. True until the reports of all units have been read."""
        if not self._hearing.is_complete(self._clock.now()):
            return True
        heard = self._heard.get(key, {}).items()
        return any(copy.node != self._name.node and self._is_caught_up(*each) for copy, each in heard)

    def is_leaving(self, host: TaskHost) -> bool:
        """Whether the copy of a host is about to close."""
        copy = self._answering.get(host.place.key)
        return copy is not None and copy.is_leaving

    def _made(self, name: TaskKey, order: Sequence[CopyName]) -> Answering:
        made = Answering(self._name, order, self._timing, self._hearing, self.plan.cuts.get(name))
        for at_s, report in sorted(self._heard.get(name, {}).values(), key=lambda each: each[0]):
            if _is_about_its_log(report, made):
                made.hear(report, at_s)
        return made

    def _forget_silent(self, now_s: float) -> None:
        """Forget copies that were not heard for a day and are not in the plan. Of each planned task, the copy that has
        replied to most is kept: other copies may not answer below its position.
        """
        for task, heard in list(self._heard.items()):
            planned = self.plan.copies.get(task)
            kept = {each.copy for each in planned or ()}
            if planned is not None:
                kept.add(max(heard, key=lambda copy: heard[copy][1].replied))
            for copy in [copy for copy, (at_s, _) in heard.items() if now_s - at_s >= FORGOTTEN_S]:
                if copy not in kept:
                    del heard[copy]
                    if task in self._answering:
                        self._answering[task].forget(copy)
            if not heard:
                del self._heard[task]

    def _take(self, fetched: Fetched, at_s: float) -> None:
        is_plan = fetched.where.topic == self._assignment
        take = self._take_plan if is_plan else lambda _, record: self._take_report(record, at_s)
        each_record(take, self._leave_out)(fetched)

    def _leave_out(self, where: TopicPartition, error: UnreadableRecordError) -> None:
        if not isinstance(error, NewerRecordError):
            _log.warning("%s: a record is left out: %s", where, error)
        elif not self._keeps_plan:
            self._keeps_plan = True
            _log.warning("%s: this unit keeps plan %d", error, self.plan.epoch)

    def _take_plan(self, _: int, record: bytes) -> None:
        if not self._plan.take(record):
            return
        self._keeps_plan = False
        if self._plan.policy is not None:
            self._timing.takeover_s = self._plan.policy.takeover_s

    def _take_report(self, record: bytes, at_s: float) -> None:
        report = decode_report(record)
        if report is not None:
            self._hear(report, at_s)

    def _hear(self, unit: UnitReport, at_s: float) -> None:
        if unit.copy == self._name and unit.generation == self._generation:
            self._hearing.read(unit.number, at_s)
        elif unit.copy == self._name and unit.generation > self._generation:
            # The clock has gone back since an earlier run. Others would follow that run's reports, not these.
            self._generation = unit.generation + 1
        for name, report in unit.by_task():
            heard = self._heard.setdefault(name, {})
            before = heard.get(report.copy)
            # A report of an earlier run is out of date, except for the offset up to which that run replied.
            if before is None or report.generation >= before[1].generation:
                heard[report.copy] = at_s, report
            copy = self._answering.get(name)
            if copy is not None and _is_about_its_log(report, copy):
                copy.hear(report, at_s)


def _is_about_its_log(report: CopyReport, copy: Answering) -> bool:
    """Whether a report is about the log of a copy. Points of a topic that was replaced say nothing."""
    return copy.cut is None or not copy.cut.topic_id or copy.cut.topic_id == report.topic_id
