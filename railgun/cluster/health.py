"""Tells what is wrong with a cluster. The leader shows it as metrics, and front-ends as warnings in the overview.

It does no I/O.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyName, CopyState
from railgun.cluster.histories import Histories, irreplaceable, remarks
from railgun.cluster.log_room import LogRoom, log_warning, short_logs
from railgun.cluster.observed import ObservedCluster
from railgun.cluster.plan import Plan
from railgun.cluster.policy import ClusterPolicy
from railgun.cluster.records import EndedUnit, NodeRecord
from railgun.cluster.silence import ENDED_LATELY_S, SERVES_S
from railgun.wording import counted, listed, one_line, span_text, time_text

# The most names that are shown.
_SHOWN = 3
# If one of so many copies loses its data, another one has it.
_SAFE = 2
_ERROR_MAX = 200
_HANGS = (
    "a node kills a unit that hangs after cluster.hung_after_s, and starts it again; if that does not help, see the "
    "log of the node"
)


@dataclass(frozen=True, slots=True)
class Concern:
    """What an operator should see to.

    text: one line, which names the first of the tasks.
    tasks: those that it is about; empty if it is about no task.
    of_task: what it says of each of them.
    """

    text: str
    tasks: Sequence[TaskKey] = ()
    of_task: str = ""


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
    to_make = fetching = waiting = 0
    for task in plan.copies:
        fetches = [
            heard.status.is_waiting
            for heard in observed.reports.copies(task)
            if heard.status.fetching is not None and heard.is_heard(now_s)
        ]
        waiting += sum(fetches)
        fetching += len(fetches) - sum(fetches)
        to_make += len(set(plan.target.get(task, ())) - able_copies(observed, task, now_s))
    lost = sum(map(len, plan.lost.values()))
    short = sum(1 for _ in short_tasks(observed, plan, now_s))
    return ClusterHealth(short, lost, to_make, len(short_logs(logs or {})), fetching, waiting)


def short_tasks(observed: ObservedCluster, plan: Plan, now_s: float) -> Iterator[TaskKey]:
    """Yield the tasks of which fewer copies than are wanted could answer."""
    for task, copies in plan.copies.items():
        able = able_copies(observed, task, now_s)
        if len(able & {each.copy for each in copies}) < plan.wanted:
            yield task


def able_copies(observed: ObservedCluster, task: TaskKey, now_s: float) -> set[CopyName]:
    """Return the copies of a task that could answer it, as far as is heard."""
    return {
        heard.copy
        for heard in observed.reports.copies(task)
        if heard.is_heard(now_s) and heard.status.state.is_caught_up
    }


def away_nodes(observed: ObservedCluster, plan: Plan) -> set[str]:
    """Return the nodes of a plan that do not take part now. Those that are drained may be away."""
    return {each.node for each in plan.units if not plan.is_drained(each.node)} - observed.members


def _unable_nodes(observed: ObservedCluster, plan: Plan, tasks: Iterable[TaskKey], now_s: float) -> list[str]:
    """Return the nodes whose copies of tasks could not answer, by their names."""
    found: set[str] = set()
    for task in tasks:
        unable = {each.copy for each in plan.copies[task]} - able_copies(observed, task, now_s)
        found |= {copy.node for copy in unable}
    return sorted(found)


def ended_text(node: str, unit: int, times: int, error: str, within: str = "") -> str:
    """Return the sentence of a unit that has ended by itself. within: in which time it has ended so many times."""
    if times == 1 and not within:
        return f"unit {unit} of {node} ended: {error}"
    return f"unit {unit} of {node} ended {counted(times, 'time')}{within}; last: {error}"


def ended_lately_text(node: str, ended: EndedUnit) -> str:
    """Return the sentence of a unit that its node tells of."""
    within = f" in the last {ENDED_LATELY_S // 60} minutes"
    return ended_text(node, ended.unit, ended.times, ended.error, within)


def concerns(
    observed: ObservedCluster,
    plan: Plan,
    leader: str | None,
    now_s: float,
    tasks: Iterable[TaskKey],
    unanswered: Sequence[TaskKey],
    logs: Mapping[TaskKey, LogRoom],
) -> Iterator[Concern]:
    """Yield what an operator should see to. tasks: all tasks. unanswered: the tasks that no copy answers.

    logs: those that are known.
    """
    able = observed.members - {name for name in plan.drains if plan.is_drained(name)}
    nodes = [record for name, record in observed.nodes.items() if name in observed.members]
    members, worst = [Concern(text) for text in _of_members(observed, plan, leader, able, now_s)], []
    if unanswered:
        text = f"nobody answers {counted(len(unanswered), 'task')}: {_named(unanswered)}"
        worst = [Concern(text, unanswered, "nobody answers it")]
    # Where no node runs, that is why nobody answers.
    yield from (*worst, *members) if observed.members else (*members, *worst)
    yield from (Concern(text) for text in _of_nodes(nodes))
    yield from _of_silent_units(observed, plan, now_s)
    yield from _of_copies(observed, plan, now_s)
    if losing := log_warning(logs):
        yield Concern(losing, list(short_logs(logs)), "its log lacks, or will soon lack, what a copy needs")
    yield from (Concern(text) for text in _serving(observed, nodes, now_s))
    yield from _of_histories(observed, plan, now_s, tasks, able, nodes)


def _of_members(
    observed: ObservedCluster, plan: Plan, leader: str | None, able: Collection[str], now_s: float
) -> Iterator[str]:
    """Tell whether a node leads, and whether enough nodes take part. able: the nodes that can have copies."""
    away = away_nodes(observed, plan)
    apart = away & observed.apart(now_s)
    if leader is None and (observed.members or apart):
        yield "no node leads: nothing is moved, and no copies are made"
    if plan.copies and not observed.members and not apart:
        yield "no node runs, so nobody answers; start the nodes: events that come until then count once they run"
        return
    can = len(apart.union(able))
    if gone := sorted(away - apart):
        said_ms = observed.reports.said_ms()
        named = listed([_with_time(name, said_ms.get(name, 0)) for name in gone[:_SHOWN]], _SHOWN, len(gone))
        next_text = _next_of_away("start what is away, or see its log", plan, leader, len(able))
        yield f"{counted(len(gone), 'node is', 'nodes are')} away: {named}; {next_text}"
    if apart:
        named, whose = listed(sorted(apart), _SHOWN), "its" if len(apart) == 1 else "their"
        next_text = _next_of_away(f"see {whose} log", plan, leader, len(able))
        many = counted(len(apart), "node is", "nodes are")
        yield f"{many} not in the group of nodes, and {whose} units go on: {named}; {next_text}"
    if plan.copies and can < plan.wanted:
        yield (
            f"{counted(plan.wanted, 'copy of each task is', 'copies of each task are')} wanted, on nodes of their "
            f"own, and {can} can have some; start "
            "more nodes, or set cluster.copies"
        )


def _with_time(name: str, said_ms: int) -> str:
    return f"{name}, last heard {time_text(said_ms // 1_000 * 1_000)}" if said_ms else name


def _next_of_away(remedy: str, plan: Plan, leader: str | None, able: int) -> str:
    """Return what somebody can do about a node that is no member, and what happens by itself.

    able: how many other nodes can have copies.
    """
    if leader is None:
        return remedy
    if able < plan.wanted:
        return f"{remedy}: no other node can have its copies"
    after = span_text(round(1_000 * (plan.policy or ClusterPolicy()).replace_after_s))
    return f"{remedy}: {after} after it went (cluster.replace_after_s) its copies can be made on other nodes"


def _of_nodes(nodes: Sequence[NodeRecord]) -> Iterator[str]:
    """Tell what live nodes say that is wrong with them."""
    for record in nodes:
        if record.unread:
            yield f"{record.name} follows an older plan: {record.unread}"
        for each in record.ended:
            yield ended_lately_text(record.name, each)
    without = sorted(record.name for record in nodes if not record.rack)
    if 0 < len(without) < len(nodes):
        yield (
            f"some nodes name a rack, and {listed(without, _SHOWN)} none: set cluster.rack on all nodes, or on none"
        )


def _of_silent_units(observed: ObservedCluster, plan: Plan, now_s: float) -> Iterator[Concern]:
    """Tell which units of live nodes say nothing."""
    silent = observed.silent_units(now_s)
    if silent:
        first = [_with_time(f"unit {each.unit} of {each.node}", each.said_ms) for each in silent[:_SHOWN]]
        named = listed(first, _SHOWN, len(silent))
        units = {each.copy for each in silent}
        tasks = [
            task for task, copies in sorted(plan.copies.items()) if units & {each.copy for each in copies}
        ]
        text = f"{counted(len(silent), 'unit says', 'units say')} nothing: {named}; {_HANGS}"
        yield Concern(text, tasks, "a copy of it does not report")


def _of_copies(observed: ObservedCluster, plan: Plan, now_s: float) -> Iterator[Concern]:
    """Tell which copies have failed, which are lost, and which tasks have too few."""
    failed = [
        (task, heard)
        for task in sorted(plan.copies)
        for heard in observed.reports.copies(task)
        if heard.status.state is CopyState.FAILED and heard.is_heard(now_s)
    ]
    if failed:
        named = listed([f"{task} on {heard.copy}" for task, heard in failed], _SHOWN)
        many = counted(len(failed), "copy has", "copies have")
        error = one_line(failed[0][1].status.failure, _ERROR_MAX)
        why = f"{': ' if len(failed) == 1 else '; the first: '}{error}" if error else ""
        of_tasks = list(dict.fromkeys(task for task, _ in failed))
        yield Concern(f"{many} failed: {named}{why}", of_tasks, "a copy of it has failed")
    lost: dict[str, list[TaskKey]] = {}
    for task, nodes in sorted(plan.lost.items()):
        for node in nodes.keys() & observed.members:
            lost.setdefault(node, []).append(task)
    for node, tasks in sorted(lost.items()):
        yield Concern(
            f"{node} has lost its copy of {counted(len(tasks), 'task')}, which it gets again when it is started again; "
            f"its log says why: {_named(tasks)}",
            tasks,
            f"{node} has lost its copy",
        )
    short = sorted(short_tasks(observed, plan, now_s))
    if short and observed.members:
        fewer = f"fewer than {counted(plan.wanted, 'copy', 'copies')} that could answer"
        unable = _unable_nodes(observed, plan, short, now_s)
        where = f"; those on {listed(unable[:_SHOWN], _SHOWN, len(unable))} could not" if unable else ""
        yield Concern(
            f"{counted(len(short), 'task has', 'tasks have')} {fewer}: {_named(short)}{where}",
            short,
            f"it has {fewer}",
        )


def _of_histories(
    observed: ObservedCluster,
    plan: Plan,
    now_s: float,
    tasks: Iterable[TaskKey],
    able: Collection[str],
    nodes: Sequence[NodeRecord],
) -> Iterator[Concern]:
    """Tell of which tasks with history not every node could have a copy. able, nodes: as in `concerns`."""
    known = list(tasks)
    for found, text in remarks(observed.unable(known, plan, now_s), observed.histories, able):
        yield Concern(text, found, "not every node can have a copy of it")
    for stream, text in irreplaceable(_fragile(observed, known, now_s), nodes):
        own = [task for task in known if (task.stream, task.created) == stream]
        yield Concern(text, own, "no node could make a copy of it again")


def _serving(observed: ObservedCluster, nodes: Sequence[NodeRecord], now_s: float) -> Iterator[str]:
    """Name nodes that serve no data, and why, if there is another node that could need it. One that has started just
    now may not have said yet where it does.
    """
    if len(nodes) < _SAFE:
        return
    by_reason: dict[str, list[str]] = {}
    for record in nodes:
        if observed.serves(record.name):
            continue
        is_new = now_s - observed.started_s(record.name) < SERVES_S
        if record.transfer_reason or not record.reads or not is_new:
            by_reason.setdefault(_why_serves_none(record), []).append(record.name)
    for reason, names in sorted(by_reason.items()):
        verb = "serves" if len(names) == 1 else "serve"
        yield (
            f"{listed(sorted(names), _SHOWN)} {verb} no data to other nodes, so no copy can be made from theirs: "
            f"{reason}"
        )


def _why_serves_none(record: NodeRecord) -> str:
    """Return why a node serves no data."""
    if record.transfer_reason:
        return record.transfer_reason
    if not record.reads:
        # A node of a release that serves data says that too.
        return f"release {record.release} does not do that yet"
    return "the process that does that has not said where; the node's log says why"


def _fragile(observed: ObservedCluster, tasks: Iterable[TaskKey], now_s: float) -> Histories:
    """Return the histories of streams with a task of which fewer than two nodes could give the data to another."""
    fragile = {
        (task.stream, task.created)
        for task in tasks
        if (task.stream, task.created) in observed.histories
        and len({copy.node for copy in observed.donors(task, now_s)}) < _SAFE
    }
    return {stream: history for stream, history in observed.histories.items() if stream in fragile}


def _named(tasks: Sequence[TaskKey]) -> str:
    return listed([str(task) for task in tasks], _SHOWN)
