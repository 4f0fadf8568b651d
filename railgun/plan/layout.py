"""Row layouts: which cells the rows of a group-by hold, where they lie, and how they move when metrics change.

One row per (group-by, entity) holds the fixed-size state of all its nodes.
Cells are told by text, so that the same cell is found again in the next version of the layout.
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

    def moves_from(self, old: "GroupLayout", names: Mapping[str, str]) -> list[tuple[int, int, int]]:
        """(old offset, new offset, words) of cells that both have, in words. names: the new one by the old.

        Words between two cells that stay neighbours go with them: they are zeros in both. So a layout that only grew is
        one run from the first word on.
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
    """By cell the one behind it."""
    names = sorted(layout.cells, key=lambda name: layout.cells[name])
    return dict(pairwise(names))
