"""An independent reader of stored pages: entries of a tree, and whether it is as paged/FORMAT.md says."""

import struct

Entry = tuple[int, ...]


class StoredTree:
    """Walks the stored bodies of pages from a root; `reached` gathers the ids of all pages met."""

    def __init__(self, bodies: dict[int, bytes], page_words: int) -> None:
        self.bodies = bodies
        self.page_words = page_words
        self.reached: set[int] = set()

    def entries(self, root: int) -> list[Entry]:
        """All entries below a root page in order; asserts everything that must hold of the pages."""
        if root == 0:
            return []
        level = self._page(root)[0]
        return self._below(root, level, (0, 0), None)

    def _page(self, number: int) -> tuple[int, int, list[Entry]]:
        state, words = struct.unpack_from("<II", self.bodies[number])
        content = struct.unpack_from(f"<{words}Q", self.bodies[number], 8)
        kind, value_words, level, count = (state >> 4) & 3, (state >> 6) & 3, (state >> 8) & 31, state >> 16
        size = 3 if level else 2 + value_words
        assert kind == 1
        assert state & 15 == 0
        assert len(self.bodies[number]) == 8 + 8 * words
        assert words == count * size
        assert 0 < words <= self.page_words - 4
        return level, value_words, [content[i : i + size] for i in range(0, words, size)]

    def _below(self, number: int, level: int, low: Entry, high: Entry | None) -> list[Entry]:
        assert number not in self.reached, f"page {number} is reached twice"
        self.reached.add(number)
        found_level, _, rows = self._page(number)
        assert found_level == level
        keys = [row[:2] for row in rows]
        inner = keys if level == 0 else keys[1:]
        assert all(low <= key for key in inner)
        assert high is None or all(key < high for key in inner)
        assert inner == sorted(set(inner))
        if level == 0:
            return rows
        bounds: list[Entry | None] = [low, *keys[1:], high]
        found: list[Entry] = []
        for row, start, stop in zip(rows, bounds, bounds[1:]):
            assert start is not None
            found += self._below(row[2], level - 1, start, stop)
        return found
