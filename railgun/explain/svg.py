"""An explanation as a drawing: windows over time, the shared graph, rows and hot columns."""

from collections.abc import Sequence

from railgun.explain import svg_palette as palette
from railgun.explain.explanation import Explanation, PartitionerPlan
from railgun.explain.svg_canvas import Canvas, shortened
from railgun.explain.svg_graph import draw_graph
from railgun.explain.svg_timeline import draw_timeline
from railgun.explain.wording import count_text, hot_column_text, partitioner_text, row_text, summary_text

_MARGIN, _WIDTH, _SECTION_GAP, _LINE = 28, 900, 22, 19
_LINE_TEXT_MAX = 160


def render_svg(explanation: Explanation) -> str:
    """A document for browsers and printers, partitioner below partitioner."""
    canvas = Canvas()
    y = float(_MARGIN)
    for stream in explanation.streams:
        for plan in stream.partitioners:
            y = _partitioner(canvas, stream.name, plan, y) + 2 * _MARGIN
    names = ", ".join(stream.name for stream in explanation.streams)
    return canvas.document(f"Plan of {names}", _MARGIN)


def _partitioner(canvas: Canvas, stream: str, plan: PartitionerPlan, y: float) -> float:
    canvas.text(
        _MARGIN, y, f"{stream}, {partitioner_text(plan.partitioner)}", palette.INK, size=20, bold=True
    )
    tasks = count_text(plan.tasks, "task")
    said = f"{tasks}, each: {summary_text(plan)}" if plan.tasks > 1 else f"{tasks}: {summary_text(plan)}"
    canvas.text(_MARGIN, y + 26, said if plan.windows else f"{tasks}: no metric lives here", palette.MUTED)
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
