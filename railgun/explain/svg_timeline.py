"""The windows of a plan over event time: bars between edges, so that shared edges are seen to meet."""

from railgun.explain import svg_palette as palette
from railgun.explain.explanation import PartitionerPlan, WindowPlan
from railgun.explain.svg_canvas import Canvas, text_width
from railgun.explain.wording import edge_text

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
    """A bar from tail to head; dashed, from the far left, where it begins at no edge."""
    head, top = places[window.head_ms], middle - _BAR / 2
    if window.tail_ms is None:
        canvas.box(begin, top, head - begin, _BAR, palette.WINDOW_OPEN, window.interval)
        canvas.text(begin + 8, middle, _OPEN[window.kind], palette.MUTED, size=10)
    else:
        tail = places[window.tail_ms]
        canvas.box(tail, top, head - tail, _BAR, palette.WINDOW, window.interval)


_OPEN = {"tumbling": "from the bucket's beginning", "infinite": "from the first event"}
