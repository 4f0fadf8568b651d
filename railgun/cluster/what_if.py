"""Computes what another set of nodes, or another number of copies, would move. Front-ends show it.

It changes nothing and does no I/O.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from railgun.catalog.task_key import TaskKey
from railgun.cluster.assignor import assign
from railgun.cluster.copies import CopyName, Cut
from railgun.cluster.drains import with_drains
from railgun.cluster.histories import remarks
from railgun.cluster.inventory import ClusterNode, TaskCopies
from railgun.cluster.log_room import LogRoom
from railgun.cluster.plan import Plan
from railgun.cluster.view import ClusterView, TaskView
from railgun.wording import counted

_NODES_MAX, _COPIES_MAX = 1_000, 100


class WhatIfError(ValueError):
    """A change that cannot be understood; the message says what can be."""


@dataclass(frozen=True, slots=True)
class _Changed:
    """A cluster after the change. nodes: its nodes. copies: the number of copies of each task."""

    nodes: Sequence[ClusterNode]
    copies: int


def what_if(
    change: str,
    plan: Plan,
    view: ClusterView,
    sizes: Mapping[tuple[TaskKey, str], int],
    donors: Mapping[TaskKey, Sequence[CopyName]] | None = None,
    logs: Mapping[TaskKey, LogRoom] | None = None,
    after_records: int | None = None,
) -> dict[str, Any]:
    """Return what `GET /v1/cluster/plan` shows: the copies that would be made, and what would answer elsewhere.

    change: "remove=NODE", "add=NUMBER" or "copies=NUMBER".
    view: the cluster as it is.
    sizes: by task and node, the bytes of the data that a node has.
    donors: by task, the copies that its data can be fetched from, in order of preference.
    logs: the logs of tasks, as far as they are known.
    after_records: a copy's data comes from another node that is ahead by more records than this, if there is one.
    Raises WhatIfError.
    """
    donors = donors or {}
    changed = _changed(change, with_drains(view, plan))
    tasks = [
        TaskCopies(
            task.task,
            [each.copy for each in plan.copies.get(task.task, ())],
            task.lag,
            task.unable.union(task.lost),
        )
        for task in view.tasks
    ]
    target = assign(changed.nodes, tasks, changed.copies)
    sources = {
        task.task: _Sources(
            task,
            donors.get(task.task, ()),
            view.cuts.get(task.task),
            (logs or {}).get(task.task),
            (task.task.stream, task.task.created) in view.histories,
            after_records,
        )
        for task in view.tasks
    }
    made = [made for task in tasks for made in _made(task, target[task.task], sizes, sources[task.task])]
    active = sum(task.present[:1] != target[task.task][:1] for task in tasks if task.present)
    return {
        "what_if": change,
        "moves": active,
        "made": made,
        "dropped": sum(
            len({copy.node for copy in task.present} - {copy.node for copy in target[task.task]})
            for task in tasks
        ),
        "bytes": sum(each["bytes"] for each in made),
        "not_made": [
            *_not_made(changed, target),
            *_without_history(view, changed, donors),
            *_away(view, changed),
        ],
        "nodes": _nodes(changed.nodes, target),
    }


def _changed(change: str, view: ClusterView) -> _Changed:
    nodes = {each.node.name: each.node for each in view.nodes}
    kind, _, value = change.partition("=")
    if kind == "remove":
        if value not in nodes:
            raise WhatIfError(
                f"there is no node {value[:80]!r}; there are: {', '.join(sorted(nodes)) or 'none'}"
            )
        return _Changed([node for name, node in nodes.items() if name != value], view.policy.copies)
    if kind == "add":
        number = _number(change, value, _NODES_MAX)
        units = Counter(node.units for node in nodes.values())
        each = ClusterNode("", units.most_common(1)[0][0] if units else 1)
        added = (name for count in range(number + len(nodes)) if (name := f"new-{count + 1}") not in nodes)
        return _Changed(
            [
                *nodes.values(),
                *(replace(each, name=name) for name, _ in zip(added, range(number), strict=False)),
            ],
            view.policy.copies,
        )
    if kind == "copies":
        return _Changed(list(nodes.values()), _number(change, value, _COPIES_MAX))
    raise WhatIfError(f"{change[:80]!r}: write remove=NODE, add=NUMBER or copies=NUMBER")


def _number(change: str, value: str, most: int) -> int:
    if not value.isascii() or not value.isdigit() or not 1 <= int(value[:9]) <= most or len(value) > 9:
        raise WhatIfError(f"{change[:80]!r}: a whole number from 1 to {most:,} belongs after the =")
    return int(value)


@dataclass(frozen=True, slots=True)
class _Sources:
    """Where the data of new copies of a task could come from.

    donors: the copies that it can be fetched from.
    cut: the loss of its log that an operator has accepted. Copies may then begin behind the log's first record.
    log: None if it is not known.
    has_history: whether it has events from before its log.
    after_records: see `what_if`.
    """

    task: TaskView
    donors: Sequence[CopyName]
    cut: Cut | None
    log: LogRoom | None
    has_history: bool
    after_records: int | None

    def of(self, node: str) -> dict[str, Any]:
        """Return where the data of a copy on a node would come from."""
        donors = [copy for copy in self.donors if copy.node != node]
        source, missing = self._without_donors(node)
        if donors and (missing is None or self._is_far(missing, donors)):
            return {"source": "copies", "donors": [str(copy) for copy in donors]}
        return {"source": source}

    def _without_donors(self, node: str) -> tuple[str, int | None]:
        """Return where it would come from if no other copy gave it, and how many records of the log would be missing;
        None if a copy is the better source whatever that number is, or it is not known.
        """
        lag = self.task.lag.get(node)
        if lag is not None and (self.log is None or self.log.start <= self.log.end - lag):
            return "own folder", lag
        begin = 0 if self.cut is None else self.cut.begin
        if self.log is not None and self.log.start > begin:
            return "nothing", None
        # No copy is placed on a node that lacks what its log needs beside it, unless another one gives its data.
        return "log", None if self.log is None or self.has_history else self.log.end - begin

    def _is_far(self, missing: int, donors: Sequence[CopyName]) -> bool:
        """Whether donors are so far ahead that the data comes from them. Units decide alike (`DataSource`)."""
        if self.after_records is None:
            return False
        return missing - min(self.task.lag.get(copy.node, 0) for copy in donors) > self.after_records


def _made(
    task: TaskCopies, target: Sequence[CopyName], sizes: Mapping[tuple[TaskKey, str], int], sources: _Sources
) -> list[dict[str, Any]]:
    """Return the copies of a task on nodes that have none now."""
    present = {copy.node for copy in task.present}
    greatest = max((size for (of, _), size in sizes.items() if of == task.task), default=0)
    return [
        {
            "stream": task.task.stream,
            "partitioner": task.task.partitioner,
            "partition": task.task.partition,
            "node": copy.node,
            "unit": copy.unit,
            "bytes": max(0, greatest - sizes.get((task.task, copy.node), 0)),
            **sources.of(copy.node),
        }
        for copy in target
        if copy.node not in present
    ]


def _away(view: ClusterView, changed: _Changed) -> list[str]:
    """Return lines about nodes that the answer counts on though they do not live."""
    names = {node.name for node in changed.nodes}
    return [
        f"{each.node.name} is away: this is as if it were back"
        for each in view.nodes
        if each.node.name in names and not each.is_alive
    ]


def _without_history(
    view: ClusterView, changed: _Changed, donors: Mapping[TaskKey, Sequence[CopyName]]
) -> Iterator[str]:
    """Yield why nodes can have no copies of tasks that have history; of nodes that are added it is not known."""
    able = {node.name for node in changed.nodes if node.units and node.is_open}
    unable = {task.task: task.unable for task in view.tasks}
    yield from (text for _, text in remarks(unable, view.histories, able))
    without_donors = {
        (task.task.stream, task.task.created) for task in view.tasks if not donors.get(task.task)
    }
    needed = sorted(stream for stream, created in view.histories if (stream, created) in without_donors)
    if needed and able - {each.node.name for each in view.nodes}:
        streams = ", ".join(needed)
        yield f"new nodes are taken to have the history of {streams} in backfill of their data folders"


def _not_made(changed: _Changed, target: Mapping[TaskKey, Sequence[CopyName]]) -> list[str]:
    """Return why tasks would have fewer copies than wanted, or copies side by side."""
    lacking = sum(len(copies) < changed.copies for copies in target.values())
    found = []
    if lacking:
        nodes = sum(bool(node.units) and node.is_open for node in changed.nodes)
        wanted = counted(changed.copies, "copy", "copies")
        found.append(
            f"{counted(lacking, 'task')} would have fewer than {wanted}: "
            f"there would be {counted(nodes, 'node')} for them"
        )
    racks = {node.name: node.rack for node in changed.nodes}
    if len(set(filter(None, racks.values()))) > 1:
        together = sum(
            max(Counter(racks[copy.node] or copy.node for copy in copies).values(), default=0) > 1
            for copies in target.values()
        )
        if together:
            found.append(f"{counted(together, 'task')} would have two copies on one rack")
    return found


def _nodes(
    nodes: Sequence[ClusterNode], target: Mapping[TaskKey, Sequence[CopyName]]
) -> list[dict[str, Any]]:
    copies = Counter(copy.node for each in target.values() for copy in each)
    active = Counter(copy.node for each in target.values() for copy in each[:1])
    return [
        {
            "name": node.name,
            "rack": node.rack,
            "units": node.units,
            "active": active[node.name],
            "copies": copies[node.name],
        }
        for node in sorted(nodes, key=lambda node: node.name)
    ]
