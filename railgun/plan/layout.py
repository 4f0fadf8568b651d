"""Row layouts: which cells the rows of a group-by hold, where they lie, and how they move when metrics change.

One row per (group-by, entity) holds the fixed-size state of all its nodes (decision 6 of the architecture).
Cells are told by text, so that the same cell is found again in the next version of the layout.
"""

from dataclasses import dataclass, field

from railgun.state.rows.context import LINE_WORDS, ROW_HEAD_BYTES, ROW_HEAD_WORDS


@dataclass(slots=True)
class GroupLayout:
    """The layout of one group-by's rows in one version. Offsets and `words` are in words from the first cell."""

    group: int
    fields: tuple[str, ...]
    version: int = 0
    words: int = 0
    cells: dict[str, tuple[int, int]] = field(default_factory=dict)

    def hold_together(self, words: int) -> None:
        """Begin a run of so many words of cells where it lies across as few cache lines as it can.

        Not at a row's beginning: narrow rows are not laid out by lines.
        """
        within = (ROW_HEAD_WORDS + self.words) % LINE_WORDS
        if self.words and within + words > -(-words // LINE_WORDS) * LINE_WORDS:
            self.words += LINE_WORDS - within

    def place(self, name: str, words: int) -> int:
        """Byte offset, from the row's first word, of a cell; it gets room when it is new."""
        known = self.cells.get(name)
        if known is None:
            known = self.cells[name] = (self.words, words)
            self.words += words
        return ROW_HEAD_BYTES + 8 * known[0]

    def moves_from(self, old: "GroupLayout") -> list[tuple[int, int, int]]:
        """(old offset, new offset, words) of the cells that both have, in words."""
        both = (name for name in self.cells if name in old.cells)
        return [(old.cells[name][0], self.cells[name][0], self.cells[name][1]) for name in both]
