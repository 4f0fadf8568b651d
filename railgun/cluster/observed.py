"""Collects what nodes, units and Kafka's group say of the cluster. Pure: times are handed in.

The leader plans by it, and front-ends show it. The caller reads the records, and hands them over.
"""

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyName, CopyState, Cut, Gap
from railgun.cluster.histories import Histories, Unable, nodes_without
from railgun.cluster.inventory import ClusterNode
from railgun.cluster.lost_copies import Losses
from railgun.cluster.plan import Copies, Plan
from railgun.cluster.policy import ClusterPolicy
from railgun.cluster.progress import Progress
from railgun.cluster.records import (
    AcceptedCut,
    AcceptedGap,
    DrainOrder,
    FrontEndRecord,
    NodeRecord,
    Statement,
)
from railgun.cluster.report_table import ReportedCopy, ReportTable
from railgun.cluster.reports import CopyStatus, UnitReport
from railgun.cluster.silence import ADVANCES_S, STARTS_S, WELL_AGAIN
from railgun.cluster.view import ClusterView, CopyView, NodeView, TaskView


class ObservedCluster:
    """Collects what nodes, units and the group report. One thread uses it; times are seconds of the monotonic clock.

    policy: the policy in the configuration of this process.
    began_s: when the caller began to read.
    nodes: what each node says of itself.
    members: the nodes that live.
    orders: the newest order to each node.
    cuts: by task, the loss of records of its log that an operator has accepted last.
    gaps: by task, the gap of its log that an operator has accepted last.
    reports: the newest report of each copy. Another object may fill this table.
    histories: the histories that tasks have from before their logs. The owner of the catalogue sets this.
    """

    def __init__(self, policy: ClusterPolicy, began_s: float, reports: ReportTable | None = None) -> None:
        self.policy, self._began_s = policy, began_s
        self.nodes: dict[str, NodeRecord] = {}
        self._on_disk: dict[str, frozenset[TaskKey]] = {}
        self._left_s: dict[str, float] = {}
        self.members: set[str] = set()
        self.orders: dict[str, DrainOrder] = {}
        self.cuts: dict[TaskKey, Cut] = {}
        self.gaps: dict[TaskKey, Gap] = {}
        self.histories: Histories = {}
        self.reports = ReportTable() if reports is None else reports
        self._progress = Progress(policy.replace_after_s)
        self._came_s: dict[str, float] = {}
        # When the newest run of each node was first heard.
        self._started_s: dict[str, float] = {}
        # By copy: the data folder that the plan names, and since when it does.
        self._planned: dict[tuple[TaskKey, CopyName], tuple[str, float]] = {}

    def take_statement(self, record: Statement, now_s: float) -> None:
        """Take in an order, an accepted cut or gap, or a node's record about itself.

        Records of a node's earlier runs are ignored.
        """
        if isinstance(record, DrainOrder):
            self.orders[record.node] = record
            return
        if isinstance(record, AcceptedCut):
            self.cuts[record.task] = record.cut.after(self.cuts.get(record.task))
            return
        if isinstance(record, AcceptedGap):
            self.gaps[record.task] = record.gap.after(self.gaps.get(record.task))
            return
        if isinstance(record, FrontEndRecord):
            # Only `CatalogReaders` needs the records of front-ends.
            return
        known = self.nodes.get(record.name)
        if known is None or record.incarnation > known.incarnation:
            self._started_s[record.name] = now_s
        if known is None or record.incarnation >= known.incarnation:
            self.nodes[record.name] = record
            self._on_disk[record.name] = frozenset(copy.task for copy in record.disk)
            self._left_s.setdefault(record.name, now_s)

    def take_members(self, names: Iterable[str], now_s: float) -> None:
        """Take in which nodes are members of the group now."""
        before, self.members = self.members, set(names)
        self._came_s |= dict.fromkeys(self.members - before, now_s)
        for name in self.nodes:
            if name in self.members:
                self._left_s.pop(name, None)
            else:
                self._left_s.setdefault(name, now_s)

    def forget(self, nodes: Collection[str], units: Collection[CopyName] = ()) -> None:
        """Drop the records of nodes and the reports of units that are gone for good."""
        for name in nodes:
            for said in (self.nodes, self._on_disk, self._left_s, self._came_s, self._started_s, self.orders):
                said.pop(name, None)
        for unit in units:
            self.reports.forget(unit)
        self._progress.forget(nodes, units)

    def take_report(self, record: bytes, now_s: float) -> None:
        """Take in a report of a unit. Raises ReportError."""
        report = self.reports.take(record, now_s)
        if report is not None:
            self._progress.hear(report, now_s)

    def view(
        self, tasks: Mapping[TaskKey, bool], plan: Plan, now_s: float, copies: int | None = None
    ) -> ClusterView:
        """Return the view from which `next_plan` computes the steps from a plan.

        A node that is away counts for a while, if the plan names it; any other may have gone long ago. It does not
        count if a live node has its data folder, because the node has another name now.
        tasks: all tasks of the catalogue, each with whether no node can have data of it.
        copies: how many each task is to have; None for what the policy says.
        """
        self._note_planned(plan, now_s)
        planned = {copy.node for _, copy in self._planned}
        unsteady = self._progress.unsteady(now_s)
        renamed = {record.folder for name, record in self.nodes.items() if name in self.members}
        nodes = [
            NodeView(
                ClusterNode(
                    record.name,
                    record.units,
                    record.rack,
                    unsteady=frozenset(unit.unit for unit in unsteady if unit.node == name),
                ),
                record.folder,
                name in self.members,
            )
            for name, record in sorted(self.nodes.items())
            if name in self.members
            or (name in planned and record.folder not in renamed and self._is_awaited(name, now_s))
        ]
        losses, unable = self._losses(plan, now_s), self.unable(tasks, plan, now_s)
        shaky = _shaky(nodes, self.policy.copies)
        return ClusterView(
            nodes,
            [
                self._task(
                    name,
                    plan,
                    losses,
                    unable.get(name, frozenset()) | self._too_shaky(name, shaky, plan),
                    is_new=is_new,
                    now_s=now_s,
                )
                for name, is_new in sorted(tasks.items())
            ],
            self.policy if copies is None else replace(self.policy, copies=copies),
            self.orders,
            self.cuts,
            self.histories,
            self.gaps,
        )

    def donors(self, task: TaskKey, now_s: float) -> tuple[CopyName, ...]:
        """Return the copies of a task that others can be made from.

        They have caught up, have a checkpoint, are not about to leave, and their nodes serve data. Those that answer
        come last, because a fetch may take something from them. Units choose by the same rule (`donors_of`).
        """
        able = [
            each
            for each in self.reports.copies(task)
            if each.status.may_give and each.is_heard(now_s) and self.serves(each.copy.node)
        ]
        able.sort(key=lambda each: (each.status.state is CopyState.ANSWERING, each.copy))
        return tuple(each.copy for each in able)

    def serves(self, node: str) -> bool:
        """Whether a node lives, and lets others fetch data of its tasks."""
        return node in self.members and node in self.nodes and self.nodes[node].transfer != ""

    def started_s(self, node: str) -> float:
        """Return when a node was first heard since its last start; -infinity if it never was."""
        return self._started_s.get(node, -math.inf)

    def apart(self, now_s: float) -> set[str]:
        """Return the nodes that are not in the group of nodes, and whose units go on."""
        return {report.node for report in self.reports.going_on(now_s)} - self.members

    def silent_units(self, now_s: float) -> list[UnitReport]:
        """Return the last reports of units that say nothing any more though their nodes live, by their names.

        A unit that has said nothing since its node was started is starting, and one that its node says has ended does
        not hang.
        """
        return sorted(
            (
                report
                for report in self.reports.silent(now_s)
                if report.node in self.members
                and (record := self.nodes.get(report.node)) is not None
                and report.generation >= record.incarnation
                and not any(
                    ended.unit == report.unit and ended.last_ms >= report.said_ms for ended in record.ended
                )
                and now_s - max(self._came_s.get(report.node, now_s), self.started_s(report.node)) > STARTS_S
            ),
            key=lambda report: report.copy,
        )

    def of_earlier_releases(self) -> list[str]:
        """Return the live nodes whose release does not say what it reads. Such a release knows neither gaps nor other
        topics.
        """
        return sorted(name for name in self.members if name in self.nodes and not self.nodes[name].reads)

    def unable(self, tasks: Iterable[TaskKey], plan: Plan, now_s: float) -> Unable:
        """Return which nodes cannot make a copy of tasks, because they lack the folder that was built with the history.

        A node that has data of a task does not need that folder, nor does a node on which the plan names a copy. No
        node needs it if the data can be fetched from another copy.
        """
        without = nodes_without(self.histories, self.nodes.values())
        found = {}
        for task in tasks:
            nodes = without.get((task.stream, task.created))
            if nodes and not self.donors(task, now_s):
                found[task] = nodes - self._lag(task).keys() - self._planned_nodes(task, plan)
        return {task: nodes for task, nodes in found.items() if nodes}

    def _too_shaky(self, task: TaskKey, shaky: frozenset[str], plan: Plan) -> frozenset[str]:
        """Return which of the nodes whose units begin again and again get no copy of a task.

        One that has data of it gets one if all copies of the plan have failed: its data may be what the task needs.
        """
        planned = {each.copy for each in plan.copies.get(task, ())}
        failed = {each.copy for each in self.reports.copies(task) if each.status.state is CopyState.FAILED}
        shaky -= self._planned_nodes(task, plan)
        if planned <= failed:
            return frozenset(name for name in shaky if task not in self._on_disk.get(name, frozenset()))
        return shaky

    def _planned_nodes(self, task: TaskKey, plan: Plan) -> set[str]:
        """Return the nodes on which the plan names a copy of a task, if their data folder is still the planned one."""
        return {
            each.copy.node
            for each in plan.copies.get(task, ())
            if (record := self.nodes.get(each.copy.node)) is None or record.folder == each.folder
        }

    def _is_awaited(self, name: str, now_s: float) -> bool:
        return now_s - self._left_s.get(name, now_s) < self.policy.replace_after_s

    def _note_planned(self, plan: Plan, now_s: float) -> None:
        """Note since when the plan names its copies. A copy in another data folder is another one."""
        before, self._planned = self._planned, {}
        for name, copies in plan.copies.items():
            for each in copies:
                folder, since_s = before.get((name, each.copy), (each.folder, now_s))
                since_s = since_s if folder == each.folder else now_s
                self._planned[name, each.copy] = each.folder, since_s
        self._progress.keep(self._planned)

    def _losses(self, plan: Plan, now_s: float) -> Losses:
        return Losses(
            {name: record.incarnation for name, record in self.nodes.items()},
            {name: record.folder for name, record in self.nodes.items()},
            self.members,
            {
                name
                for name in self.members
                if self._progress.is_heard(name, now_s) and not plan.is_drained(name)
            },
            self.policy.replace_after_s,
        )

    def _task(
        self,
        name: TaskKey,
        plan: Plan,
        losses: Losses,
        unable: frozenset[str],
        *,
        is_new: bool,
        now_s: float,
    ) -> TaskView:
        planned, copies = plan.copies.get(name, ()), list(self.reports.copies(name))
        heard = {copy.copy: self._copy(name, copy, now_s) for copy in copies if copy.is_heard(now_s)}
        for copy in {each.copy for each in planned} - {copy.copy for copy in copies}:
            if now_s - self._planned[name, copy][1] <= ADVANCES_S and copy.node in self.members:
                heard[copy] = CopyView(CopyState.BEHIND)
        # Nodes that have said nothing yet are awaited.
        lag = {node: behind for node, behind in self._lag(name).items() if node in self.nodes}
        has_nothing = not lag and not is_new
        waits = has_nothing and now_s - self._began_s < self.policy.replace_after_s
        of_logs = {copy.copy for copy in copies if _is_failed_by_its_log(copy.status)}
        lost = losses.find(
            planned,
            plan.lost.get(name, {}),
            unable,
            lambda copy: 0.0 if copy in of_logs else now_s - self._well_s(name, copy),
            lambda copy: (
                (copy in heard and heard[copy].state is CopyState.FAILED)
                or self._flaps_everywhere(name, planned, heard)
            ),
        )
        return TaskView(name, heard, lag, is_new and not lag, waits, lost, unable)

    def _flaps_everywhere(self, name: TaskKey, planned: Copies, heard: Mapping[CopyName, CopyView]) -> bool:
        """Whether copies of a task flap and none is well. The reason may be in its log, and would follow new copies."""
        copies = [each.copy for each in planned]
        flapping = [copy for copy in copies if self._progress.flaps(name, copy)]
        well = [copy for copy in copies if copy in heard and heard[copy].state.is_caught_up]
        return bool(flapping) and set(well) <= set(flapping)

    def _well_s(self, name: TaskKey, copy: CopyName) -> float:
        """Return when a copy was last well. The times of its planning and of its node's coming count too, the latter
        only within a bound: a node that comes and goes would otherwise never have to get well.
        """
        well_s = max(self._progress.well_s(name, copy), self._planned[name, copy][1])
        came_s = self._came_s.get(copy.node, self._began_s)
        return max(well_s, min(came_s, well_s + WELL_AGAIN * self.policy.replace_after_s))

    def _copy(self, name: TaskKey, copy: ReportedCopy, now_s: float) -> CopyView:
        nearer_s = self._progress.nearer_s(name, copy.copy)
        advances = now_s - nearer_s <= max(ADVANCES_S, copy.silence_s)
        return CopyView(copy.status.state, advances and not copy.status.is_waiting)

    def _lag(self, name: TaskKey) -> dict[str, int]:
        """Return, for each node that has data of a task, how many records it has to catch up, as far as is known."""
        cut, reported = self.cuts.get(name), list(self.reports.copies(name))
        folders = _folder_ids(reported)
        copies = [
            (copy.copy.node, copy.status)
            for copy in reported
            if (cut is None or not cut.is_before(copy.status.topic_id, copy.status.position))
            and copy.status.folder_id in ("", folders.get(copy.copy.node))
        ]
        positions = {node: 0 for node, tasks in self._on_disk.items() if name in tasks}
        for node, status in copies:
            if status.position > 0:
                positions[node] = max(status.position, positions.get(node, 0))
        end = max([status.end for _, status in copies] + list(positions.values()), default=0)
        return {node: end - position for node, position in positions.items()}


def _is_failed_by_its_log(status: CopyStatus) -> bool:
    """Whether a copy has failed as its log is another one, or has lost its end. A copy without data would not notice
    that: it would begin from this log, and answer, before anybody has accepted the loss.
    """
    return status.state is CopyState.FAILED and (status.replaced is not None or status.lost is not None)


def _folder_ids(reported: Iterable[ReportedCopy]) -> dict[str, str]:
    """Return by node the id of the task's folder on it, as far as its units report one.

    A copy that is open is believed before one that has failed or was closed, whose folder may be gone.
    """
    named = [each for each in reported if each.status.folder_id]
    named.sort(key=lambda each: (not each.status.state.has_stopped, each.reported_s))
    return {each.copy.node: each.status.folder_id for each in named}


def _shaky(nodes: Iterable[NodeView], copies: int) -> frozenset[str]:
    """Return the nodes whose units are all unsteady, if enough others live. They get no new copies."""
    alive = [each.node for each in nodes if each.is_alive]
    shaky = frozenset(node.name for node in alive if len(node.unsteady) >= node.units)
    return shaky if len(alive) - len(shaky) >= copies else frozenset()
