"""Makes boxes, lines and text as SVG elements, and measures them, so that a drawing knows its size."""

from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

FONT = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"
FONT_SIZE = 12
# All text has one monospaced font, whose advance is 0.602 em. So widths are known without a renderer.
CHARACTER_WIDTH = 0.602 * FONT_SIZE


def text_width(text: str, size: int = FONT_SIZE) -> float:
    """Return the width of a line in user units."""
    return len(text) * CHARACTER_WIDTH * size / FONT_SIZE


def shortened(text: str, characters: int) -> str:
    """Return the text; if it is too long, its beginning with an ellipsis."""
    return text if len(text) <= characters else text[: characters - 1] + "…"


@dataclass(frozen=True, slots=True)
class Paint:
    """The colours of a box: fill, line and text. A dashed line means that the box's place is not fixed."""

    fill: str
    line: str
    text: str
    dashed: bool = False


class Canvas:
    """Collects elements, from the back to the front. `width` and `height` reach around all of them."""

    def __init__(self) -> None:
        self._elements: list[str] = []
        self.width = 0.0
        self.height = 0.0

    def text(
        self,
        x: float,
        y: float,
        text: str,
        fill: str,
        *,
        size: int = FONT_SIZE,
        bold: bool = False,
        anchor: str = "start",
    ) -> None:
        """Add a line of text whose middle is at y."""
        weight = ' font-weight="600"' if bold else ""
        self._add(
            f'<text x="{x:.1f}" y="{y + 0.35 * size:.1f}" font-size="{size}" fill="{fill}" '
            f'text-anchor="{anchor}"{weight}>{escape(text)}</text>'
        )
        behind = {"start": 1.0, "middle": 0.5, "end": 0.0}[anchor]
        self._reach(x + behind * text_width(text, size), y + size)

    def box(self, x: float, y: float, width: float, height: float, paint: Paint, title: str = "") -> None:
        """Add a rounded rectangle. title: shown by browsers under the pointer."""
        dashes = ' stroke-dasharray="4 3"' if paint.dashed else ""
        tooltip = f"<title>{escape(title)}</title>" if title else ""
        self._add(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="6" '
            f'fill="{paint.fill}" stroke="{paint.line}"{dashes}>{tooltip}</rect>'
        )
        self._reach(x + width, y + height)

    def line(self, x1: float, y1: float, x2: float, y2: float, stroke: str, *, dashed: bool = False) -> None:
        """Add a straight line."""
        dashes = ' stroke-dasharray="3 3"' if dashed else ""
        self._add(
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{stroke}"{dashes}/>'
        )
        self._reach(max(x1, x2), max(y1, y2))

    def link(self, x1: float, y1: float, x2: float, y2: float, stroke: str) -> None:
        """Add a curve from left to right that leaves and arrives level."""
        bend = (x1 + x2) / 2
        curve = f"M{x1:.1f} {y1:.1f} C{bend:.1f} {y1:.1f} {bend:.1f} {y2:.1f} {x2:.1f} {y2:.1f}"
        self._add(f'<path d="{curve}" fill="none" stroke="{stroke}" stroke-width="1.2"/>')

    def document(self, title: str, margin: float) -> str:
        """Return the whole drawing on white, with a margin to the right and below."""
        width, height = self.width + margin, self.height + margin
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}" font-family={quoteattr(FONT)}>\n'
            f"<title>{escape(title)}</title>\n"
            '<rect width="100%" height="100%" fill="#ffffff"/>\n'
            + "".join(f"{element}\n" for element in self._elements)
            + "</svg>\n"
        )

    def _add(self, element: str) -> None:
        self._elements.append(element)

    def _reach(self, x: float, y: float) -> None:
        self.width, self.height = max(self.width, x), max(self.height, y)
