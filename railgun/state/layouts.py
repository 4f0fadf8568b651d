"""The versions of a group's row layout, and how a row of an older version becomes a row of the newest.

A group is one GROUP BY of the metrics. Its layout changes when metrics come or go. `RowGroups` (rows/groups.py) keeps a
`LayoutHistory` for each group.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from operator import attrgetter
from struct import Struct
from typing import NamedTuple

from railgun.state.errors import LayoutError

_HEAD = Struct("<II")
_RUN = Struct("<III")


class Run(NamedTuple):
    """A run of `words` cells that lie at `old` in one layout and at `new` in a later one. Offsets in words."""

    old: int
    new: int
    words: int


class Layout(NamedTuple):
    """One version: its number of cell words, and the runs of cells that come from the version before.

    All other cells start as 0.
    """

    version: int
    cells: int
    runs: tuple[Run, ...]

    def extends(self, before: "Layout") -> bool:
        """Whether all cells of the version before stay in place. The runs that lead to it then also lead to this."""
        return self.runs == (Run(0, 0, before.cells),)


class LayoutHistory:
    """All versions of the layout of one group, oldest first. Raises LayoutError for a version that does not fit.

    versions: only `add` appends to it. widest: the most cells that any version has.
    """

    def __init__(self, group: int) -> None:
        self.group = group
        self.versions: list[Layout] = []
        self.widest = 0
        # _changes[level][i] holds the runs of 2^level successive changes, composed into one. If thousands of metrics
        # came and went, an old row need not go through each change while an event waits for it.
        self._changes: list[list[tuple[Run, ...]]] = []
        self._to_newest: dict[int, tuple[Run, ...]] = {}

    @property
    def newest(self) -> Layout:
        """The layout in force. Must not be called if there is none."""
        return self.versions[-1]

    def add(self, layout: Layout) -> None:
        """Append a version. Its number must be above the last one's, and its runs must fit both versions."""
        if not 0 <= layout.version < 1 << 32 or not 0 < layout.cells < 1 << 20:
            raise self._error(layout, "the version must fit 32 bits, and the cells 20")
        if self.versions and layout.version <= self.newest.version:
            raise self._error(layout, f"the version in force is {self.newest.version}")
        old_cells = self.newest.cells if self.versions else 0
        end = 0
        for run in sorted(layout.runs, key=lambda run: run.new):
            if run.words <= 0 or run.old < 0 or run.old + run.words > old_cells:
                raise self._error(layout, f"{run} is not inside the {old_cells} cells before")
            if run.new < end or run.new + run.words > layout.cells:
                raise self._error(layout, f"{run} overlaps another or ends behind the last cell")
            end = run.new + run.words
        if self.versions:
            self._change(layout.runs)
            if not layout.extends(self.newest):
                self._to_newest.clear()
        self.versions.append(layout)
        self.widest = max(self.widest, layout.cells)

    def to_newest(self, version: int) -> tuple[Run, ...]:
        """Return the runs that bring a row of an older version into the newest layout."""
        place = bisect_left(self.versions, version, key=attrgetter("version"))
        newest = len(self.versions) - 1
        assert place < newest, "a row of the newest layout has nothing to go through"
        assert self.versions[place].version == version
        # The longest strides are taken. Older versions share most of them, so one more version needs few of its own.
        strides: list[tuple[int, tuple[Run, ...]]] = []
        while place < newest and place not in self._to_newest:
            level = (newest - place).bit_length() - 1
            if place:
                level = min(level, (place & -place).bit_length() - 1)
            strides.append((place, self._changes[level][place >> level]))
            place += 1 << level
        runs = self._to_newest.get(place)
        for start, stride in reversed(strides):
            runs = stride if runs is None else compose(stride, runs)
            self._to_newest[start] = runs
        assert runs is not None
        return runs

    def _change(self, runs: tuple[Run, ...]) -> None:
        """Note a change from one version to the next. Compose each pair of strides that it completes into one."""
        for level in self._changes:
            level.append(runs)
            if len(level) % 2:
                return
            runs = compose(level[-2], level[-1])
        self._changes.append([runs])

    def _error(self, layout: Layout, reason: str) -> LayoutError:
        return LayoutError(
            f"layout {layout.version} of group {self.group} with {layout.cells} cells: {reason}"
        )


def compose(first: Iterable[Run], second: Iterable[Run]) -> tuple[Run, ...]:
    """Return the runs of two changes that follow each other, composed into one change."""
    before = sorted(first, key=lambda run: run.new)
    after = sorted(second)
    found, at = [], 0
    for run in after:
        while at < len(before) and before[at].new + before[at].words <= run.old:
            at += 1
        for earlier in before[at:]:
            if earlier.new >= run.old + run.words:
                break
            start = max(earlier.new, run.old)
            words = min(earlier.new + earlier.words, run.old + run.words) - start
            found.append(Run(earlier.old + start - earlier.new, run.new + start - run.old, words))
    return _joined(found)


def pack_layout(layout: Layout) -> bytes:
    """Return the stored body of a version: cells, number of runs, runs. The version is in its key."""
    return _HEAD.pack(layout.cells, len(layout.runs)) + b"".join(_RUN.pack(*run) for run in layout.runs)


def unpack_layout(version: int, body: bytes) -> Layout:
    """Return what `pack_layout` has packed. Raises LayoutError for a body of the wrong length."""
    if len(body) < _HEAD.size:
        raise LayoutError(f"stored layout {version} is cut short")
    cells, count = _HEAD.unpack_from(body)
    if len(body) != _HEAD.size + count * _RUN.size:
        raise LayoutError(f"stored layout {version} has the wrong length")
    return Layout(version, cells, tuple(Run(*run) for run in _RUN.iter_unpack(body[_HEAD.size :])))


def to_runs(mapping: Sequence[tuple[int, int, int]]) -> tuple[Run, ...]:
    """Runs from plain (old offset, new offset, words)."""
    return _joined(Run(*run) for run in mapping)


def _joined(runs: Iterable[Run]) -> tuple[Run, ...]:
    """Join runs that continue each other. A layout that only grew has one run afterwards."""
    joined: list[Run] = []
    for run in sorted(runs):
        last = joined[-1] if joined else None
        if last and run.words > 0 and (run.old, run.new) == (last.old + last.words, last.new + last.words):
            joined[-1] = Run(last.old, last.new, last.words + run.words)
        else:
            joined.append(run)
    return tuple(joined)
