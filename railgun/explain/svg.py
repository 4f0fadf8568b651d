"""An explanation as a drawing: windows over time, the shared graph, rows and hot columns.

Windows are bars over event time between their edges, so that shared edges are seen to meet. The plan is a layered
graph from left to right: window, filter, group by, metric, cell.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from railgun.explain import svg_palette as palette
from railgun.explain.explanation import CellPlan, Explanation, GroupPlan, PartitionerPlan, WindowPlan
from railgun.explain.svg_canvas import Canvas, Paint, shortened, text_width
from railgun.explain.wording import (
    COMPUTED_TITLE,
    DERIVED_TITLE,
    cell_text,
    count_text,
    definition_text,
    edge_text,
    group_by_text,
    hot_column_text,
    partitioner_text,
    row_text,
    summary_text,
)

_ROW, _BAR, _GUTTER_GAP, _LABEL_GAP = 22, 12, 20, 22


def draw_timeline(canvas: Canvas, plan: PartitionerPlan, x: float, y: float, width: float) -> float:
    """Draw at (x, y), `width` wide or as much as the edges' labels need; returns the y below.

    Edges stand in their order, not to scale: seconds and years would not fit on one.
    """
    deltas = [edge.delta_ms for edge in plan.edges]
    gutter = max(text_width(window.text) for window in plan.windows) + _GUTTER_GAP
    widest = max(text_width(edge_text(delta_ms), 11) for delta_ms in deltas) + _LABEL_GAP
    first, last = x + gutter + widest, x + max(width, gutter + widest * (len(deltas) + 1)) - widest / 2
    step = (last - first) / max(len(deltas) - 1, 1)
    places = {delta_ms: last - number * step for number, delta_ms in enumerate(deltas)}
    bottom = y + _ROW * (len(plan.windows) + 1)
    for edge in plan.edges:
        place = places[edge.delta_ms]
        is_shared = edge.windows > 1
        canvas.text(
            place, y + 6, edge_text(edge.delta_ms), palette.INK, size=11, bold=is_shared, anchor="middle"
        )
        canvas.line(place, y + 16, place, bottom, palette.MUTED if is_shared else palette.RULE)
    for number, window in enumerate(plan.windows):
        middle = y + _ROW * (number + 1) + _ROW / 2
        canvas.text(x, middle, window.text, palette.INK)
        _bar(canvas, window, places, x + gutter, middle)
    return bottom


def _bar(canvas: Canvas, window: WindowPlan, places: dict[int, float], begin: float, middle: float) -> None:
    """Draw a bar from tail to head. If it begins at no edge, it is dashed and begins at the far left."""
    head, top = places[window.head_ms], middle - _BAR / 2
    if window.tail_ms is None:
        canvas.box(begin, top, head - begin, _BAR, palette.WINDOW_OPEN, window.interval)
        canvas.text(begin + 8, middle, _OPEN[window.kind], palette.MUTED, size=10)
    else:
        tail = places[window.tail_ms]
        canvas.box(tail, top, head - tail, _BAR, palette.WINDOW, window.interval)


_OPEN = {"tumbling": "from the bucket's beginning", "infinite": "from the first event"}


_HEADINGS = ("window", "filter", "group by", "metric", "state of an entity")
_TEXT_MAX = 48
_NODE_LINE, _PADDING, _GAP, _BLOCK_GAP, _COLUMN_GAP = 17, 7, 6, 16, 56


@dataclass(frozen=True, slots=True)
class _Node:
    lines: tuple[str, ...]
    paint: Paint

    @property
    def height(self) -> float:
        return len(self.lines) * _NODE_LINE + 2 * _PADDING - 4

    @property
    def width(self) -> float:
        return max(text_width(shortened(line, _TEXT_MAX)) for line in self.lines) + 2 * _PADDING + 4


def draw_graph(canvas: Canvas, plan: PartitionerPlan, x: float, y: float) -> float:
    """Draw a partitioner's plan with its upper left corner at (x, y); returns the y below it."""
    return _Graph(canvas, plan, x).draw(y)


class _Graph:
    def __init__(self, canvas: Canvas, plan: PartitionerPlan, x: float) -> None:
        self._canvas, self._plan = canvas, plan
        self._x: list[float] = []
        self._widths = [
            max([text_width(heading)] + [each.width for each in nodes]) if nodes else 0
            for heading, nodes in zip(_HEADINGS, _columns(plan))
        ]
        for width in self._widths:
            self._x.append(x)
            x += width + _COLUMN_GAP if width else 0

    def draw(self, y: float) -> float:
        """Draw the graph. Returns the y below it."""
        for x, width, heading in zip(self._x, self._widths, _HEADINGS):
            if width:
                self._canvas.text(x, y + 6, heading, palette.MUTED, size=11)
        y += 24
        for window in self._plan.windows:
            y = self._window(window, y)
        return y

    def _window(self, window: WindowPlan, y: float) -> float:
        middles: list[tuple[float, int]] = []
        for each in window.filters:
            groups: list[float] = []
            for group in each.groups:
                height = _group_height(group)
                groups.append(y + height / 2)
                self._group(group, y, height)
                y += height + _BLOCK_GAP
            if each.predicate is None:
                middles += [(middle, 2) for middle in groups]
                continue
            middle = _middle(groups)
            self._links(1, [(below, 2) for below in groups], middle)
            self._node(1, middle, _filter_node(each.predicate))
            middles.append((middle, 1))
        top = _middle([middle for middle, _ in middles])
        self._links(0, middles, top)
        self._node(0, top, _window_node(window))
        return y

    def _group(self, group: GroupPlan, y: float, height: float) -> None:
        middle = y + height / 2
        metrics = [_metric_node(*each) for each in _metric_lines(group)]
        metric_middles = _stacked(metrics, middle)
        cells = [_cell_node(cell) for cell in group.cells]
        cell_middles = _stacked(cells, middle)
        self._links(2, [(each, 3) for each in metric_middles], middle)
        names = [metric.name for metric in group.metrics]
        for cell, cell_middle in zip(group.cells, cell_middles):
            stroke = palette.SHARED_LINK if len(cell.metrics) > 1 else palette.LINK
            for name in cell.metrics:
                self._link(3, metric_middles[names.index(name)], 4, cell_middle, stroke)
        self._node(2, middle, _group_node(group))
        for column, nodes, middles in ((3, metrics, metric_middles), (4, cells, cell_middles)):
            for node, node_middle in zip(nodes, middles):
                self._node(column, node_middle, node)

    def _links(self, column: int, to: Sequence[tuple[float, int]], middle: float) -> None:
        for below, target in to:
            self._link(column, middle, target, below, palette.LINK)

    def _link(self, column: int, y: float, target: int, target_y: float, stroke: str) -> None:
        self._canvas.link(self._x[column] + self._widths[column], y, self._x[target], target_y, stroke)

    def _node(self, column: int, middle: float, node: _Node) -> None:
        x, top = self._x[column], middle - node.height / 2
        self._canvas.box(x, top, self._widths[column], node.height, node.paint, "\n".join(node.lines))
        for number, line in enumerate(node.lines):
            fill = palette.MUTED if number else node.paint.text
            self._canvas.text(
                x + _PADDING + 2,
                top + _PADDING - 2 + (number + 0.5) * _NODE_LINE,
                shortened(line, _TEXT_MAX),
                fill,
                bold=number == 0 and len(node.lines) > 1,
            )


def _columns(plan: PartitionerPlan) -> list[list[_Node]]:
    groups = plan.groups
    return [
        [_window_node(window) for window in plan.windows],
        [
            _filter_node(each.predicate)
            for window in plan.windows
            for each in window.filters
            if each.predicate
        ],
        [_group_node(group) for group in groups],
        [_metric_node(*each) for group in groups for each in _metric_lines(group)],
        [_cell_node(cell) for group in groups for cell in group.cells],
    ]


def _window_node(window: WindowPlan) -> _Node:
    return _Node((window.text, window.interval), palette.WINDOW)


def _filter_node(predicate: str) -> _Node:
    return _Node((predicate,), palette.FILTER)


def _group_node(group: GroupPlan) -> _Node:
    return _Node((group_by_text(group.fields),), palette.GROUP)


def _metric_lines(group: GroupPlan) -> list[tuple[str, str]]:
    return [(metric.name, f"{metric.aggregate} {metric.type}") for metric in group.metrics]


def _metric_node(name: str, what: str) -> _Node:
    return _Node((name, what), palette.METRIC)


def _cell_node(cell: CellPlan) -> _Node:
    return _Node((cell_text(cell),), palette.CELL_SHARED if len(cell.metrics) > 1 else palette.CELL)


def _stack_height(nodes: Sequence[_Node]) -> float:
    return sum(node.height for node in nodes) + _GAP * (len(nodes) - 1)


def _group_height(group: GroupPlan) -> float:
    metrics = [_metric_node(*each) for each in _metric_lines(group)]
    return max(_stack_height(metrics), _stack_height([_cell_node(cell) for cell in group.cells]))


def _stacked(nodes: Sequence[_Node], middle: float) -> list[float]:
    """Return the middles of nodes that are stacked around a middle."""
    y, found = middle - _stack_height(nodes) / 2, []
    for node in nodes:
        found.append(y + node.height / 2)
        y += node.height + _GAP
    return found


def _middle(places: Sequence[float]) -> float:
    return (places[0] + places[-1]) / 2


_MARGIN, _WIDTH, _SECTION_GAP, _LINE = 28, 900, 22, 19
_LINE_TEXT_MAX = 160


def render_svg(explanation: Explanation) -> str:
    """Return a document for browsers and printers, with one partitioner below another."""
    canvas = Canvas()
    y = float(_MARGIN)
    for stream in explanation.streams:
        if stream.computed:
            lines = [f"{definition_text(each)}   {each.type}" for each in stream.computed]
            y = _list(canvas, f"{stream.name}: {COMPUTED_TITLE}", lines, y) + _MARGIN
        for plan in stream.partitioners:
            y = _partitioner(canvas, stream.name, plan, y) + 2 * _MARGIN
        if stream.derived:
            lines = [f"{definition_text(each)}   {each.type}" for each in stream.derived]
            y = _list(canvas, f"{stream.name}: {DERIVED_TITLE}", lines, y) + _MARGIN
    names = ", ".join(stream.name for stream in explanation.streams)
    return canvas.document(f"Plan of {names}", _MARGIN)


def _partitioner(canvas: Canvas, stream: str, plan: PartitionerPlan, y: float) -> float:
    canvas.text(
        _MARGIN, y, f"{stream}, {partitioner_text(plan.partitioner)}", palette.INK, size=20, bold=True
    )
    tasks = count_text(plan.tasks, "task")
    summary = f"{tasks}, each: {summary_text(plan)}" if plan.tasks > 1 else f"{tasks}: {summary_text(plan)}"
    canvas.text(_MARGIN, y + 26, summary if plan.windows else f"{tasks}: no metric lives here", palette.MUTED)
    canvas.line(_MARGIN, y + 42, _MARGIN + _WIDTH, y + 42, palette.RULE)
    y += 62
    if not plan.windows:
        return y
    y = draw_timeline(canvas, plan, _MARGIN, y, _WIDTH) + _SECTION_GAP
    y = draw_graph(canvas, plan, _MARGIN, y) + _SECTION_GAP
    y = _list(canvas, "row of each entity, found once per event", [row_text(row) for row in plan.rows], y)
    columns = [hot_column_text(column) for column in plan.hot_columns]
    return _list(canvas, "hot columns, computed once per event and stored with it", columns, y)


def _list(canvas: Canvas, heading: str, lines: Sequence[str], y: float) -> float:
    canvas.text(_MARGIN, y, heading, palette.MUTED, size=11)
    for line in lines:
        y += _LINE
        canvas.text(_MARGIN + 12, y, shortened(line, _LINE_TEXT_MAX), palette.INK)
    return y + _SECTION_GAP + 6
