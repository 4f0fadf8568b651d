"""Shows the demo's cluster: a row for each node, a cell for each task, and how others took over from a killed node."""

from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from railgun.demo.nodes import COPIES, NAMES, Failover, Nodes, answers

# The look of a cell, by the state of the copy.
_CELLS = {
    "answering": ("●", "bold green"),
    "silent": ("○", "cyan"),
    "behind": ("◌", "yellow"),
    "failed": ("✗", "bold red"),
}
_OTHER, _NONE = ("◌", "yellow"), ("·", "dim")


def nodes_panel(nodes: Nodes) -> RenderableType:
    """Return the panel of the cluster, as it was seen last."""
    tasks, failover = nodes.seen["tasks"], nodes.failover
    table = Table.grid(expand=True, padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(ratio=1, no_wrap=True)
    for name in NAMES:
        is_killed = failover is not None and failover.node == name and not failover.is_back
        cells = Text()
        for task in tasks:
            cell, style = _cell(name, task)
            cells.append(f"{cell} ", "dim red" if is_killed else style)
        style = "bold red" if is_killed else "bold"
        table.add_row(Text(name, style), cells, "killed" if is_killed else _counts(name, nodes))
    leader = nodes.seen.get("leader") or "nobody"
    title = f"{len(NAMES)} nodes, {len(tasks)} tasks × {COPIES} copies, led by {leader}"
    legend = Text("● answers  ○ stands by  ◌ catches up", "dim")
    return Panel(Group(table, _failover(failover)), border_style="magenta", title=title, subtitle=legend)


def said(failover: Failover) -> str:
    """Describe a failover in a sentence."""
    if failover.elsewhere_s is None:
        return f"{failover.node} killed after {failover.departures:,} departures: it answered {failover.tasks} tasks"
    return (
        f"{failover.node} killed after {failover.departures:,} departures: its {failover.tasks} tasks were answered "
        f"elsewhere after {failover.elsewhere_s:.2f} s"
    )


def _cell(node: str, task: Mapping[str, Any]) -> tuple[str, str]:
    for copy in task["copies"]:
        if copy["node"] == node:
            return _CELLS.get(copy["state"], _OTHER)
    return _NONE


def _counts(name: str, nodes: Nodes) -> str:
    tasks = nodes.seen["tasks"]
    active = sum(answers(task) == name for task in tasks)
    held = sum(any(copy["node"] == name for copy in task["copies"]) for task in tasks)
    return f"answers {active}, stands by for {held - active}"


def _failover(failover: Failover | None) -> Text:
    if failover is None:
        return Text("half-way, one of them will be killed …", style="dim")
    style = "bold red" if failover.elsewhere_s is None else "bold green"
    return Text(said(failover), style=style)
