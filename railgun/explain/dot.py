"""An explanation as a Graphviz graph."""

from collections.abc import Iterator

from railgun.explain.explanation import Explanation, GroupPlan, PartitionerPlan, StreamPlan, WindowPlan
from railgun.explain.wording import (
    cell_text,
    definition_text,
    edge_text,
    group_by_text,
    partitioner_text,
    summary_text,
)

_HEAD = """digraph railgun {
  rankdir=LR
  node [shape=box, style="rounded", fontname="monospace", fontsize=10]
  edge [arrowsize=0.6]
  fontname="monospace"
"""


def render_dot(explanation: Explanation) -> str:
    """Return a graph with a cluster for each partitioner of each stream. Shared cells and edges of windows are bold."""
    lines: list[str] = []
    for s, stream in enumerate(explanation.streams):
        for p, plan in enumerate(stream.partitioners):
            label = f"{stream.name}, {partitioner_text(plan.partitioner)}: {summary_text(plan)}"
            lines += [f"subgraph cluster_{s}_{p} {{", f"  label={_quoted(label)}"]
            lines += [f"  {line}" for line in _partitioner(plan, f"n{s}_{p}")]
            lines.append("}")
        lines += _derived(stream, s)
    return _HEAD + "".join(f"  {line}\n" for line in lines) + "}\n"


def _derived(stream: StreamPlan, number: int) -> Iterator[str]:
    """Yield a node for each derived metric, after the metrics and derived metrics that its expression names."""
    nodes = {
        leaf.name: f"n{number}_{p}_w{w}_f{f}_g{g}_m{m}"
        for p, plan in enumerate(stream.partitioners)
        for w, window in enumerate(plan.windows)
        for f, each in enumerate(window.filters)
        for g, group in enumerate(each.groups)
        for m, leaf in enumerate(group.metrics)
    }
    nodes |= {each.name: f"n{number}_d{place}" for place, each in enumerate(stream.derived)}
    for each in stream.derived:
        yield _node(nodes[each.name], f"{definition_text(each)}\n{each.type}", ", style=dashed")
        for operand in each.reads:
            yield f"{nodes[operand]} -> {nodes[each.name]}"


def _partitioner(plan: PartitionerPlan, prefix: str) -> Iterator[str]:
    for edge in plan.edges:
        style = ", style=bold" if edge.windows > 1 else ""
        yield _node(f"{prefix}_e{edge.delta_ms}", edge_text(edge.delta_ms), f", shape=ellipse{style}")
    for w, window in enumerate(plan.windows):
        yield from _window(window, f"{prefix}_w{w}", f"{prefix}_e")


def _window(window: WindowPlan, name: str, edge: str) -> Iterator[str]:
    yield _node(name, f"{window.text}\n{window.interval}")
    yield f'{edge}{window.head_ms} -> {name} [label="adds"]'
    if window.tail_ms is not None:
        yield f'{edge}{window.tail_ms} -> {name} [label="removes", style=dashed]'
    for f, each in enumerate(window.filters):
        above = name
        if each.predicate is not None:
            above = f"{name}_f{f}"
            yield _node(above, f"WHERE {each.predicate}")
            yield f"{name} -> {above}"
        for g, group in enumerate(each.groups):
            yield from _group(group, f"{name}_f{f}_g{g}", above)


def _group(group: GroupPlan, name: str, above: str) -> Iterator[str]:
    yield _node(name, group_by_text(group.fields))
    yield f"{above} -> {name}"
    cells: dict[str, list[str]] = {}
    for c, cell in enumerate(group.cells):
        style = ", style=bold" if len(cell.metrics) > 1 else ""
        yield _node(f"{name}_c{c}", cell_text(cell), f", shape=cylinder{style}")
        for metric in cell.metrics:
            cells.setdefault(metric, []).append(f"{name}_c{c}")
    for m, leaf in enumerate(group.metrics):
        yield _node(f"{name}_m{m}", f"{leaf.name}\n{leaf.aggregate} {leaf.type}")
        yield f"{name} -> {name}_m{m}"
        for cell_name in cells[leaf.name]:
            yield f"{name}_m{m} -> {cell_name} [arrowhead=none]"


def _node(name: str, label: str, more: str = "") -> str:
    return f"{name} [label={_quoted(label)}{more}]"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
