"""What drawings have in common: an SVG document on a white ground, and its text."""

import textwrap
from collections.abc import Sequence
from xml.sax.saxutils import escape

WIDTH = 760
# A line of the note has so many characters: they fit in the width.
_NOTE_CHARACTERS, _NOTE_LINE = 130, 14


def document(pieces: Sequence[str], height: float, note: str) -> str:
    """Return an SVG document of pieces of this height, with a note below them."""
    note_lines = textwrap.wrap(note, _NOTE_CHARACTERS)
    places = [height + _NOTE_LINE * (place + 1) for place in range(len(note_lines))]
    height += _NOTE_LINE * (len(note_lines) + 1)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height:.0f}" font-family="sans-serif">',
            f'<rect width="{WIDTH}" height="{height:.0f}" fill="#ffffff"/>',
            *pieces,
            *(text(16, y, line, size=10) for y, line in zip(places, note_lines, strict=True)),
            "</svg>\n",
        ]
    )


def text(x: float, y: float, words: str, *, size: int = 12, anchor: str = "start") -> str:
    """Return a line of text. anchor: which part of it is at x."""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="#0f172a">'
        f"{escape(words)}</text>"
    )
