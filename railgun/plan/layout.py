"""Row layouts: the cells in the rows of a group-by, their offsets, and how they move when metrics change.

One row per (group-by, entity) holds the fixed-size state of all nodes of the group-by. A cell is the words of one
aggregate in the row. It is identified by a text, by which the next version of the layout finds it again. The compiler
of programs makes layouts, and the task hands them to its entity table.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise

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
        """Begin a run of cells of so many words at an offset where it spans as few cache lines as possible.

        At a row's beginning nothing is changed, because narrow rows are not aligned to cache lines.
        """
        within = (ROW_HEAD_WORDS + self.words) % LINE_WORDS
        if self.words and within + words > -(-words // LINE_WORDS) * LINE_WORDS:
            self.words += LINE_WORDS - within

    def place(self, name: str, words: int) -> int:
        """Return the byte offset of a cell from the row's first word. Add the cell at the end if it is new."""
        known = self.cells.get(name)
        if known is None:
            known = self.cells[name] = (self.words, words)
            self.words += words
        return ROW_HEAD_BYTES + 8 * known[0]

    def moves_from(self, old: "GroupLayout", names: Mapping[str, str]) -> list[tuple[int, int, int]]:
        """Return (old offset, new offset, number of words) of each run of cells that both layouts have, all in words.

        names: the new name of a cell by the old one.
        The gap between two cells that stay neighbours is moved with them: it is zeros in both layouts. So a layout that
        only grew is one run from the first word on.
        """
        followers, new_followers = _followers(old), _followers(self)
        moves: list[tuple[int, int, int]] = []
        for name, new_name in names.items():
            (offset, words), (new_offset, _) = old.cells[name], self.cells[new_name]
            following, new_following = followers.get(name), new_followers.get(new_name)
            if following is not None and names.get(following) == new_following is not None:
                gap = old.cells[following][0] - offset
                if gap == self.cells[new_following][0] - new_offset:
                    words = gap
            moves.append((offset, new_offset, words))
        return moves


def _followers(layout: GroupLayout) -> dict[str, str]:
    """Return by cell the cell that follows it."""
    names = sorted(layout.cells, key=lambda name: layout.cells[name])
    return dict(pairwise(names))
