"""The content of a reservoir (a task's stored events) at one moment, to be read elsewhere while the task continues.

`Reservoir.frozen` makes it, and a deepening exports it (`railgun/history/accepted_events.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from reservoir.segments.source import ScannedRows


@dataclass(frozen=True, slots=True)
class FrozenSegment:
    """A segment's file, as far as it was written at that moment: its first `size_bytes` bytes.

    is_fixed: whether nothing will ever change these bytes. If not, they have to be copied: a recovery may cut off what
        no checkpoint holds.
    """

    path: Path
    size_bytes: int
    is_fixed: bool


@dataclass(frozen=True, slots=True)
class Frozen:
    """The content of a reservoir.

    segments: they have `chunks` chunks in all. rows: the rows that no segment has yet.
    first_ms: time of the first row that is kept, if rows before it were deleted; None if none ever was.
    """

    segments: Sequence[FrozenSegment]
    chunks: int
    rows: Sequence[ScannedRows]
    first_ms: int | None
