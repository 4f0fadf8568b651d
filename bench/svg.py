"""What drawings have in common: an SVG document on a white ground, and its text."""

from collections.abc import Sequence
from xml.sax.saxutils import escape

WIDTH = 760


def document(pieces: Sequence[str], height: float, note: str) -> str:
    """Return an SVG document of pieces, with a note below them."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height:.0f}" font-family="sans-serif">',
            f'<rect width="{WIDTH}" height="{height:.0f}" fill="#ffffff"/>',
            *pieces,
            text(16, height - 10, note, size=10),
            "</svg>\n",
        ]
    )


def text(x: float, y: float, words: str, *, size: int = 12, anchor: str = "start") -> str:
    """Return a line of text. anchor: which part of it is at x."""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="#0f172a">'
        f"{escape(words)}</text>"
    )
