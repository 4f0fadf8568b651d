"""`railgun cluster`: the nodes of a cluster and the copies of its tasks; and what a change would move."""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from railgun.cli.failures import EXIT_NO, UsageError
from railgun.cli.parser import Command
from railgun.cli.server_url import add_server, client_of, ordering_client
from railgun.cli.wording import behind_text, log_columns, size_text, table_lines
from railgun.wording import counted, time_text

if TYPE_CHECKING:
    from railgun.client.client import Client

_PLAN, _ACCEPT_CUT, _ACCEPT_GAP = "plan", "accept-cut", "accept-gap"
# How much of what has happened is printed.
_LATELY = 5
_CUT_DELETES = (
    "copies that had processed records which its log has lost will delete their data and be made anew from the log; if "
    "the topic of its log was deleted or made anew, every copy will delete its data and begin with nothing"
)


def as_text(cluster: Mapping[str, Any], *, with_tasks: bool = False) -> str:
    """Return lines for a terminal."""
    nodes, tasks = cluster["nodes"], cluster["tasks"]
    units = sum(node["units"] for node in nodes)
    copies = cluster["copies"]
    lines = [
        (
            f"{counted(len(nodes), 'node')}, {counted(units, 'unit')}, {counted(len(tasks), 'task')} × "
            f"{counted(copies, 'copy', 'copies')}; "
            f"{_leader(cluster['leader'])}, plan {cluster['plan']}; {counted(cluster['moves'], 'move')}, "
            f"{counted(cluster['behind'], 'copy', 'copies')} behind{_unheard(cluster)}"
        )
    ]
    if nodes:
        states = Counter((copy["node"], copy["state"]) for task in tasks for copy in task["copies"])
        lines += table_lines([_NODE, *(_node(node, states) for node in nodes)])
    else:
        lines.append("no node runs; start one with `railgun node`")
    lines += [f"  {node['name']} waits: {why}" for node in nodes for why in node.get("waits") or ()]
    lines += [f"WARNING: {warning}" for warning in cluster["warnings"]]
    lines += _lately(cluster.get("lately"))
    if with_tasks and tasks:
        rows = [("task", "copies"), *((_name(task), _copies(task)) for task in tasks)]
        logs = log_columns(tasks)
        lines += ["", *table_lines([(name, *log, copies) for (name, copies), log in zip(rows, logs)])]
        lines += [f"  {failure}" for task in tasks for failure in _failures(task)]
    return "\n".join(lines) + "\n"


def _lately(noted: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield what has happened last. noted: None if the server is older and does not say."""
    if noted is None:
        return
    entries, since = noted["entries"], _second(noted["since_ms"])
    if noted.get("overdue"):
        looked = _second(noted["looked_ms"] or noted["since_ms"])
        yield f"lately: not looked since {looked}; what has happened after that is not known"
    if not entries:
        return
    more = f"; the last {_LATELY} of {len(entries)}, all with --json" if len(entries) > _LATELY else ""
    yield f"lately, as the server has noted since {since}{more}:"
    for each in entries[:_LATELY]:
        first, last = _second(each["first_ms"]), _second(each["at_ms"])
        yield f"  {last} {each['text']}{f' (the first at {first})' if first != last else ''}"


def _second(time_ms: int) -> str:
    return time_text(time_ms // 1_000 * 1_000)


_NODE = ("node", "state", "rack", "units", "active", "copies", "release")


def _leader(name: str | None) -> str:
    return "no node leads" if name is None else f"leader {name}"


def _unheard(cluster: Mapping[str, Any]) -> str:
    return _not_reporting(cluster.get("unheard") or 0)


def _not_reporting(copies: int) -> str:
    return f", {copies:,} {'does' if copies == 1 else 'do'} not report" if copies else ""


def _node(node: Mapping[str, Any], states: Counter[tuple[str, str | None]]) -> tuple[str, ...]:
    """Return the row of a node. states: how many copies there are, by node and state."""
    name, numbers = node["name"], (f"{node[key]:,}" for key in ("units", "active", "copies"))
    is_away = not node.get("alive", node["state"] != "away")
    state = node["state"] + (", away" if is_away and node["state"] != "away" else "")
    state += ", units go on" if node.get("units_go_on") else ""
    failed = states[name, "failed"]
    state += f", {failed:,} failed" if failed else ""
    # Of a node that is away that is no news.
    state += "" if is_away else _not_reporting(states[name, None])
    return (name, state, node["rack"] or "-", *numbers, node["release"] or "?")


def _name(task: Mapping[str, Any]) -> str:
    return f"{task['stream']}/{task['partitioner']}/{task['partition']}"


def _copies(task: Mapping[str, Any]) -> str:
    return ", ".join(map(_copy, task["copies"])) or "none"


def _failures(task: Mapping[str, Any]) -> Iterator[str]:
    """Yield why copies of a task have failed."""
    for copy in task["copies"]:
        if copy.get("failure"):
            yield f"{_name(task)} on {copy['node']}/{copy['unit']} has failed: {copy['failure']}"


def _copy(copy: Mapping[str, Any]) -> str:
    return f"{copy['node']}/{copy['unit']} {behind_text(copy)}" + ("" if copy["planned"] else " (goes)")


def consequences_as_text(found: Mapping[str, Any], *, with_tasks: bool = False) -> str:
    """Return lines for a terminal."""
    made = found["made"]
    lines = [
        (
            f"{found['what_if']}: {counted(len(made), 'copy', 'copies')} to make, about {size_text(found['bytes'])}; "
            f"{counted(found['dropped'], 'copy', 'copies')} would go; "
            f"another copy would answer {counted(found['moves'], 'task')}"
        )
    ]
    to_make = Counter(each["node"] for each in made)
    rows = [
        (
            node["name"],
            node["rack"] or "-",
            *(f"{node[key]:,}" for key in ("units", "active", "copies")),
            f"{to_make[node['name']]:,}",
        )
        for node in found["nodes"]
    ]
    lines += table_lines([("node", "rack", "units", "active", "copies", "to make"), *rows]) if rows else []
    lines += [f"WARNING: {why}" for why in found["not_made"]]
    if with_tasks and made:
        rows = [
            (_name(each), f"{each['node']}/{each['unit']}", size_text(each["bytes"]), _source(each))
            for each in made
        ]
        lines += ["", *table_lines([("task", "made on", "about", "from"), *rows])]
    return "\n".join(lines) + "\n"


def _source(made: Mapping[str, Any]) -> str:
    """Return where the data of a copy would come from; `?` if the server is older and does not say."""
    if made.get("source") == "copies":
        return " or ".join(made["donors"])
    return str(made.get("source", "?"))


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `railgun cluster`."""
    parser.add_argument(
        "what",
        nargs="?",
        choices=[_PLAN, _ACCEPT_CUT, _ACCEPT_GAP],
        help="plan: what a change would move; needs --what-if. accept-cut: have a task go on without records that the "
        "broker has lost, or begin anew in another topic; needs its name. accept-gap: have a task go on with an old "
        "state, without records that its log no longer has; needs its name",
    )
    parser.add_argument(
        "task", nargs="?", metavar="TASK", help="STREAM/PARTITIONER/PARTITION, for accept-cut and accept-gap"
    )
    parser.add_argument(
        "--what-if", metavar="CHANGE", help="remove=NODE, add=NUMBER or copies=NUMBER; nothing is changed"
    )
    parser.add_argument(
        "--from",
        dest="from_node",
        metavar="NODE",
        help="for accept-gap: go on with the state of this node, whatever nodes that do not run have",
    )
    parser.add_argument("--yes", action="store_true", help="for accept-cut and accept-gap: do not ask")
    parser.add_argument("--tasks", action="store_true", help="show the copies and the log of each task")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_server(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Print the cluster, or what a change would move. Raises ClientError and UsageError."""
    is_plan, is_cut = arguments.what == _PLAN, arguments.what == _ACCEPT_CUT
    is_gap = arguments.what == _ACCEPT_GAP
    if is_plan != (arguments.what_if is not None):
        raise UsageError(
            "write it as railgun cluster plan --what-if remove=NODE, add=NUMBER or copies=NUMBER"
        )
    if (is_cut or is_gap) and arguments.task is None:
        raise UsageError(f"write it as railgun cluster {arguments.what} STREAM/PARTITIONER/PARTITION")
    if arguments.task is not None and not (is_cut or is_gap):
        raise UsageError(f"{arguments.task!r}: only {_ACCEPT_CUT} and {_ACCEPT_GAP} take the name of a task")
    if arguments.from_node is not None and not is_gap:
        raise UsageError("--from belongs to railgun cluster accept-gap STREAM/PARTITIONER/PARTITION")
    if arguments.yes and not (is_cut or is_gap):
        raise UsageError(f"--yes belongs to railgun cluster {_ACCEPT_CUT} and {_ACCEPT_GAP}")
    if is_cut or is_gap:
        with ordering_client(arguments, f"cluster {arguments.what}") as client:
            return (_accept_gap if is_gap else _accept_cut)(client, arguments)
    with client_of(arguments) as client:
        found = client.what_if(arguments.what_if) if is_plan else client.cluster()
    if arguments.json:
        print(json.dumps(found, indent=2))
    else:
        show = consequences_as_text if is_plan else as_text
        print(show(found, with_tasks=arguments.tasks), end="")
    return 0


def _accept_cut(client: "Client", arguments: argparse.Namespace) -> int:
    """Say what may be deleted, ask, and accept that a task's log has lost records or is another one."""
    task = _parts_of(arguments.task)
    if not arguments.yes:
        print(f"{arguments.task}: {_CUT_DELETES}", file=sys.stderr)
        if not _agrees():
            return EXIT_NO
    accepted = client.accept_cut(*task)
    print(json.dumps(accepted, indent=2) if arguments.json else _accepted(accepted))
    return 0


def _accept_gap(client: "Client", arguments: argparse.Namespace) -> int:
    """Say what is lost with a gap, ask, and accept it."""
    task, node = _parts_of(arguments.task), arguments.from_node or ""
    gap = None
    if not arguments.yes:
        gap = client.accept_gap(*task, node=node, dry_run=True)
        print(gap_as_text(gap), file=sys.stderr)
        if gap["outcome"] == "would_cross" and not _agrees():
            return EXIT_NO
    gap = client.accept_gap(*task, node=node, agreed=gap)
    print(json.dumps(gap, indent=2) if arguments.json else gap_as_text(gap))
    return 0


def _agrees() -> bool:
    """Ask, and return whether the answer is yes. Otherwise say that nothing was changed."""
    print("Go on? [y/N] ", end="", flush=True, file=sys.stderr)
    agrees = sys.stdin.readline().strip().lower() in ("y", "yes")
    if not agrees:
        print("nothing was changed", file=sys.stderr)
    return agrees


def gap_as_text(gap: Mapping[str, Any]) -> str:
    """Return what is lost with a gap, or that it was accepted before."""
    if gap["outcome"] == "accepted_before":
        return f"{_name(gap)} has nothing more to accept: an earlier order about this gap stands"
    goes = "goes" if gap["outcome"] == "crossed" else "would go"
    after = "" if gap["clock_ms"] is None else f" after {time_text(gap['clock_ms'])}"
    lost = (
        f"without offsets {gap['first']:,} to {gap['offset'] - 1:,}, whose events are lost: they may be from any "
        f"time{after} until {time_text(gap['gap_ms'])}"
        if gap["records"]
        else "without a loss"
    )
    return (
        f"{_name(gap)} {goes} on from offset {gap['offset']:,} of its log with the state of {gap['node']}, {lost}. "
        f"Metrics are partial as long as their windows begin at or before {time_text(gap['gap_ms'])}"
    )


def _parts_of(task: str) -> tuple[str, str, int]:
    stream, _, rest = task.partition("/")
    partitioner, _, partition = rest.rpartition("/")
    if not (stream and partitioner and partition.isdecimal()):
        raise UsageError(
            f"{task!r} names no task; write it as STREAM/PARTITIONER/PARTITION, as --tasks shows it"
        )
    return stream, partitioner, int(partition)


def _accepted(cut: Mapping[str, Any]) -> str:
    if cut.get("outcome") == "accepted_before":
        return f"{_name(cut)} has nothing more to accept: an earlier order stands, and its copies follow it"
    if cut.get("outcome") == "begun_anew":
        return (
            f"{_name(cut)} begins anew at offset {cut['offset']:,} of the topic that has the name of its log now, "
            f"with the present definitions; the {counted(cut['records'], 'record')} of the one before are lost"
        )
    return (
        f"{_name(cut)} goes on from offset {cut['offset']:,} of its log, without "
        f"{counted(cut['records'], 'record')} that had been answered; copies that had processed them are made anew"
    )


CLUSTER = Command(
    name="cluster",
    summary="show a cluster's nodes and copies, or what a change would move",
    description=(
        "Show the nodes of a cluster: how they stand, and how many copies of tasks they have. An active copy\n"
        "answers events; others follow, and one of them answers if it does not. `railgun cluster plan\n"
        "--what-if` shows what would be moved if a node were removed, nodes were added, or each task had\n"
        "another number of copies. `railgun cluster accept-cut TASK` has a task go on whose log has lost\n"
        "records at its end, by a loss of power of a broker or an unclean election; its copies say so and\n"
        "stop. Answers to the lost records were given, and later answers do not count them. Where the topic\n"
        "of a task was deleted, or made anew, its copies delete their state and begin anew. `railgun cluster\n"
        "accept-gap TASK` has a task go on whose log no longer reaches the state of any copy, with the newest\n"
        "state that is left and without the events between. Both say what that takes away, and ask. The exit\n"
        "code is 0 when the order is accepted, now or before, 1 if the question is not answered with yes, and\n"
        "2 for whatever else is wrong: no copy has found a loss, or not yet, or the broker does not answer\n"
        "for 10 s.\n\n"
        "state: live; away: it does not take part now; draining: its copies are made elsewhere; drained: it\n"
        "has none any more, and may be stopped. A node that is emptied while it is away is `draining, away`;\n"
        "`live, 1 failed`: a copy on it has failed; `live, 2 do not report`: nothing is heard of two copies\n"
        "on it; `away, units go on`: it is not in the group of nodes, and its units answer all the same.\n\n"
        "copies: answering: it answers the task's events; silent: it has caught up, and another one answers,\n"
        "as it should be; behind: it reads its log, and may not answer yet; failed: its node's log says why;\n"
        "closed: its unit was stopped; does not report: its unit has been silent for too long, so it is\n"
        "probably gone; (goes): the plan has no such copy any more.\n\n"
        "log from: the first offset that the broker still has of the task's log. needed from: the offset\n"
        "from which on a copy needs it, by the oldest last checkpoint; - if no copy has a checkpoint yet.\n"
        "left: the broker keeps the record there for at least so long; `for ever`, or ? where it is not\n"
        "known. A copy that comes back later has lost what it needs."
    ),
    example=(
        "railgun cluster --tasks\n"
        "  railgun cluster plan --what-if remove=node-2\n"
        "  railgun cluster accept-cut payments/card/0\n"
        "  railgun cluster accept-gap payments/card/0 --from node-2"
    ),
    configure=configure,
    execute=execute,
)
