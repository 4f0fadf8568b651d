"""Draws charts of lines over logarithmic axes, and of bars, as SVG."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bench.svg import WIDTH, document, text

CHART_HEIGHT = 340
_LEFT, _RIGHT, _TOP, _BOTTOM = 80, 200, 44, 52
_COLOURS = (
    *("#0b6e99", "#c2410c", "#4d7c0f", "#7c3aed", "#b91c1c", "#475569"),
    *("#0f766e", "#a16207", "#be185d"),
)
_TICKS = (1, 2, 5)
_BAR_LEFT, _BAR_ROW = 240, 40


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a chart. points: (x, y), both above 0.  dashed: for what was not measured here."""

    label: str
    points: Sequence[tuple[float, float]]
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart with its lines. x_title, y_title: with the unit.  x_names: of x values, in place of numbers."""

    title: str
    x_title: str
    y_title: str
    lines: Sequence[Line]
    x_names: dict[float, str] | None = None


@dataclass(frozen=True, slots=True)
class Bars:
    """A chart of bars from 0 on, one below the other. bars: label and value of each.  unit: of the values."""

    title: str
    unit: str
    bars: Sequence[tuple[str, float]]


def drawn(charts: Sequence[Chart | Bars], note: str) -> str:
    """Return charts below each other as one SVG document, a note under them."""
    pieces = []
    for place, chart in enumerate(charts):
        pieces += [f'<g transform="translate(0 {place * CHART_HEIGHT})">', *_pieces(chart), "</g>"]
    return document(pieces, CHART_HEIGHT * len(charts), note)


def _pieces(chart: Chart | Bars) -> list[str]:
    return _bars(chart) if isinstance(chart, Bars) else _chart(chart)


def _bars(chart: Bars) -> list[str]:
    pieces = [text(_LEFT, 24, chart.title, size=14)]
    if not chart.bars:
        return [*pieces, text(_LEFT, 60, "not measured")]
    greatest = max(value for _, value in chart.bars)
    for place, (label, value) in enumerate(chart.bars):
        y, width = _TOP + place * _BAR_ROW, (WIDTH - _RIGHT - _BAR_LEFT) * value / greatest
        size = f'width="{width:.1f}" height="{_BAR_ROW - 12}"'
        pieces += [
            text(_BAR_LEFT - 8, y + 18, label, anchor="end"),
            f'<rect x="{_BAR_LEFT}" y="{y}" {size} fill="{_COLOURS[0]}"/>',
            text(_BAR_LEFT + width + 8, y + 18, f"{value:,.3g} {chart.unit}"),
        ]
    return pieces


class _Axis:
    """Maps values to pixels by their logarithm."""

    def __init__(self, values: Sequence[float], first: float, last: float) -> None:
        self.least, self.greatest = min(values) / 1.1, max(values) * 1.1
        self._first, self._last = first, last

    def at(self, value: float) -> float:
        share = math.log(value / self.least) / math.log(self.greatest / self.least)
        return self._first + share * (self._last - self._first)

    def ticks(self) -> list[float]:
        decades = range(math.floor(math.log10(self.least)), math.ceil(math.log10(self.greatest)) + 1)
        ticks = [factor * 10.0**decade for decade in decades for factor in _TICKS]
        return [tick for tick in ticks if self.least <= tick <= self.greatest]


def _chart(chart: Chart) -> list[str]:
    points = [point for line in chart.lines for point in line.points]
    pieces = [text(_LEFT, 24, chart.title, size=14)]
    if not points:
        return [*pieces, text(_LEFT, 60, "not measured")]
    right, low = WIDTH - _RIGHT, CHART_HEIGHT - _BOTTOM
    x_axis = _Axis([x for x, _ in points], _LEFT, right)
    y_axis = _Axis([y for _, y in points], low, _TOP)
    pieces += [f'<path d="M{_LEFT} {_TOP}V{low}H{right}" fill="none" stroke="#334155"/>']
    for y in y_axis.ticks():
        at = y_axis.at(y)
        pieces += [
            f'<path d="M{_LEFT} {at:.1f}H{right}" stroke="#e2e8f0"/>',
            text(_LEFT - 6, at + 4, f"{y:,.10g}", anchor="end"),
        ]
    for x in sorted({x for x, _ in points}):
        name = (chart.x_names or {}).get(x, f"{x:,.10g}")
        pieces += [text(x_axis.at(x), low + 18, name, anchor="middle")]
    pieces += [
        text((_LEFT + right) / 2, low + 38, chart.x_title, anchor="middle"),
        text(16, _TOP - 8, chart.y_title),
    ]
    for place, line in enumerate(chart.lines):
        pieces += _line(line, _COLOURS[place % len(_COLOURS)], x_axis, y_axis, _TOP + 18 * place)
    return pieces


def _line(line: Line, colour: str, x_axis: _Axis, y_axis: _Axis, legend_y: float) -> list[str]:
    places = [(x_axis.at(x), y_axis.at(y)) for x, y in sorted(line.points)]
    if not places:
        return []
    dashes = ' stroke-dasharray="5 4"' if line.dashed else ""
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    left = WIDTH - _RIGHT + 16
    return [
        f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"{dashes}/>',
        *(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places),
        f'<path d="M{left} {legend_y}h22" stroke="{colour}" stroke-width="2"{dashes}/>',
        text(left + 28, legend_y + 4, line.label),
    ]
