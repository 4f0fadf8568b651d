"""Makes the overview of a cluster: its nodes, the copies of each task, and what is under way. Front-ends show it.

It does no I/O.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from msgspec import structs

from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyName, CopyState
from railgun.cluster.health import concerns, ended_lately_text
from railgun.cluster.log_room import LogRoom
from railgun.cluster.observed import ObservedCluster
from railgun.cluster.plan import Plan
from railgun.cluster.policy import ClusterPolicy
from railgun.cluster.report_table import ReportedCopy, ReportTable, replaced
from railgun.wording import counted

# The most reasons that are given why a node is not empty yet.
_WAITS_MAX = 3


def overview(
    observed: ObservedCluster,
    plan: Plan,
    leader: str | None,
    tasks: Iterable[TaskKey],
    now_s: float,
    unanswered: Sequence[TaskKey] = (),
    logs: Mapping[TaskKey, LogRoom] | None = None,
) -> dict[str, Any]:
    """Return what `GET /v1/cluster` shows.

    observed: what nodes, units and the group said.
    leader: the node that leads; None if none does.
    tasks: all tasks of the catalogue.
    unanswered: those that nobody answers.
    logs: the logs of tasks, and what copies need of them, as far as they are known.
    """
    logs = logs or {}
    known = sorted(tasks)
    shown = {task: list(_copies(observed, plan, task, now_s)) for task in known}
    states = Counter(copy["state"] for copies in shown.values() for copy in copies)
    found = list(concerns(observed, plan, leader, now_s, known, unanswered, logs))
    wrong: dict[TaskKey, list[str]] = {}
    for concern in found:
        for task in concern.tasks:
            wrong.setdefault(task, []).append(concern.of_task)
    return {
        "leader": leader,
        "plan": plan.epoch,
        "copies": plan.wanted,
        "moves": sum(map(plan.moves, known)),
        "behind": states[str(CopyState.BEHIND)],
        "unheard": states[None],
        "warnings": [concern.text for concern in found],
        "nodes": list(_nodes(observed, plan, _names(observed, plan), shown, now_s)),
        "tasks": [
            {
                "stream": task.stream,
                "partitioner": task.partitioner,
                "partition": task.partition,
                "copies": copies,
                "log": logs[task].shown() if task in logs else None,
                **({"wrong": wrong[task]} if task in wrong else {}),
            }
            for task, copies in shown.items()
        ],
    }


def node_overview(
    observed: ObservedCluster, plan: Plan, name: str, tasks: Iterable[TaskKey], now_s: float
) -> dict[str, Any]:
    """Return what `overview` shows of one node, which may be away and have no copies."""
    shown = {task: list(_copies(observed, plan, task, now_s)) for task in tasks}
    return next(_nodes(observed, plan, [name], shown, now_s))


def heard_copies(
    reports: ReportTable,
    policy: ClusterPolicy | None,
    task: TaskKey,
    is_heard: Callable[[ReportedCopy], bool],
) -> dict[CopyName, ReportedCopy]:
    """Return the copies of a task that were heard lately, without those that another copy has replaced.

    policy: the plan's; None before the first plan.
    is_heard: what counts as lately.
    """
    heard = {each.copy: each for each in reports.copies(task) if is_heard(each)}
    for copy in replaced(heard.values(), (policy or ClusterPolicy()).takeover_s):
        del heard[copy]
    return heard


def shown_copy(copy: CopyName, heard: ReportedCopy | None) -> dict[str, Any]:
    """Return what is shown of a copy: also why it failed, if it has. heard: None if it was not heard."""
    status = None if heard is None else heard.status
    shown: dict[str, Any] = {
        "node": copy.node,
        "unit": copy.unit,
        "state": None if status is None else str(status.state),
        "lag": None if status is None else max(0, status.end - status.position),
    }
    if status is not None and status.fetching is not None:
        fetching = status.fetching
        shown["fetching"] = {
            "donor": fetching.donor or None,
            "fetched_bytes": fetching.fetched,
            "total_bytes": fetching.total,
            "hashed_bytes": fetching.hashed,
        }
    if status is not None and status.state is CopyState.FAILED:
        shown["failure"] = status.failure
    return shown


def _names(observed: ObservedCluster, plan: Plan) -> list[str]:
    """Return the nodes that live, that have copies in the plan, or that were emptied."""
    planned = {each.copy.node for copies in plan.copies.values() for each in copies}
    return sorted(observed.members | planned | {name for name in plan.drains if plan.is_drained(name)})


def _nodes(
    observed: ObservedCluster,
    plan: Plan,
    names: Iterable[str],
    shown: Mapping[TaskKey, list[dict[str, Any]]],
    now_s: float,
) -> Iterator[dict[str, Any]]:
    """Yield what is shown of nodes. shown: the copies of all tasks."""
    copies: dict[str, list[tuple[TaskKey, dict[str, Any]]]] = {}
    for task, each in shown.items():
        for copy in each:
            if copy["planned"]:
                copies.setdefault(copy["node"], []).append((task, copy))
    lost = Counter(name for nodes in plan.lost.values() for name in nodes)
    said_ms = observed.reports.said_ms()
    apart = observed.apart(now_s)
    for name in names:
        found = _node(observed, plan, name, copies.get(name, []))
        if name not in observed.members and said_ms.get(name):
            found["heard_ms"] = said_ms[name]
        if name in apart:
            found["units_go_on"] = True
        if lost[name]:
            found["lost"] = lost[name]
        if plan.is_drained(name) and name in copies:
            waits = (text for task, _ in copies[name] for text in _waits(plan, task, name, shown[task]))
            found["waits"] = list(islice(waits, _WAITS_MAX))
        yield found


def _node(
    observed: ObservedCluster, plan: Plan, name: str, copies: Sequence[tuple[TaskKey, dict[str, Any]]]
) -> dict[str, Any]:
    """Return what is shown of a node whatever else is. copies: those that the plan names on it."""
    record = observed.nodes.get(name)
    drain = plan.drains.get(name)
    found: dict[str, Any] = {
        "name": name,
        "state": _state(observed, plan, name, len(copies)),
        "alive": name in observed.members,
        "rack": "" if record is None else record.rack,
        "units": 0 if record is None else record.units,
        "active": sum(copy["state"] == str(CopyState.ANSWERING) for _, copy in copies),
        "copies": len(copies),
        "release": "" if record is None else record.release,
        "host": "" if record is None else record.host,
    }
    if record is not None and record.ended and name in observed.members:
        found["ended"] = [
            {**structs.asdict(each), "text": ended_lately_text(name, each)} for each in record.ended
        ]
    if drain is not None and drain.refusal:
        found["refused"] = drain.refusal
    return found


def _state(observed: ObservedCluster, plan: Plan, name: str, copies: int) -> str:
    if plan.is_drained(name):
        return "draining" if copies else "drained"
    return "live" if name in observed.members else "away"


def _waits(plan: Plan, task: TaskKey, node: str, copies: list[dict[str, Any]]) -> Iterable[str]:
    """Return why a task still has a copy on a node that is being emptied."""
    target = plan.target.get(task, ())
    if len(target) < plan.wanted and not any(copy.node == node for copy in target):
        yield f"{task}: no node is left for another copy"
    for copy in target:
        heard = next((each for each in copies if (each["node"], each["unit"]) == copy), None)
        if heard is None:
            yield f"{task}: a copy on {copy} is made when others are done"
        elif heard["state"] is None:
            yield f"{task}: {copy} does not report yet"
        elif "fetching" in heard:
            waits = heard["fetching"]["donor"] is None
            yield f"{task}: {copy} {'waits to fetch its data' if waits else 'fetches its data'}"
        elif heard["state"] in (CopyState.BEHIND, CopyState.FAILED, CopyState.CLOSED):
            by = f" by {counted(heard['lag'], 'record')}" if heard["state"] == CopyState.BEHIND else ""
            yield f"{task}: {copy} is {heard['state']}{by}"


def _copies(observed: ObservedCluster, plan: Plan, task: TaskKey, now_s: float) -> Iterable[dict[str, Any]]:
    """Return the copies of a task that the plan names, in its order, then others that are still heard."""
    heard = heard_copies(observed.reports, plan.policy, task, lambda each: _is_known(each, now_s))
    planned = [each.copy for each in plan.copies.get(task, ())]
    for copy in planned:
        yield {**shown_copy(copy, heard.pop(copy, None)), "planned": True}
    for copy in sorted(heard):
        if heard[copy].status.state is not CopyState.CLOSED:
            yield {**shown_copy(copy, heard[copy]), "planned": False}


def _is_known(copy: ReportedCopy, now_s: float) -> bool:
    """Whether a copy's last report still describes it. A copy that closed reports no more."""
    return copy.is_heard(now_s) or copy.status.state is CopyState.CLOSED
