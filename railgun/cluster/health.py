"""Tells what is wrong with a cluster. The leader shows it as metrics, and front-ends as warnings in the overview.

It does no I/O.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyName
from railgun.cluster.histories import Histories, irreplaceable, remarks
from railgun.cluster.log_room import LogRoom, log_warning, short_logs
from railgun.cluster.observed import ObservedCluster
from railgun.cluster.plan import Plan
from railgun.cluster.records import NodeRecord
from railgun.cluster.silence import ENDED_LATELY_S
from railgun.wording import counted

# The most names that are shown.
_SHOWN = 3
# If one of so many copies loses its data, another one has it.
_SAFE = 2


@dataclass(frozen=True, slots=True)
class ClusterHealth:
    """The numbers of tasks and copies that differ from what is wanted.

    tasks_short: tasks of which fewer copies than are wanted could answer.
    copies_lost: copies that the plan has given up though their nodes live.
    copies_to_make: copies of the target that are not planned yet, or that could not answer yet.
    logs_short: logs that may soon begin behind what a copy needs.
    copies_fetching: copies whose data comes from another node just now.
    copies_waiting: copies that wait for their turn to fetch.
    """

    tasks_short: int
    copies_lost: int
    copies_to_make: int
    logs_short: int = 0
    copies_fetching: int = 0
    copies_waiting: int = 0


def cluster_health(
    observed: ObservedCluster, plan: Plan, now_s: float, logs: Mapping[TaskKey, LogRoom] | None = None
) -> ClusterHealth:
    """Return how a cluster stands by what was heard of the copies. logs: those that are known."""
    short = to_make = fetching = waiting = 0
    for task, copies in plan.copies.items():
        fetches = [
            heard.status.is_waiting
            for heard in observed.reports.copies(task)
            if heard.status.fetching is not None and heard.is_heard(now_s)
        ]
        waiting += sum(fetches)
        fetching += len(fetches) - sum(fetches)
        able = able_copies(observed, task, now_s)
        short += len(able & {each.copy for each in copies}) < plan.wanted
        to_make += len(set(plan.target.get(task, ())) - able)
    lost = sum(map(len, plan.lost.values()))
    return ClusterHealth(short, lost, to_make, len(short_logs(logs or {})), fetching, waiting)


def able_copies(observed: ObservedCluster, task: TaskKey, now_s: float) -> set[CopyName]:
    """Return the copies of a task that could answer it, as far as is heard."""
    return {
        heard.copy
        for heard in observed.reports.copies(task)
        if heard.is_heard(now_s) and heard.status.state.is_caught_up
    }


def warnings(
    observed: ObservedCluster,
    plan: Plan,
    leader: str | None,
    now_s: float,
    tasks: Iterable[TaskKey],
    unanswered: Sequence[TaskKey],
    logs: Mapping[TaskKey, LogRoom],
) -> Iterator[str]:
    """Yield warnings that an operator should act on. tasks: all tasks. unanswered: the tasks that no copy answers.

    logs: those that are known.
    """
    if leader is None and observed.members:
        yield "no node leads: nothing is moved, and no copies are made"
    able = observed.members - {name for name in plan.drains if plan.is_drained(name)}
    if plan.copies and not observed.members:
        yield "no node runs, so nobody answers; start the nodes: events that come until then count once they run"
    elif plan.copies and len(able) < plan.wanted:
        yield (
            f"{counted(plan.wanted, 'copy of each task is', 'copies of each task are')} wanted, on nodes of their "
            f"own, and {len(able)} can have some; start "
            "more nodes, or set cluster.copies"
        )
    nodes = [record for name, record in observed.nodes.items() if name in observed.members]
    for record in nodes:
        if record.unread:
            yield f"{record.name} follows an older plan: {record.unread}"
        for each in record.ended:
            yield (
                f"unit {each.unit} of {record.name} ended {counted(each.times, 'time')} in the last "
                f"{ENDED_LATELY_S // 60} minutes; last: {each.error}"
            )
    without = sorted(record.name for record in nodes if not record.rack)
    if 0 < len(without) < len(nodes):
        yield f"some nodes name a rack, and {_shown(without)} none: set cluster.rack on all nodes, or on none"
    short = cluster_health(observed, plan, now_s).tasks_short
    if short and observed.members:
        wanted = counted(plan.wanted, "copy", "copies")
        yield f"{counted(short, 'task has', 'tasks have')} fewer than {wanted} that could answer"
    losing = log_warning(logs)
    if losing:
        yield losing
    yield from _serving(observed, nodes)
    yield from remarks(observed.unable(tasks, plan, now_s), observed.histories, able)
    yield from irreplaceable(_fragile(observed, tasks, now_s), nodes)
    if unanswered:
        yield f"nobody answers {counted(len(unanswered), 'task')}: {_shown([str(task) for task in unanswered])}"


def _serving(observed: ObservedCluster, nodes: Sequence[NodeRecord]) -> Iterator[str]:
    """Name nodes that serve no data, and why, if there is another node that could need it."""
    if len(nodes) < _SAFE:
        return
    by_reason: dict[str, list[str]] = {}
    for record in nodes:
        if not observed.serves(record.name):
            by_reason.setdefault(_why_serves_none(record), []).append(record.name)
    for reason, names in sorted(by_reason.items()):
        verb = "serves" if len(names) == 1 else "serve"
        yield (
            f"{_shown(sorted(names))} {verb} no data to other nodes, so no copy can be made from theirs: {reason}"
        )


def _why_serves_none(record: NodeRecord) -> str:
    """Return why a node serves no data."""
    if record.transfer_reason:
        return record.transfer_reason
    if not record.reads:
        # A node of a release that serves data says that too.
        return f"release {record.release} does not do that yet"
    return "the process that does that has not said where; if it does not within a minute, the node's log says why"


def _fragile(observed: ObservedCluster, tasks: Iterable[TaskKey], now_s: float) -> Histories:
    """Return the histories of streams with a task of which fewer than two nodes could give the data to another."""
    fragile = {
        (task.stream, task.created)
        for task in tasks
        if (task.stream, task.created) in observed.histories
        and len({copy.node for copy in observed.donors(task, now_s)}) < _SAFE
    }
    return {stream: history for stream, history in observed.histories.items() if stream in fragile}


def _shown(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
