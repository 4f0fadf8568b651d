"""Logs the events of the cluster for its leader: nodes that come and go, orders to empty them, plans, and copies that
are made elsewhere.

Each event is one line, however many tasks it concerns.
"""

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyName
from railgun.cluster.log_room import LogRoom, log_warning, short_logs
from railgun.cluster.plan import Plan
from railgun.wording import counted, listed

# While the plan goes to the same target, it is logged no more often than this.
_PLAN_S = 10.0
# While the same logs are about to lose records, that is logged so often.
_SHORT_S = 3_600.0

_log = logging.getLogger("railgun.node")


class ClusterLog:
    """The leader's log of its cluster. One thread uses it. A node that does not lead calls none of its methods."""

    def __init__(self) -> None:
        self._planned_s = 0.0
        self._short: Collection[TaskKey] = ()
        self._short_said_s = 0.0

    def members(self, before: Collection[str], after: Collection[str]) -> None:
        """Log which nodes have come and gone."""
        came, gone = set(after) - set(before), set(before) - set(after)
        if came:
            _log.info("%s %s joined", listed(sorted(came)), "has" if len(came) == 1 else "have")
        if gone:
            _log.info("%s %s away", listed(sorted(gone)), "is" if len(gone) == 1 else "are")

    def plan(self, before: Plan, after: Plan, members: Collection[str], now_s: float) -> None:
        """Log a plan that was written after another one, as far as people should know of it."""
        self._drains(before, after)
        self._losses(before, after)
        self._absences(before, after, members)
        has_other_target = before.cause != after.cause
        left = sum(map(after.moves, after.target))
        if not has_other_target and not left and any(map(before.moves, before.target)):
            _log.info("plan %d: all copies are where they are to be", after.epoch)
        elif has_other_target or (left and now_s - self._planned_s >= _PLAN_S):
            self._planned_s = now_s
            # A new target is logged with all moves that lead to it; later lines count the moves that are left.
            plan = replace(after, copies=before.copies) if has_other_target else after
            _log.info(
                "plan %d: %s, %s",
                after.epoch,
                counted(sum(map(plan.moves, plan.target)), "move"),
                counted(sum(map(plan.to_make, plan.target)), "copy to make", "copies to make"),
            )

    def logs(self, rooms: Mapping[TaskKey, LogRoom], now_s: float) -> None:
        """Warn of logs that may soon begin behind what copies need: when there are others, and now and then again."""
        short = short_logs(rooms).keys()
        if short and (short != self._short or now_s - self._short_said_s >= _SHORT_S):
            self._short_said_s = now_s
            _log.warning("%s", log_warning(rooms))
        self._short = short

    def _drains(self, before: Plan, after: Plan) -> None:
        """Log what has become of the orders to empty nodes."""
        left, left_before = _copies_by_node(after), _copies_by_node(before)
        for node in sorted({*before.drains, *after.drains}):
            drain, known = after.drains.get(node), before.drains.get(node)
            if drain is not None and drain.refusal:
                if known is None or known.asked_ms != drain.asked_ms:
                    _log.info("%s is not drained: %s", node, drain.refusal)
            elif before.is_drained(node) and not after.is_drained(node):
                _log.info("%s is drained no more: it is used again", node)
            elif after.is_drained(node) and not before.is_drained(node):
                _log.info("%s is being drained: %s", node, counted(left_before[node], "copy", "copies"))
            is_news = left_before[node] or not before.is_drained(node)
            if after.is_drained(node) and is_news and not left[node]:
                _log.info("%s is drained: it has no copies any more", node)

    def _losses(self, before: Plan, after: Plan) -> None:
        """Log the copies that nodes have lost since the plan before."""
        lost: dict[str, list[TaskKey]] = {}
        for task, nodes in after.lost.items():
            for node in set(nodes) - set(before.lost.get(task, ())):
                lost.setdefault(node, []).append(task)
        for node, tasks in sorted(lost.items()):
            _log.info(
                "%s has lost %s, for longer than cluster.replace_after_s, to be made on other nodes: %s",
                node,
                counted(len(tasks), "copy", "copies"),
                listed(sorted(map(str, tasks))),
            )

    def _absences(self, before: Plan, after: Plan, members: Collection[str]) -> None:
        """Log the nodes that are away, and for which the new target has no copies any more."""
        given_up = Counter(
            copy.node
            for task, copies in before.target.items()
            for copy in copies
            if copy.node not in members and not before.is_drained(copy.node) and task in after.target
        )
        wanted = _nodes_of(after.target)
        for node, count in sorted(given_up.items()):
            if node not in wanted and not after.is_drained(node):
                _log.info(
                    "%s stays away: its %s are made on other nodes, as far as there are some",
                    node,
                    counted(count, "copy", "copies"),
                )


def _copies_by_node(plan: Plan) -> Counter[str]:
    return Counter(each.copy.node for copies in plan.copies.values() for each in copies)


def _nodes_of(target: Mapping[TaskKey, Iterable[CopyName]]) -> set[str]:
    return {copy.node for copies in target.values() for copy in copies}
