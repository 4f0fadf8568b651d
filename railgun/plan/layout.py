"""Row layouts: which cells the rows of a group-by hold, where they lie, and how they move when metrics change.

One row per (group-by, entity) holds the fixed-size state of all its nodes (decision 6 of the architecture).
Cells are told by text, so that the same cell is found again in the next version of the layout.
"""

from dataclasses import dataclass, field

from railgun.state.row_context import ROW_HEAD_BYTES


@dataclass(slots=True)
class GroupLayout:
    """The layout of one group-by's rows in one version. Offsets and `words` are in words from the first cell."""

    group: int
    fields: tuple[str, ...]
    version: int = 0
    words: int = 0
    cells: dict[str, tuple[int, int]] = field(default_factory=dict)

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
