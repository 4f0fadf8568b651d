"""`railgun status`: what a running server holds, and how it stands."""

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from railgun.cli.parser import Command
from railgun.cli.server_url import add_server, client_of, late_answer_said
from railgun.cli.wording import behind_text, fetching_text, log_columns, size_text, table_lines
from railgun.wording import (
    counted,
    gap_text,
    listed,
    one_line,
    seconds_doubt,
    time_text,
    weak_topics_text,
)

_SQL_WIDTH = 100
# How long the question is repeated, and how long each answer is waited for. One takes 10 s while the broker is away.
_PATIENCE_S, _TIMEOUT_S = 10.0, 15.0
_UNANSWERED_SHOWN = 8
# Of fields whose paths meet nothing.
_MISSED_SHOWN = 8
# The states of tasks that no unit runs.
_NOT_RUN = ("unknown", "stopped")


def as_text(status: Mapping[str, Any]) -> str:
    """Return the status as lines for a terminal. Parts that the server does not give are left out."""
    lines = [f"{status.get('folder', '?')}: durability {status.get('durability', '?')}"]
    if status.get("disk"):
        lines.append(_disk(status["disk"]))
    if status.get("cluster"):
        lines.append(_cluster(status["cluster"]))
    streams = status.get("streams") or []
    if not streams:
        lines.append("no streams; create some with `railgun apply`")
    for stream in streams:
        lines += ["", *_stream(stream)]
    return "\n".join(lines) + "\n"


def _disk(disk: Mapping[str, int]) -> str:
    parts = [
        f"{name} {size_text(disk[f'{name}_bytes'])}"
        for name in ("events", "state", "log", "free")
        if f"{name}_bytes" in disk
    ]
    return f"disk: {', '.join(parts) or '?'}"


def _cluster(cluster: Mapping[str, Any]) -> str:
    """Return one line about the cluster: its nodes and tasks, and warnings."""
    nodes = cluster.get("nodes") or []
    states = ", ".join(f"{count:,} {state}" for state, count in (cluster.get("tasks") or {}).items())
    away_s = cluster.get("broker_away_s")
    away = (
        "" if away_s is None else f"the broker does not answer, nodes are as they were {away_s:.0f} s ago: "
    )
    parts = [
        f"{away}{counted(len(nodes), 'node')}, {counted(sum(len(each['units']) for each in nodes), 'unit')}",
        f"tasks: {states or 'none'}",
        f"{counted(cluster.get('lag', 0), 'record')} behind",
        f"{counted(cluster.get('pending_events', 0), 'event waits', 'events wait')} for answers",
    ]
    if cluster.get("pending_events"):
        parts[-1] += f", the oldest for {cluster.get('pending_oldest_s', 0.0):.1f} s"
    if cluster.get("unanswered"):
        parts.append(_unanswered(cluster["unanswered"]))
    if cluster.get("unreadable_records"):
        parts.append(f"{counted(cluster['unreadable_records'], 'record')} could not be read")
    if cluster.get("log_warning"):
        parts.append(f"WARNING: {cluster['log_warning']}")
    if cluster.get("weak_topics"):
        # One broker alone, as `railgun broker start` makes it, is meant so.
        is_sole = cluster.get("brokers") == 1
        weak = f"WARNING: {weak_topics_text(cluster['weak_topics'])}"
        parts.append("one broker, without replicas" if is_sole else weak)
    return f"cluster: {'; '.join(parts)}"


def _unanswered(tasks: Sequence[Mapping[str, Any]]) -> str:
    named = [f"{task['stream']}/{task['partitioner']}-{task['partition']}" for task in tasks]
    return f"WARNING: nobody answers {counted(len(named), 'task')}: {listed(named, _UNANSWERED_SHOWN)}"


def _stream(stream: Mapping[str, Any]) -> list[str]:
    tasks, metrics = stream.get("tasks") or [], stream.get("metrics") or []
    lines = [f"{stream['name']}: {counted(len(metrics), 'metric')}, {counted(len(tasks), 'task')}"]
    if stream.get("deepening"):
        lines.append(_deepening(stream["deepening"]))
    lines += [f"  WARNING: {doubt}" for doubt in _time_doubts(tasks)]
    lines += [
        f"  {gap_text(task['partitioner'], task['partition'], task['gap_ms'])}"
        for task in tasks
        if task.get("gap_ms") is not None
    ]
    lines += [line for each in stream.get("input") or [] for line in _input(each)]
    if metrics:
        shown = (_metric(metric, _not_run(metric, tasks)) for metric in metrics)
        lines += table_lines([("metric", "by", "", "query"), *shown])
    if tasks and "state" in tasks[0]:
        failed = [task for task in tasks if ":" in task["state"]]
        return (
            lines
            + table_lines(_cluster_tasks(tasks))
            + [f"  {task['partitioner']}-{task['partition']} {task['state']}" for task in failed]
        )
    return lines + table_lines([("task", "position", "checkpoint", "log from", "clock"), *map(_task, tasks)])


def _time_doubts(tasks: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a doubt about the newest time that a task has accepted, if there is one."""
    clocks = [task["clock_ms"] for task in tasks if task.get("clock_ms") is not None]
    doubt = seconds_doubt(max(clocks)) if clocks else None
    return [] if doubt is None else [doubt]


def _input(topic: Mapping[str, Any]) -> list[str]:
    """Return how an input topic stands, as far as the front-end that was asked reads it."""
    if "not_read" in topic:
        return [f"  input {topic['topic']} is not read: {topic['not_read']}"]
    others = [
        f", {counted(topic[what], 'record')} {what}" for what in ("skipped", "refused") if topic.get(what)
    ]
    missed = sorted((topic.get("missed") or {}).items(), key=lambda each: -each[1])[:_MISSED_SHOWN]
    here, left = counted(topic["partitions"], "partition"), counted(topic["lag"], "record")
    return [
        f"  input {topic['topic']}: {here} here, {left} to be read{''.join(others)}",
        *(f"    the path of {name} met nothing in {100 * share:.1f} % of a sample" for name, share in missed),
    ]


def _deepening(deepening: Mapping[str, Any]) -> str:
    if deepening["state"] == "damaged":
        return f"  deepening, damaged: {deepening['failure']}; its log is kept meanwhile"
    behind = (
        f", {counted(deepening['behind'], 'record')} behind" if deepening["state"] == "installing" else ""
    )
    until = time_text(deepening["cut_ms"])
    return f"  deepening until {until}: {deepening['state']}{behind}; its log is kept meanwhile"


def _not_run(metric: Mapping[str, Any], tasks: Sequence[Mapping[str, Any]]) -> str:
    """Return how many of the tasks that a metric needs no unit runs; nothing if all run, or the server has no units."""
    needed = [task for task in tasks if metric.get("home") in (None, task["partitioner"])]
    away = sum(task.get("state") in _NOT_RUN for task in needed)
    if not away:
        return ""
    return ", not answered" if away == len(needed) else f", not answered by {away:,} of {len(needed):,} tasks"


def _metric(metric: Mapping[str, Any], not_run: str) -> tuple[str, ...]:
    shown = one_line(str(metric.get("sql", "")), _SQL_WIDTH)
    state = f"warming, {100 * float(metric.get('filled') or 0.0):.0f} %" if metric.get("warming") else "warm"
    state += not_run
    if metric.get("outdated_zones"):
        state += f", outdated: {', '.join(metric['outdated_zones'])}"
    return str(metric["name"]), str(metric.get("home") or "derived"), state, shown


def _task(task: Mapping[str, Any]) -> tuple[str, ...]:
    clock_ms = task.get("clock_ms")
    return (
        f"{task['partitioner']}-{task['partition']}",
        f"{task['position']:,}",
        f"{task['checkpoint']:,}",
        f"{task['log_start']:,}",
        "no event yet" if clock_ms is None else time_text(clock_ms),
    )


def _cluster_tasks(tasks: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """Return the rows of a cluster's tasks, with a head. Columns in which nothing would stand are left out."""
    head = ("task", "node", "unit", "state", "position", "lag", "checkpoint")
    rows = [own + log for own, log in zip([head, *map(_cluster_task, tasks)], log_columns(tasks))]
    others = ["other copies", *(", ".join(_other_copies(task)) for task in tasks)]
    return [(*row, other) for row, other in zip(rows, others)] if any(others[1:]) else rows


def _cluster_task(task: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the row of a task of a cluster, with the unit that runs it."""
    unit, node = task.get("unit"), task.get("node")
    return (
        f"{task['partitioner']}-{task['partition']}",
        "?" if node is None else str(node),
        "?" if unit is None else str(unit),
        _state_of(task),
        f"{task['position']:,}",
        f"{task['lag']:,}",
        f"{task['checkpoint']:,}",
    )


def _state_of(task: Mapping[str, Any]) -> str:
    """Return the state of the copy that stands for a task; how far a fetch of its data has come, if it fetches."""
    fetching = [
        copy["fetching"]
        for copy in task.get("copies") or []
        if (copy["node"], copy["unit"]) == (task.get("node"), task.get("unit")) and copy.get("fetching")
    ]
    # Why it failed is told below the table.
    return fetching_text(fetching[0]) if fetching else str(task["state"]).partition(":")[0]


def _other_copies(task: Mapping[str, Any]) -> Iterator[str]:
    for copy in task.get("copies") or []:
        if (copy["node"], copy["unit"]) != (task.get("node"), task.get("unit")):
            yield f"{copy['node']}/{copy['unit']} {behind_text(copy)}"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `railgun status`."""
    add_server(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def execute(arguments: argparse.Namespace) -> int:
    """Print the status. Raises ClientError."""
    with (
        client_of(arguments, patience_s=_PATIENCE_S, timeout_s=_TIMEOUT_S) as client,
        late_answer_said("status", "is that the address of a Railgun server?"),
    ):
        status = client.status()
    print(
        json.dumps(status, indent=2) if arguments.json else as_text(status),
        end="\n" if arguments.json else "",
    )
    return 0


STATUS = Command(
    name="status",
    summary="what a running server holds: streams, metrics, tasks, disk",
    description=(
        "Show the streams of a running server, their metrics (how far those that are warming have come), the\n"
        "tasks with the offsets they are at and the one their last checkpoint covers, and the disk."
    ),
    example="railgun status --url http://127.0.0.1:8080",
    configure=configure,
    execute=execute,
)
